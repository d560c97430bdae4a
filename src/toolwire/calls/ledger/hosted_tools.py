"""Tools that the provider runs: opaque parts, but a use without its outcome, or the outcome alone, is refused (H035).

So is a part of an answer inside a user message. This is the one module outside the dialects that knows names of their parts: it decides
only whether two opaque parts belong together, and to which role.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...types import Message, Opaque, Part, ToolResult


class _Names(NamedTuple):
    """The names of the two halves in a dialect, and of the members that link them. may_wait: the use may be alone."""

    use: str
    use_id: str
    outcome: str
    outcome_id: str
    may_wait: bool = False


_HALVES = {
    "messages": (_Names("_tool_use", "id", "_tool_result", "tool_use_id"),),
    "responses": (
        _Names("program", "call_id", "program_output", "call_id"),
        _Names("_call", "call_id", "_output", "call_id"),
        _Names("_approval_request", "id", "_approval_response", "approval_request_id", may_wait=True),
    ),
}
_ANSWERED = {"messages": frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "thinking", "redacted_thinking"})}
_ASKED = {"messages": frozenset({"tool_result"})}
_NONE: frozenset[str] = frozenset()
_SILENT = ("assistant", "tool")


class _Half(NamedTuple):
    id: str
    is_use: bool
    may_wait: bool


class HostedFaults(NamedTuple):
    """Places (message, part): halves that must go, and parts of an answer where the user speaks, or the other way round."""

    halves: set[tuple[int, int]]
    strays: set[tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.halves or self.strays)


def faults_in(messages: tuple[Message, ...]) -> HostedFaults:
    """A use may wait for its outcome until the next message with text: the provider has paused, or waits for results."""
    waiting: dict[str, tuple[int, int]] = {}
    seen: set[_Half] = set()
    wrong: set[tuple[int, int]] = set()
    strays: set[tuple[int, int]] = set()
    for index, message in enumerate(messages):
        if waiting and message.role not in _SILENT and any(_is_speech(part) for part in message.parts):
            wrong.update(waiting.values())
            waiting.clear()
        for number, part in _opaque(message):
            elsewhere = _ASKED if message.role == "assistant" else _ANSWERED
            if _kind(part) in elsewhere.get(part.dialect, _NONE):
                strays.add((index, number))
            elif (half := _half(part)) is None:
                continue
            elif half in seen or (not half.is_use and half.id not in waiting and not _was_used(half, seen)):
                wrong.add((index, number))
            else:
                seen.add(half)
                if not half.is_use:
                    waiting.pop(half.id, None)
                elif not half.may_wait:
                    waiting[half.id] = (index, number)
    return HostedFaults(wrong, strays)


def _is_speech(part: Part) -> bool:
    return not isinstance(part, (ToolResult, Opaque))


def may_be_answer(part: Part) -> bool:
    """Whether an item without a role may be the assistant's."""
    return isinstance(part, Opaque) and not str(part.value.get("type")).endswith(("_output", "_response"))


def _opaque(message: Message) -> Iterator[tuple[int, Opaque]]:
    return ((number, part) for number, part in enumerate(message.parts) if isinstance(part, Opaque))


def _was_used(half: _Half, seen: set[_Half]) -> bool:
    return half.may_wait and half._replace(is_use=True) in seen


def _kind(part: Opaque) -> str:
    """ "" for a part whose type is no text: any client may send that."""
    kind = part.value.get("type")
    return kind if isinstance(kind, str) else ""


def _half(part: Opaque) -> _Half | None:
    kind = _kind(part)
    for names in _HALVES.get(part.dialect, ()):
        if kind.endswith((names.use, names.outcome)):
            is_use = kind.endswith(names.use)
            name = part.value.get(names.use_id if is_use else names.outcome_id)
            return _Half(name, is_use, names.may_wait) if isinstance(name, str) else None
    return None
