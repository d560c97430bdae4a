"""Short words for histories in tests."""

from __future__ import annotations

from typing import Any

from toolwire.calls.ledger.repair import repair_history
from toolwire.calls.ledger.rules import Repair
from toolwire.types import Message, Request, Source, Text, ToolCall, ToolResult


def user(*parts: Any) -> Message:
    return _said("user", parts)


def assistant(*parts: Any) -> Message:
    return _said("assistant", parts)


def system(*parts: Any) -> Message:
    return _said("system", parts)


def tool(*parts: Any) -> Message:
    return _said("tool", parts)


def call(call_id: str, name: str = "read", **members: Any) -> ToolCall:
    return ToolCall(**({"id": call_id, "name": name, "raw": "{}", "args": {}} | members))


def result(call_id: str, text: str = "done", **members: Any) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=text),) if text else (), **members)


def settled(*messages: Message, origin: str = "chat") -> tuple[list[Message], list[str]]:
    """The messages that go on, and the kinds of what was repaired; that it is settled for good is checked on the way."""
    done, repairs = mended(*messages, origin=origin)
    return done, [repair.kind for repair in repairs]


def mended(*messages: Message, origin: str = "chat") -> tuple[list[Message], tuple[Repair, ...]]:
    request = Request(model="m", messages=messages, origin=origin, wire=b"{}")
    first = repair_history(request)
    again = repair_history(first.request)
    assert again.request is first.request
    assert again.repairs == ()
    assert (first.request is request) == (not first.repairs)
    assert first.request.wire == (b"" if first.repairs else b"{}")
    return list(first.request.messages), first.repairs


def shown(messages: list[Message]) -> list[str]:
    """Each part as a word: user:hi, call:a, result:a."""
    return [_word(message, part) for message in messages for part in message.parts]


def _said(role: Any, parts: tuple[Any, ...]) -> Message:
    """With a source, as every message that a client wrote."""
    written = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return Message(role=role, parts=written, source=Source("chat", {"role": role}))


def _word(message: Message, part: Any) -> str:
    match part:
        case ToolCall():
            return f"call:{part.id}"
        case ToolResult():
            return f"{'failed' if part.is_error else 'result'}:{part.call_id}"
        case Text():
            return f"{message.role}:{part.text}"
        case _:
            return f"{message.role}:{type(part).__name__}"
