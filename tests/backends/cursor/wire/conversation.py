"""Messages of a conversation for tests, and a strategy that generates any."""

from __future__ import annotations

from hypothesis import strategies as st

from toolwire.types import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = Media(kind="image", mime="image/png", data=PIXEL)


def message(role: Role, *parts: Part | str) -> Message:
    return Message(role=role, parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def call(id: str, name: str = "bash", raw: str = '{"command":"ls"}') -> ToolCall:
    return ToolCall(id=id, name=name, raw=raw)


def result(id: str, *parts: Text | Media | Opaque | str, is_error: bool = False) -> ToolResult:
    content = tuple(Text(text=part) if isinstance(part, str) else part for part in parts)
    return ToolResult(call_id=id, parts=content, is_error=is_error)


TEXTS = st.text(st.characters(codec=None), max_size=8)
ANY_PART = st.one_of(
    st.builds(lambda text: Text(text=text), TEXTS),
    st.builds(lambda text: Refusal(text=text), TEXTS),
    st.builds(
        lambda text, proof: Reasoning(text=text, signature=proof, extra={"cursor": {}}), TEXTS, st.none() | TEXTS
    ),
    st.builds(lambda data: Media(kind="image", data=data), st.sampled_from([PIXEL, "%", "", "QUJD"])),
    st.builds(
        lambda id, raw: call(id, "read", raw), st.sampled_from(["a", "b|", ""]), st.sampled_from(["{}", "[", "\ud800"])
    ),
    st.builds(lambda id, text: result(id, text), st.sampled_from(["a", "b|", "", "z"]), TEXTS),
    st.builds(lambda value: Opaque(dialect="chat", value={"type": value}), TEXTS),
)
ROLES = st.sampled_from(["user", "assistant", "tool"])
ANYTHING = st.lists(
    st.builds(lambda role, parts: message(role, *parts), ROLES, st.lists(ANY_PART, max_size=4)), max_size=6
)
