"""Checks that a conversation returns as the model sent it: the same tools, the same arguments, one result for each call.

Ids are not compared: clients and gateways may replace them, as long as calls and results pair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...errors import quote
from ...types import Json, Message, Tool, ToolCall, ToolResult
from .script import answers_of

_PIECES = re.compile(r"__|[./-]")


def tool_called(name: str, tools: Iterable[Tool]) -> Tool | None:
    """By its name, else the only tool with the same last piece of its name, as some_server__look for look."""
    wanted = _pieces(name)
    offered = [(tool, _pieces(tool.name)) for tool in tools]
    for spelling in (wanted, wanted[-1:]):
        for tool, pieces in offered:
            if pieces == spelling:
                return tool
    alike = [tool for tool, pieces in offered if pieces[-1] == wanted[-1]]
    return alike[0] if len(alike) == 1 else None


def unpaired(messages: Sequence[Message]) -> str:
    """What is wrong with the pairing of calls and results, or ""."""
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                if not part.id or part.id in seen:
                    return f"the call of {part.name} has the id {quote(part.id)}; expected one of its own."
                seen.add(part.id)
                waiting[part.id] = part.name
            elif isinstance(part, ToolResult) and waiting.pop(part.call_id, None) is None:
                return f"the result for {quote(part.call_id)} answers no call that waits; expected one of {sorted(waiting)}."
    return f"no result for the call of {', '.join(waiting.values())}." if waiting else ""


def altered(messages: Sequence[Message], sent: Sequence[Sequence[ToolCall]]) -> str:
    """A description of the first call that differs from the one sent, or ""."""
    for number, (answer, calls) in enumerate(zip(answers_of(messages), sent, strict=True)):
        kept = [part for message in answer for part in message.parts if isinstance(part, ToolCall)]
        if len(kept) != len(calls):
            return f"answer {number} has {len(kept)} calls; expected {len(calls)}."
        for found, expected in zip(kept, calls, strict=True):
            if _meaning(found) != _meaning(expected):
                return f"answer {number} has {_shown(found)}; expected {_shown(expected)}."
    return ""


def _pieces(name: str) -> list[str]:
    return _PIECES.split(name)


def _meaning(call: ToolCall) -> Json:
    """Arguments are compared as JSON values: clients parse and print them."""
    if call.kind == "custom":
        return call.namespace, call.name, {"input": call.raw}
    return call.namespace, call.name, call.raw if call.args is None else call.args


def _shown(call: ToolCall) -> str:
    return f"{call.namespace} {call.name} {quote(call.raw)}".strip()
