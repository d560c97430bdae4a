"""Messages requests in: every block that clients send, and a refusal that names the field for all others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.refused_bodies import GONE, assert_noted, refusal, with_change
from toolwire.dialects import messages
from toolwire.dialects.messages.request_in import is_continuing, state_in
from toolwire.dialects.shared.sealed_reasoning import seal
from toolwire.errors import BadRequest
from toolwire.types import Media, Opaque, OutputFormat, Reasoning, Request, Text, Thinking, ToolCall, ToolResult

GOOD: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "s"}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image", "source": {"type": "url", "url": "https://a"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "r"}]}],
        },
    ],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
}

BROKEN = [
    ("model", GONE, "model"),
    ("model", "", "model"),
    ("model", ["m"], "model"),
    ("max_tokens", GONE, "max_tokens"),
    ("max_tokens", 0, "max_tokens"),
    ("max_tokens", "9", "max_tokens"),
    ("max_tokens", 1.5, "max_tokens"),
    ("messages", GONE, "messages"),
    ("messages", {}, "messages"),
    ("messages.0", 5, "messages[0]"),
    ("tools", {}, "tools"),
    ("tools.0", 5, "tools[0]"),
    ("tools.0.name", GONE, "tools[0].name"),
    ("tools.0.name", "", "tools[0].name"),
    ("tools.0.type", 5, "tools[0].type"),
    ("tools.0.input_schema", GONE, "tools[0].input_schema"),
    ("tools.0.input_schema", None, "tools[0].input_schema"),
    ("tools.0.description", 5, "tools[0].description"),
    ("tool_choice", "auto", "tool_choice"),
    ("tool_choice", {}, "tool_choice.type"),
    ("tool_choice", {"type": "maybe"}, "tool_choice.type"),
    ("tool_choice", {"type": "tool"}, "tool_choice.name"),
    ("tool_choice", {"type": "auto", "disable_parallel_tool_use": 1}, "tool_choice.disable_parallel_tool_use"),
    ("stop_sequences", "x", "stop_sequences"),
    ("stop_sequences", [5], "stop_sequences"),
    ("temperature", "hot", "temperature"),
    ("top_k", 1.5, "top_k"),
    ("stream", 1, "stream"),
    ("metadata", "x", "metadata"),
    ("metadata", {"user_id": 5}, "metadata.user_id"),
    ("thinking", "on", "thinking"),
    ("thinking", {"type": "much"}, "thinking.type"),
    ("thinking", {"type": "enabled", "budget_tokens": 0}, "thinking.budget_tokens"),
    ("output_config", [], "output_config"),
    ("output_config", {"effort": 5}, "output_config.effort"),
    ("output_config", {"format": []}, "output_config.format"),
]
# Read all the same, in another way.
FOREIGN = [
    ("system", 5, "system"),
    ("system", {}, "system"),
    ("system.0", "s", "system[0]"),
    ("system.0.type", GONE, "system[0].type"),
    ("system.0.text", None, "system[0].text"),
    ("messages", [], "messages"),
    ("messages.0.role", GONE, "messages[0].role"),
    ("messages.0.role", "tool", "messages[0].role"),
    ("messages.0.content", GONE, "messages[0].content"),
    ("messages.0.content", None, "messages[0].content"),
    ("messages.0.content", 5, "messages[0].content"),
    ("messages.0.content.0", "hi", "messages[0].content[0]"),
    ("messages.0.content.0.text", GONE, "messages[0].content[0].text"),
    ("messages.0.content.1.source", GONE, "messages[0].content[1].source"),
    ("messages.0.content.1.source.url", GONE, "messages[0].content[1].source"),
    ("messages.0.content.1.source", {"type": "base64", "data": "x"}, "messages[0].content[1].source"),
    ("messages.1.content.0.thinking", 5, "messages[1].content[0].thinking"),
    ("messages.1.content.0.signature", 5, "messages[1].content[0].signature"),
    ("messages.1.content.1.id", GONE, "messages[1].content[1].id"),
    ("messages.1.content.1.name", None, "messages[1].content[1].name"),
    ("messages.1.content.1.input", GONE, "messages[1].content[1].input"),
    ("messages.1.content.1.input", "{}", "messages[1].content[1].input"),
    ("messages.1.content.1.input", None, "messages[1].content[1].input"),
    ("messages.2.content.0.tool_use_id", GONE, "messages[2].content[0].tool_use_id"),
    ("messages.2.content.0.content", 5, "messages[2].content[0].content"),
    ("messages.2.content.0.content.0", 5, "messages[2].content[0].content[0]"),
    ("messages.2.content.0.is_error", "yes", "messages[2].content[0].is_error"),
]


@pytest.mark.parametrize(("path", "value", "where"), BROKEN)
def test_a_broken_request_names_the_field(path: str, value: Any, where: str) -> None:
    assert refusal("messages", with_change(GOOD, path, value)).where == where


@pytest.mark.parametrize(("path", "value", "where"), FOREIGN)
def test_a_message_in_another_form_is_read_and_noted(path: str, value: Any, where: str) -> None:
    assert_noted("messages", with_change(GOOD, path, value), where)


def read(**members: Any) -> Request:
    return messages.decode_request(json.dumps({**GOOD, **members}).encode(), {})


def parts(role: str, *blocks: Any) -> tuple[Any, ...]:
    return read(messages=[{"role": role, "content": list(blocks)}]).messages[-1].parts


def test_what_a_good_request_means() -> None:
    request = read(stream=True, stop_sequences=["x"], top_k=5, x_top=1, metadata={"user_id": "u"})
    assert request.messages[0].is_head
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    assert request.stream_usage
    assert (request.sampling.stop, request.sampling.top_k, request.user) == (("x",), 5, "u")
    assert request.extra == {"messages": {"x_top": 1}}


def test_a_count_needs_no_limit() -> None:
    body = {key: value for key, value in GOOD.items() if key != "max_tokens"}
    assert messages.decode_count_request(json.dumps(body).encode(), {}).max_tokens is None


@pytest.mark.parametrize("system", ["", None])
def test_no_instructions(system: Any) -> None:
    assert not any(message.is_head for message in read(system=system).messages)


def test_H142_system_messages_in_mid_conversation_are_read() -> None:
    given = [*GOOD["messages"], {"role": "system", "content": "now be brief"}]
    last = read(messages=given).messages[-1]
    assert (last.role, last.is_head, last.parts) == ("system", False, (Text(text="now be brief"),))


def test_blocks_of_a_user() -> None:
    found = parts(
        "user",
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "document", "title": "T", "source": {"type": "file", "file_id": "f"}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
        {"type": "image", "source": {"type": "new"}},
        {"type": "search_result", "title": "T", "source": "S", "content": []},
    )
    assert found == (
        Media(kind="image", mime="image/png", data="aGk="),
        Media(kind="file", file_id="f", name="T"),
        Media(kind="file", mime="text/plain", data="aGk="),
        Opaque(dialect="messages", value={"type": "image", "source": {"type": "new"}}),
        Opaque(dialect="messages", value={"type": "search_result", "title": "T", "source": "S", "content": []}),
    )


def test_results_in_every_form() -> None:
    found = parts(
        "user",
        {"type": "tool_result", "tool_use_id": "a", "content": "words"},
        {"type": "tool_result", "tool_use_id": "b"},
        {"type": "tool_result", "tool_use_id": "c", "content": "", "is_error": True},
        {"type": "tool_result", "tool_use_id": "d", "content": [{"type": "tool_reference", "tool_name": "f"}]},
    )
    assert found == (
        ToolResult(call_id="a", parts=(Text(text="words"),)),
        ToolResult(call_id="b", parts=()),
        ToolResult(call_id="c", parts=(), is_error=True),
        ToolResult(call_id="d", parts=(Text(text="Found, and callable from now on: f"),), kind="typed"),
    )


def test_blocks_of_an_assistant() -> None:
    found = parts(
        "assistant",
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"n": 12345678901234567890123}},
        {"type": "server_tool_use", "id": "s"},
    )
    assert found == (
        Reasoning(text=""),
        Reasoning(text="", redacted="x"),
        ToolCall(id="c", name="f", raw='{"n":12345678901234567890123}', args={"n": 12345678901234567890123}),
        Opaque(dialect="messages", value={"type": "server_tool_use", "id": "s"}),
    )


def test_H106_tools_of_the_server_have_no_schema() -> None:
    tools = read(
        tools=[
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "custom", "name": "f", "input_schema": {}},
            {"type": "x"},
        ]
    ).tools
    assert [(tool.name, tool.kind) for tool in tools] == [("web_search", "hosted"), ("f", "function"), ("x", "hosted")]


@pytest.mark.parametrize(
    ("thinking", "config", "expected"),
    [
        (None, None, None),
        ({"type": "disabled"}, None, Thinking(mode="off")),
        ({"type": "adaptive"}, {"effort": "high"}, Thinking(mode="adaptive", effort="high")),
        ({"type": "enabled", "budget_tokens": 2048}, None, Thinking(mode="on", budget=2048)),
        (None, {"effort": "low"}, Thinking(effort="low")),
    ],
)
def test_thinking(thinking: Any, config: Any, expected: Thinking | None) -> None:
    assert read(thinking=thinking, output_config=config).thinking == expected


def test_output_by_a_schema() -> None:
    form = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    assert read(output_config=form).output == OutputFormat(format="schema", name="answer", schema={"type": "object"})


def test_H165_threads_are_state() -> None:
    state = read(thread={"type": "create"}).state
    assert state is not None
    assert state.field == "thread"
    assert state.refusal["details"]["error_code"] == "thread_unsupported_request"


def test_a_token_count_is_requested_without_seals() -> None:
    thought = {"type": "thinking", "thinking": "t", "signature": seal([Reasoning(text="t", encrypted="E")])}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [thought]},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]},
        ],
    }
    request = messages.decode_count_request(json.dumps(body).encode(), {})
    assert json.loads(request.wire)["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
    ]


CONTINUE = {"type": "continue", "previous_message_id": "msg_1"}


def test_a_thread_is_created_or_continued() -> None:
    created = state_in({"thread": {"type": "create"}, "system": "s"})
    assert created is not None
    assert (created.previous, created.is_kept, created.is_leaning) == ("", True, True)
    continued = state_in({"thread": CONTINUE})
    assert continued is not None
    assert continued.previous == "msg_1"
    assert is_continuing({"thread": CONTINUE})
    assert not is_continuing({"thread": {"type": "create"}})


def test_without_one_the_store_is_not_read() -> None:
    assert state_in({}) is None
    assert state_in({"thread": None}) is None


@pytest.mark.parametrize(
    ("top", "where"),
    [
        ({"thread": "x"}, "thread"),
        ({"thread": {}}, "thread.type"),
        ({"thread": {"type": "fork"}}, "thread.type"),
        ({"thread": {"type": "continue"}}, "thread.previous_message_id"),
        ({"thread": {"type": "continue", "previous_message_id": ""}}, "thread.previous_message_id"),
        ({"thread": CONTINUE, "system": "s"}, "system"),
        ({"thread": CONTINUE, "tools": [{"name": "t"}]}, "tools"),
    ],
)
def test_what_is_wrong_is_named(top: dict[str, Any], where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        state_in(top)
    assert caught.value.where == where
