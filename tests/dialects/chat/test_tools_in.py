"""Chat tools in: the list, messages that declare tools, and tools in the flat form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects import chat
from toolwire.errors import BadRequest
from toolwire.profiles import PLAIN_CHAT
from toolwire.types import Request, Text

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
FLAT = {"type": "function", "name": "weather", "description": "d", "parameters": SCHEMA, "strict": True}
NESTED = {
    "type": "function",
    "function": {"name": "weather", "description": "d", "parameters": SCHEMA, "strict": True},
}
HI = {"role": "user", "content": "hi"}
HINT = {"type": "ephemeral"}


def read(**members: Any) -> Request:
    body = {"model": "m", "messages": [HI], **members}
    return chat.decode_request(json.dumps(body).encode(), {})


def written(request: Request) -> Any:
    return json.loads(chat.encode_request(request, PLAIN_CHAT).body)


def test_a_flat_tool_is_accepted_and_sent_in_the_form_of_the_dialect() -> None:
    flat, nested = read(tools=[FLAT, NESTED]), read(tools=[NESTED, NESTED])
    assert [(tool.name, tool.schema, tool.strict, tool.description) for tool in flat.tools] == [
        (tool.name, tool.schema, tool.strict, tool.description) for tool in nested.tools
    ]
    assert (flat.wire, bool(nested.wire)) == (b"", True)
    assert written(flat)["tools"] == [NESTED, NESTED]


def test_a_flat_choice_is_sent_in_the_form_of_the_dialect() -> None:
    request = read(tools=[NESTED], tool_choice={"type": "function", "name": "weather"})
    assert request.tool_choice is not None
    assert request.tool_choice.names == ("weather",)
    assert written(request)["tool_choice"] == {"type": "function", "function": {"name": "weather"}}


@pytest.mark.parametrize(
    "tool", [{"type": "function"}, {"type": "function", "name": 5}, {"type": "function", "name": ""}]
)
def test_a_tool_without_a_name_is_still_refused(tool: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        read(tools=[tool])
    assert caught.value.where.startswith("tools[0].function")


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("content", [{}, {"content": ""}, {"content": None}, {"content": []}, {"content": " "}])
def test_tools_in_a_message_are_tools_of_the_request(role: str, content: Any) -> None:
    declaration = {"role": role, **content, "tools": [NESTED]}
    request = read(messages=[HI, declaration])
    assert [tool.name for tool in request.tools] == ["weather"]
    assert (request.messages[1].declares_tools, request.messages[1].parts) == (True, ())
    assert written(request)["messages"] == [HI, declaration]


def test_a_message_may_speak_and_declare() -> None:
    request = read(messages=[{"role": "system", "content": "Be terse.", "tools": [FLAT], "x": 1}, HI])
    assert request.messages[0].parts == (Text(text="Be terse."),)
    assert request.messages[0].extra == {"chat": {"x": 1}}
    assert request.wire == b""


def test_a_later_declaration_replaces_an_earlier_one() -> None:
    newer = {"type": "function", "function": {"name": "weather", "description": "newer"}}
    other = {"type": "function", "function": {"name": "other"}}
    request = read(tools=[NESTED, other], messages=[HI, {"role": "system", "tools": [newer]}])
    assert [(tool.name, tool.description) for tool in request.tools] == [("other", None), ("weather", "newer")]


@pytest.mark.parametrize(
    ("tools", "where"),
    [
        ({"type": "function"}, "messages[0].tools"),
        ([None], "messages[0].tools[0]"),
        ([{"function": {"name": "x"}}], "messages[0].tools[0].type"),
        ([{"type": "function", "function": {}}], "messages[0].tools[0].function.name"),
    ],
)
def test_a_broken_declaration_names_the_field(tools: Any, where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(messages=[{"role": "system", "tools": tools}, HI])
    assert caught.value.where == where


@pytest.mark.parametrize("tools", [None, []])
def test_a_message_without_tools_and_content_is_empty(tools: Any) -> None:
    request = read(messages=[{"role": "system", "tools": tools}, HI])
    assert (request.messages[0].parts, request.messages[0].declares_tools) == ((), False)
    assert [loss.where for loss in request.repaired] == ["messages[0]"]


def test_tools_in_a_message_of_the_user_are_not_read() -> None:
    request = read(messages=[{**HI, "tools": [NESTED]}])
    assert request.tools == ()
    assert request.messages[0].extra == {"chat": {"tools": [NESTED]}}


def test_cache_hints_are_members_of_the_dialect_that_knows_them() -> None:
    request = read(
        messages=[
            {"role": "system", "content": "s", "cache_control": HINT},
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi", "cache_control": HINT}, {"type": "text", "text": "x"}],
            },
        ],
        tools=[
            {**NESTED, "cache_control": HINT},
            {"type": "function", "function": {"name": "f", "cache_control": HINT}},
        ],
    )
    hint = {"cache_control": HINT}
    assert request.messages[0].parts[0].extra == {"messages": hint}
    assert [part.extra for part in request.messages[1].parts] == [{"chat": hint, "messages": hint}, {}]
    assert [tool.extra.get("messages") for tool in request.tools] == [hint, hint]
    assert read(messages=[{**HI, "cache_control": 5}]).messages[0].parts[0].extra == {}
