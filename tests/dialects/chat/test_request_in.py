"""Chat requests in: every shape that clients send, and a refusal that names the field for all others."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.dialects.refused_bodies import GONE, assert_noted, refusal, with_change
from toolwire.dialects import chat
from toolwire.profiles import PLAIN_CHAT
from toolwire.types import (
    Media,
    Opaque,
    OutputFormat,
    Reasoning,
    Refusal,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
)

GOOD: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "https://a"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}

BROKEN = [
    ("model", GONE, "model"),
    ("model", None, "model"),
    ("model", "", "model"),
    ("model", 5, "model"),
    ("messages", GONE, "messages"),
    ("messages", [], "messages"),
    ("messages", None, "messages"),
    ("tools", {}, "tools"),
    ("tools.0", [], "tools[0]"),
    ("tools.0.type", GONE, "tools[0].type"),
    ("tools.0.function", None, "tools[0].function"),
    ("tools.0.function.name", GONE, "tools[0].function.name"),
    ("tools.0.function.parameters", [], "tools[0].function.parameters"),
    ("tools.0.function.strict", "yes", "tools[0].function.strict"),
    ("tool_choice", "sometimes", "tool_choice"),
    ("tool_choice", 5, "tool_choice"),
    ("tool_choice", {"type": "allowed_tools"}, "tool_choice.tools"),
    ("tool_choice", {"type": "allowed_tools", "tools": [{}]}, "tool_choice.tools[0].name"),
    ("parallel_tool_calls", "no", "parallel_tool_calls"),
    ("max_tokens", 0, "max_tokens"),
    ("max_tokens", -1, "max_tokens"),
    ("max_tokens", 1.5, "max_tokens"),
    ("max_completion_tokens", "many", "max_completion_tokens"),
    ("temperature", "hot", "temperature"),
    ("temperature", True, "temperature"),
    ("n", 0, "n"),
    ("n", "two", "n"),
    ("stop", 5, "stop"),
    ("stop", ["a", 5], "stop"),
    ("stream", "yes", "stream"),
    ("stream_options", [], "stream_options"),
    ("stream_options", {"include_usage": 1}, "stream_options.include_usage"),
    ("response_format", "json", "response_format"),
    ("response_format", {}, "response_format.type"),
    ("response_format", {"type": "xml"}, "response_format.type"),
    ("response_format", {"type": "json_schema"}, "response_format.json_schema"),
    ("reasoning_effort", 5, "reasoning_effort"),
    ("user", 5, "user"),
    ("metadata", "x", "metadata"),
    ("logprobs", 1, "logprobs"),
]
# Read all the same, in another way.
FOREIGN = [
    ("messages", "hi", "messages"),
    ("messages.0", "hi", "messages[0]"),
    ("messages.0", None, "messages[0]"),
    ("messages.0.role", GONE, "messages[0].role"),
    ("messages.0.role", "robot", "messages[0].role"),
    ("messages.0.role", 5, "messages[0].role"),
    ("messages.1.content", GONE, "messages[1].content"),
    ("messages.1.content", None, "messages[1].content"),
    ("messages.1.content", 5, "messages[1].content"),
    ("messages.1.content", {}, "messages[1].content"),
    ("messages.1.content.0", 5, "messages[1].content[0]"),
    ("messages.1.content.0.type", GONE, "messages[1].content[0].type"),
    ("messages.1.content.0.text", 5, "messages[1].content[0].text"),
    ("messages.1.content.1.image_url", GONE, "messages[1].content[1].image_url"),
    ("messages.1.content.1.image_url.url", None, "messages[1].content[1].image_url.url"),
    ("messages.2.tool_calls", {}, "messages[2].tool_calls"),
    ("messages.2.tool_calls.0", "x", "messages[2].tool_calls[0]"),
    ("messages.2.tool_calls.0.id", 5, "messages[2].tool_calls[0].id"),
    ("messages.2.tool_calls.0.function", GONE, "messages[2].tool_calls[0].function"),
    ("messages.2.tool_calls.0.function.name", "", "messages[2].tool_calls[0].function.name"),
    ("messages.2.tool_calls.0.function.arguments", {}, "messages[2].tool_calls[0].function.arguments"),
    ("messages.2.reasoning_content", 5, "messages[2].reasoning_content"),
    ("messages.3.tool_call_id", 5, "messages[3].tool_call_id"),
]


@pytest.mark.parametrize(("path", "value", "where"), BROKEN)
def test_a_broken_request_names_the_field(path: str, value: Any, where: str) -> None:
    assert refusal("chat", with_change(GOOD, path, value)).where == where


@pytest.mark.parametrize(("path", "value", "where"), FOREIGN)
def test_a_message_in_another_form_is_read_and_noted(path: str, value: Any, where: str) -> None:
    assert_noted("chat", with_change(GOOD, path, value), where)


def test_numbers_beyond_all_use_are_refused() -> None:
    body = json.dumps({**GOOD, "max_tokens": "HERE"}).replace('"HERE"', "1e9999999").encode()
    assert refusal("chat", body).where == "max_tokens"


def read(**members: Any) -> Request:
    return chat.decode_request(json.dumps({**GOOD, **members}).encode(), {"x": "y"})


def parts(*messages: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(part for message in read(messages=list(messages)).messages for part in message.parts)


def test_what_a_good_request_means() -> None:
    request = read(temperature=0.7, max_completion_tokens=9, max_tokens=5, stop="x", n=2, user="u", x_top=1)
    assert request.max_tokens == 9
    assert request.sampling.temperature == Decimal("0.7")
    assert request.sampling.stop == ("x",)
    assert request.sampling.choices == 2
    assert request.extra == {"chat": {"x_top": 1}}
    assert (request.origin, request.user, request.headers) == ("chat", "u", {"x": "y"})
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "tool"]


@pytest.mark.parametrize("content", [None, "", GONE])
def test_an_assistant_may_have_no_text(content: Any) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    message: dict[str, Any] = {"role": "assistant", "content": content, "tool_calls": [call]}
    if content is GONE:
        del message["content"]
    assert parts(message) == (ToolCall(id="c", name="f", raw='{"a":1}', args={"a": 1}),)


def test_H051_ids_that_are_missing_are_the_ledgers_to_give() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert parts({"role": "assistant", "tool_calls": [call]}) == (ToolCall(id="", name="f", raw="{}", args={}),)
    (result,) = parts({"role": "tool", "content": "r"})
    assert isinstance(result, ToolResult)
    assert result.call_id == ""


@pytest.mark.parametrize("arguments", [None, GONE])
def test_H012_H022_absent_arguments_are_the_empty_object(arguments: Any) -> None:
    function = {"name": "f", "arguments": arguments}
    if arguments is GONE:
        del function["arguments"]
    (call,) = parts({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]})
    assert (call.raw, call.args) == ("{}", {})


def test_H022_H024_broken_arguments_in_history_are_kept_and_marked() -> None:
    (call,) = parts(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":'}}],
        }
    )
    assert (call.raw, call.args) == ('{"a":', None)


def test_results_in_every_form() -> None:
    assert parts(
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ) == (ToolResult(call_id="c", parts=(Text(text="a"), Text(text="b"))),)
    assert parts({"role": "tool", "tool_call_id": "c", "content": None, "name": "f"}) == (
        ToolResult(call_id="c", parts=(), name="f"),
    )
    assert parts({"role": "function", "name": "f", "content": "r"}) == (
        ToolResult(call_id="f", parts=(Text(text="r"),), name="f"),
    )


def test_H093_the_fixed_line_of_a_failure_is_read_back() -> None:
    (result,) = parts({"role": "tool", "tool_call_id": "c", "content": "Error: the tool call failed.\nno file"})
    assert result == ToolResult(call_id="c", parts=(Text(text="no file"),), is_error=True)
    (other,) = parts({"role": "tool", "tool_call_id": "c", "content": "Error: the tool call failed. Or so they say."})
    assert not other.is_error


def test_content_of_every_kind() -> None:
    found = parts(
        {
            "role": "user",
            "content": [
                "bare",
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
                {"type": "image_url", "image_url": "https://a"},
                {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
                {"type": "file", "file": {"file_id": "file_1"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
                {"type": "video_url", "video_url": {}},
            ],
        }
    )
    assert found == (
        Text(text="bare"),
        Media(kind="image", mime="image/png", data="aGk=", detail="low"),
        Media(kind="image", url="https://a"),
        Media(kind="audio", mime="audio/mp3", data="aGk="),
        Media(kind="file", file_id="file_1"),
        Media(kind="file", mime="application/pdf", data="aGk=", name="a.pdf"),
        Opaque(dialect="chat", value={"type": "video_url", "video_url": {}}),
    )


def test_an_assistant_of_every_kind() -> None:
    found = parts({"role": "assistant", "reasoning_content": "hm", "content": [{"type": "text", "text": "a"}], "refusal": "no", "function_call": {"name": "f", "arguments": "{}"}})  # fmt: skip
    assert found == (
        Reasoning(text="hm"),
        Text(text="a"),
        Refusal(text="no"),
        ToolCall(id="f", name="f", raw="{}", args={}),
    )
    custom = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "***"}}
    assert parts({"role": "assistant", "tool_calls": [custom]}) == (
        ToolCall(id="c", name="patch", raw="***", kind="custom"),
    )


def test_H106_tools_of_every_kind() -> None:
    tools = read(
        tools=[
            {"type": "function", "function": {"name": "bare"}},
            {"type": "custom", "custom": {"name": "patch", "description": "d"}},
            {"type": "web_search"},
        ]
    ).tools
    assert [(tool.name, tool.kind, tool.schema) for tool in tools] == [
        ("bare", "function", None),
        ("patch", "custom", None),
        ("web_search", "hosted", None),
    ]


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        (None, None),
        ("auto", ToolChoice(mode="auto")),
        ("any", ToolChoice(mode="required")),
        ({"type": "function", "function": {"name": "f"}}, ToolChoice(mode="named", names=("f",))),
        ({"type": "function", "name": "f"}, ToolChoice(mode="named", names=("f",))),
        ({"type": "custom", "custom": {"name": "f"}}, ToolChoice(mode="named", names=("f",))),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "f"}}]}}, ToolChoice(mode="allowed", names=("f",), is_required=True)),
        ({"type": "web_search"}, ToolChoice(mode="hosted")),
    ],
)  # fmt: skip
def test_H087_every_shape_of_a_choice(value: Any, choice: ToolChoice | None) -> None:
    found = read(tool_choice=value).tool_choice
    assert (found and (found.mode, found.names, found.is_required)) == (
        choice and (choice.mode, choice.names, choice.is_required)
    )


def test_outputs_and_efforts() -> None:
    schema = {"type": "object"}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    assert read(response_format=form, verbosity="low").output == OutputFormat(
        format="schema", name="n", schema=schema, strict=True, verbosity="low"
    )
    assert read(response_format={"type": "json_object"}).output.format == "json"
    assert read(response_format={"type": "text"}).output == OutputFormat()
    assert read(reasoning_effort="none").thinking == Thinking(mode="off", effort="none")
    assert read(reasoning_effort="high").thinking == Thinking(effort="high")
    assert read(reasoning_effort=None).thinking is None


def test_the_bare_functions_of_old_clients_are_tools() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "functions": [{"name": "f", "parameters": {}}],
    }
    request = chat.decode_request(json.dumps(body).encode(), {})
    assert [(tool.name, tool.schema, tool.source) for tool in request.tools] == [("f", {}, None)]
    again = json.loads(chat.encode_request(request, PLAIN_CHAT).body)
    assert again == body


@pytest.mark.parametrize(
    ("given", "mode", "names"),
    [("none", "none", ()), ("auto", "auto", ()), ({"name": "f"}, "named", ("f",))],
)
def test_the_choice_among_bare_functions(given: Any, mode: str, names: tuple[str, ...]) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "functions": [{"name": "f", "parameters": {}}],
        "function_call": given,
    }
    request = chat.decode_request(json.dumps(body).encode(), {})
    assert request.tool_choice is not None
    assert (request.tool_choice.mode, request.tool_choice.names) == (mode, names)
    assert not request.extra.get("chat")
    assert json.loads(chat.encode_request(request, PLAIN_CHAT).body) == body
    assert refusal("chat", body | {"function_call": {"id": "f"}}).where == "function_call"


@pytest.mark.parametrize("kind", ["function", "custom"])
def test_a_choice_that_names_no_tool_is_refused(kind: str) -> None:
    assert refusal("chat", GOOD | {"tool_choice": {"type": kind}}).where == "tool_choice"
