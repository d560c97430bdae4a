"""What VS Code asks, as a request: exact arguments, results as results, and nothing of what is not for a model."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given

from tests.backends.vscode.wire.agreed import MODEL, asks, from_gateway, from_window
from tests.backends.vscode.wire.conversations import prepare
from tests.thorough import examples
from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.backends.vscode.wire.frames import BadWindowFrame, decode_window
from toolwire.backends.vscode.wire.request_in import request_of
from toolwire.backends.vscode.wire.request_out import chat_request
from toolwire.errors import BadRequest
from toolwire.types import (
    Media,
    Message,
    Reasoning,
    Request,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)


def text(words: str) -> bridge.TextPart:
    return bridge.TextPart(text=words)


def said(role: Literal["user", "assistant", "system"], *parts: bridge.Part) -> bridge.AskMessage:
    return bridge.AskMessage(role=role, parts=parts)


def read(*messages: bridge.AskMessage, **members: Any) -> Request:
    """Over the wire, and by the schema."""
    ask = decode_window(from_window(bridge.Ask(id="r1", model="demo/echo", messages=messages, **members)))
    assert isinstance(ask, bridge.Ask)
    return request_of(ask, owner="me")


def test_a_conversation_with_tools() -> None:
    call = bridge.CallPart(id="1", name="f", input={"n": 12345678901234567890, "x": Decimal("1.10")})
    result = bridge.ResultPart(id="1", parts=(text("one"), text("two")))
    request = read(
        said("system", text("Be kind.")),
        said("user", text("Hi"), text("there")),
        said("assistant", bridge.ThinkingPart(text="hm", id="t"), text("Let me look."), call),
        said("user", result, text("And?")),
        tools=(bridge.OfferedTool(name="f", description="", schema={"type": "object"}),),
        required=True,
    )
    raw = '{"n":12345678901234567890,"x":1.10}'
    args = {"n": 12345678901234567890, "x": Decimal("1.10")}
    assert request.messages == (
        Message(role="system", parts=(Text(text="Be kind."),)),
        Message(role="user", parts=(Text(text="Hi"), Text(text="there"))),
        Message(
            role="assistant",
            parts=(
                Reasoning(text="hm", item_id="t", extra={"vscode": {}}),
                Text(text="Let me look."),
                ToolCall(id="1", name="f", raw=raw, args=args),
            ),
        ),
        Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text="one"), Text(text="two"))),)),
        Message(role="user", parts=(Text(text="And?"),)),
    )
    assert request.tools == (Tool(name="f", schema={"type": "object"}),)
    assert request.tool_choice == ToolChoice(mode="required")
    assert (request.model, request.origin, request.owner, request.stream) == ("demo/echo", "vscode", "me", True)


def test_H093_a_failure_is_read_back() -> None:
    failed = bridge.ResultPart(id="1", parts=(text("Error: the tool call failed.\nno file"),))
    (message,) = read(said("user", failed)).messages
    assert message.parts == (ToolResult(call_id="1", parts=(Text(text="no file"),), is_error=True),)


def test_input_that_is_no_object_stays_what_it_is() -> None:
    calls = [bridge.CallPart(id="1", name="f", input=given) for given in ("{oops", [1], None)]
    (message,) = read(said("assistant", *calls)).messages
    assert [(part.raw, part.args) for part in message.parts if isinstance(part, ToolCall)] == [
        ("{oops", None),
        ("[1]", None),
        ("null", None),
    ]


def test_data_is_a_medium_or_rides_beside() -> None:
    data = bridge.DataPart
    parts = (
        data(mime="image/png", data="QQ=="),
        data(mime="text/plain", data="QQ=="),
        data(mime="audio/wav", data="QQ=="),
    )
    own = (
        data(mime="stateful_marker", data="QQ=="),
        data(mime="cache_control", data="QQ=="),
        data(mime="usage", data="QQ=="),
    )
    request = read(said("user", *parts, *own), said("assistant", text("a"), *own), said("user", text("b")))
    assert [(part.kind, part.mime) for part in request.messages[0].parts if isinstance(part, Media)] == [
        ("image", "image/png"),
        ("file", "text/plain"),
        ("audio", "audio/wav"),
    ]
    assert len(request.messages[0].parts) == 3
    assert request.messages[1].parts == (Text(text="a"),)
    back = chat_request(request, MODEL, id="r2").chat.messages[1]
    assert back.parts == (text("a"), data(mime="stateful_marker", data="QQ=="))


def test_options_that_are_known_and_those_of_vs_code() -> None:
    options = {
        "temperature": Decimal("0.1"),
        "top_p": 1,
        "max_tokens": 100,
        "stop": ["a", "", 3, "b"],
        "reasoning_effort": "low",
        "_conversationId": "x",
        "seed": True,
        "frequency_penalty": "much",
        "colour": "red",
    }
    request = read(said("user", text("Hi")), options=options)
    assert request.sampling == Sampling(temperature=Decimal("0.1"), top_p=1, stop=("a", "b"))
    assert (request.max_tokens, request.thinking) == (100, Thinking(effort="low"))
    assert request.extra == {"vscode": {"colour": "red"}}
    assert read(said("user", text("Hi")), options={"stop": "x"}).sampling == Sampling(stop=("x",))
    assert read(options={"max_tokens": -1}).max_tokens is None


def test_required_without_tools_is_nothing() -> None:
    assert read(said("user", text("Hi")), required=True).tool_choice is None


def test_what_cannot_be_written_again_is_bad() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    ask = bridge.Ask(id="r1", model="m", messages=(said("assistant", bridge.CallPart(id="1", name="f", input=deep)),))
    with pytest.raises(BadWindowFrame):
        request_of(ask)


@pytest.mark.slow
@examples(80)
@given(asks)
def test_any_ask_is_a_request_that_can_be_asked_elsewhere(ask: bridge.Ask) -> None:
    request = request_of(ask)
    assert all(
        call.raw for message in request.messages for call in message.parts if isinstance(call, ToolCall) and call.args
    )
    with suppress(BadRequest):
        from_gateway(chat_request(prepare(request), MODEL, id="r2").chat)
