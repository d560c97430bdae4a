"""Messages in the form of other dialects and frameworks. Whole conversations are in tests/contract/test_foreign_histories.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.foreign_history import HistoryReader
from toolwire.errors import BadRequest
from toolwire.types import Message, Opaque, Part, Reasoning, Refusal, Role, Text, ToolCall, ToolResult

ERROR = BadRequest("it is wrong.", where="messages[0].content")
CALL = ToolCall(id="c", name="f", raw='{"a":1}', args={"a": 1})


def refuse(piece: Any, where: str, role: Role) -> Part:
    raise ERROR


def read(item: Any, reader: HistoryReader | None = None) -> list[Message]:
    return (reader or HistoryReader("chat", refuse)).messages(item, "messages[0]", ERROR)


def parts(item: Any) -> tuple[Part, ...]:
    return tuple(part for message in read(item) for part in message.parts)


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
        {"id": "c", "function": {"name": "f", "arguments": '{"a":1}'}},
        {"id": "c", "name": "f", "args": {"a": 1}, "type": "tool_call"},
        {"id": "c", "name": "f", "input": {"a": 1}, "type": "tool_use"},
        {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {"a": 1}},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": '{"a":1}'},
        {"toolUse": {"toolUseId": "c", "name": "f", "input": {"a": 1}}},
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps('{"a":1}')}},
    ],
)
def test_a_call_in_every_form(call: Any) -> None:
    assert parts({"role": "assistant", "tool_calls": [call]}) == (CALL,)
    assert parts({"role": "assistant", "content": [call]}) == (CALL,) or "function" in call


@pytest.mark.parametrize(
    ("given", "raw", "args"),
    [
        (None, "{}", {}),
        ("", "{}", {}),
        ([1], "[1]", None),
        (5, "5", None),
        ("{'a'", "{'a'", None),
        (True, "true", None),
    ],
)
def test_arguments_that_are_no_object_stay_as_written(given: Any, raw: str, args: Any) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": given}}
    assert parts({"role": "assistant", "tool_calls": [call]}) == (ToolCall(id="c", name="f", raw=raw, args=args),)


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("r", ["r"]),
        (None, []),
        (5, ["5"]),
        ({"a": 1}, ['{"a":1}']),
        ([1, 2], ["[1,2]"]),
        ([{"a": 1}], ['[{"a":1}]']),
        ([{"type": "output_text", "text": "r"}, {"type": "text", "text": "s"}], ["r", "s"]),
        ({"type": "json", "value": {"a": 1}}, ['{"a":1}']),
        ([{"type": "resource", "resource": {"text": "r"}}], ['{"type":"resource","resource":{"text":"r"}}']),
        ([{"type": "reasoning", "text": "r"}], ['{"type":"reasoning","text":"r"}']),
        ([{"type": "tool_use", "name": "f", "input": {}}], ["[f {}]"]),
        ([{"type": "refusal", "refusal": "no"}], ["no"]),
    ],
)
def test_a_result_of_every_type(content: Any, texts: list[str]) -> None:
    (result,) = parts({"role": "tool", "tool_call_id": "c", "content": content})
    assert result == ToolResult(call_id="c", parts=tuple(Text(text=text) for text in texts))


@pytest.mark.parametrize("sign", [{"is_error": True}, {"isError": "true"}, {"status": "error"}])
def test_a_failed_result_in_every_form(sign: Any) -> None:
    (result,) = parts({"type": "tool_result", "tool_use_id": "c", "content": "no", **sign})
    assert result == ToolResult(call_id="c", parts=(Text(text="no"),), is_error=True)


@pytest.mark.parametrize(
    ("item", "role"),
    [
        ({"role": "human", "content": "a"}, "user"),
        ({"type": "ai", "content": "a"}, "assistant"),
        ({"role": " System ", "content": "a"}, "system"),
        ({"role": "narrator", "content": "a"}, "user"),
        ({"content": "a"}, "user"),
        ({"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]}, "assistant"),
        ({"role": 5, "tool_call_id": "c", "content": "a"}, "tool"),
    ],
)
def test_roles(item: Any, role: str) -> None:
    assert [message.role for message in read(item)] == [role]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "thinking", "thinking": "hm"}, (Reasoning(text="hm"),)),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, (Reasoning(text="hm"),)),
        ({"type": "redacted_thinking"}, ()),
        ({"type": "thinking", "thinking": None}, ()),
        ({"type": "refusal", "refusal": "no"}, (Refusal(text="no"),)),
        ({"type": "text", "text": None}, ()),
        ({"type": "text", "text": 5}, (Text(text="5"),)),
        (None, ()),
        (5, (Text(text="5"),)),
        ("a", (Text(text="a"),)),
    ],
)
def test_parts_of_the_assistant(part: Any, expected: tuple[Part, ...]) -> None:
    assert parts({"role": "assistant", "content": [part]}) == expected


def test_parts_are_in_messages_of_roles_that_may_have_them() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://a"}}
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "r"}
    found = read({"role": "assistant", "content": ["a", image, call, result, "b"]})
    assert [message.role for message in found] == ["assistant", "user", "assistant", "tool", "assistant"]
    assert [message.role for message in read({"role": "user", "content": ["a", call, result]})] == [
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    "calls", [None, [], {}, "", [None], [{}], {"id": "c", "type": "function", "function": {"name": "f"}}, "x", [5]]
)
def test_a_list_of_calls_that_is_none(calls: Any) -> None:
    found = parts({"role": "assistant", "content": "a", "tool_calls": calls})
    assert found[0] == Text(text="a")
    assert len(found) == (2 if calls in ("x", [5]) or (isinstance(calls, dict) and calls) else 1)


def test_each_message_has_a_loss_that_names_its_place() -> None:
    reader = HistoryReader("chat", refuse)
    read({"role": "user", "content": "a"}, reader)
    assert [(loss.feature, loss.where) for loss in reader.losses] == [("history.form", "messages[0].content")]


@pytest.mark.parametrize("item", [5, True, {"x": 1}, {"role": "narrator"}, {"type": "function_call", "id": "fc_1"}])
def test_what_has_no_meaning_is_refused_with_the_error_of_the_decoder(item: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        read(item)
    assert caught.value is ERROR


def test_lists_in_lists_end() -> None:
    nested: Any = "a"
    for _ in range(50):
        nested = [nested]
    with pytest.raises(BadRequest):
        read(nested)
    assert parts([["a"], "b"]) == (Text(text="a"), Text(text="b"))


def test_members_that_the_dialect_alone_knows_are_kept() -> None:
    reader = HistoryReader("chat", refuse, members=("name",))
    (message,) = read({"role": "user", "name": "Ann", "usage": {}, "content": "a"}, reader)
    assert message.extra == {"chat": {"name": "Ann"}}


def test_the_reading_of_the_decoder_comes_first() -> None:
    own = Opaque(dialect="chat", value={"type": "video_url"})
    (message,) = read({"role": "user", "content": [{}]}, HistoryReader("chat", lambda *_: own))
    assert message.parts == (own,)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("chat", {"messages": [{"role": "user", "content": "a"}], "tool_choice": "auto", "parallel_tool_calls": True}),
        ("responses", {"input": "a", "tool_choice": "required"}),
        ("messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 9, "tool_choice": {"type": "any"}}),
        ("gemini", {"contents": {"parts": [{"text": "a"}]}, "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
    ],
)
def test_a_choice_without_tools_is_dropped(dialect: str, body: dict[str, Any]) -> None:
    request = DIALECTS[dialect].decode_request(json.dumps({"model": "m", **body}).encode(), {})
    assert (request.tool_choice, request.parallel_calls) == (None, None)
    assert {loss.feature for loss in request.repaired} == {"history.tool_choice"}
    assert not {"tool_choice", "parallel_tool_calls", "toolConfig"} & request.source.keys()


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("responses", {"input": [], "instructions": "a"}),
        ("responses", {"instructions": "a"}),
        ("messages", {"messages": [], "max_tokens": 9, "system": "a"}),
        ("gemini", {"contents": [], "systemInstruction": {"parts": [{"text": "a"}]}}),
    ],
)
def test_instructions_without_messages_get_one(dialect: str, body: dict[str, Any]) -> None:
    request = DIALECTS[dialect].decode_request(json.dumps({"model": "m", **body}).encode(), {})
    assert [message.role for message in request.messages] == ["system", "user"]
    assert [loss.feature for loss in request.repaired] == ["history.opening"]


@pytest.mark.parametrize("item", [{"id": "m1"}, {"id": None, "type": "message", "status": "completed"}])
def test_a_message_with_nothing_but_an_id_is_dropped(item: Any) -> None:
    reader = HistoryReader("chat", lambda *_: Text(text=""))
    assert reader.messages(item, "messages[0]", BadRequest("no")) == []
    assert [loss.feature for loss in reader.losses] == ["history.empty"]
