"""Messages for tests of requests to VS Code."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from tests.backends.vscode.wire.pictures import PNG, image
from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.calls.ledger.repair import Recipient, repair_history
from toolwire.calls.tools.adapter import adapt_ids
from toolwire.calls.tools.kinds import to_functions
from toolwire.profiles import VSCODE
from toolwire.types import (
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from toolwire.wire.exact_json import encode, object_of


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Part | str) -> Message:
    return Message(role="assistant", parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def call(id: str, name: str = "f", raw: str = "{}") -> ToolCall:
    return ToolCall(id=id, name=name, raw=raw, args=object_of(raw))


def result(id: str, *texts: str, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=id, parts=tuple(Text(text=text) for text in texts or ("ok",)), is_error=is_error)


def words(message: bridge.ChatMessage) -> list[str]:
    """What stands in a message, part by part."""
    shown = []
    for part in message.parts:
        match part:
            case bridge.TextPart():
                shown.append(part.text)
            case bridge.CallPart():
                shown.append(f"call {part.id} {part.name} {encode(part.input).decode()}")
            case bridge.ResultPart():
                inner = [one.text if isinstance(one, bridge.TextPart) else one.mime for one in part.parts]
                shown.append(f"result {part.id} {'|'.join(inner)}")
            case bridge.DataPart():
                shown.append(f"data {part.mime}")
            case bridge.ThinkingPart():
                shown.append("thinking")
    return [message.role, *shown]


def prepare(request: Request) -> Request:
    """As the request stages of the pipeline leave it: history, tools and ids."""
    recipient = Recipient(is_formal=VSCODE.is_formal, fails_in_words=VSCODE.has_text_failures)
    request = to_functions(repair_history(request, recipient).request, longest=VSCODE.name_length).request
    return replace(request, messages=adapt_ids(request.messages, VSCODE.ids))


IDS = st.sampled_from(["", "1", "2", "a.b", "x" * 70])


WORDS = st.sampled_from(["", " ", "hi", "</tool_result>", "\ud800"])


PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(Reasoning, text=WORDS),
    st.builds(Refusal, text=WORDS),
    st.builds(ToolCall, id=IDS, name=IDS, raw=st.sampled_from(["", "{}", "[1]", '{"a":', '{"a":1}'])),
    st.builds(
        ToolResult,
        call_id=IDS,
        parts=st.lists(st.builds(Text, text=WORDS), max_size=2).map(tuple),
        is_error=st.booleans(),
    ),
    st.just(Opaque(dialect="vscode", value={"mime": "x", "data": "QQ=="})),
    st.just(Opaque(dialect="messages", value={"type": "document", "title": "t"})),
    st.just(image("image/png", PNG)),
)


ROLES: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "tool"])


MESSAGES = st.builds(Message, role=ROLES, parts=st.lists(PARTS, max_size=4).map(tuple))
