"""Gemini: contents in, and which response answers which call."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.gemini.contents_in import contents_in as read_contents
from toolwire.dialects.gemini.contents_in import history_reader, system_in
from toolwire.dialects.shared.sealed_reasoning import sealed_out
from toolwire.errors import BadRequest
from toolwire.types import Loss, Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

IMAGE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def contents_in(value: Any) -> tuple[Message, ...]:
    return read_contents(value, history_reader())


def message_of(role: str, *parts: Any) -> Any:
    return {"role": role, "parts": list(parts)}


def called(name: str, args: Any = None, **members: Any) -> Any:
    return {"functionCall": {"name": name, "args": args or {}, **members}}


def responded(name: str, response: Any, **members: Any) -> Any:
    return {"functionResponse": {"name": name, "response": response, **members}}


def parts_of(*parts: Any, role: str = "model") -> tuple[Part, ...]:
    return contents_in([message_of(role, *parts)])[0].parts


def pairs(*contents: Any) -> tuple[list[str], list[str]]:
    parts = [part for message in contents_in(list(contents)) for part in message.parts]
    return (
        [part.id for part in parts if isinstance(part, ToolCall)],
        [part.call_id for part in parts if isinstance(part, ToolResult)],
    )


def test_roles_and_texts_in_every_form() -> None:
    messages = contents_in(
        [message_of("user", {"text": "a"}), message_of("model", {"text": "b"}), {"parts": [{"text": "c"}]}]
    )
    assert [(message.role, message.parts) for message in messages] == [
        ("user", (Text(text="a"),)), ("assistant", (Text(text="b"),)), ("user", (Text(text="c"),)),
    ]  # fmt: skip
    assert contents_in("hi")[0].parts == (Text(text="hi"),)
    assert contents_in({"parts": {"text": "hi"}})[0].parts == (Text(text="hi"),)
    assert contents_in([message_of("function", responded("f", {}))])[0].role == "user"


@pytest.mark.parametrize("value", [{"parts": [{"text": "be brief"}]}, {"text": "be brief"}, [{"text": "be brief"}]])
def test_instructions_in_every_form(value: Any) -> None:
    (message,) = system_in(value, "systemInstruction")
    assert (message.role, message.parts, message.is_head) == ("system", (Text(text="be brief"),), True)


def test_no_instructions() -> None:
    assert system_in(None, "s") == system_in({"parts": []}, "s") == system_in("", "s") == ()


def test_snake_case_is_read_and_arguments_keep_their_names() -> None:
    call, result = (
        parts_of({"function_call": {"name": "f", "args": {"some_arg": {"x_y": 1}}}, "thought_signature": "c2ln"})[0],
        parts_of({"function_response": {"name": "f", "response": {"out_put": 1}}}, role="user")[0],
    )
    assert isinstance(call, ToolCall)
    assert call.args == {"some_arg": {"x_y": 1}}
    assert call.extra == {"gemini": {"thoughtSignature": "c2ln"}}
    assert isinstance(result, ToolResult)
    assert result.parts == (Text(text='{"out_put":1}'),)
    (medium,) = parts_of({"inline_data": {"mime_type": "image/png", "data": "eA=="}}, role="user")
    assert medium == Media(kind="image", mime="image/png", data="eA==")


def test_calls_without_ids_get_one_by_their_place_and_responses_pair_by_order() -> None:
    turn = message_of("model", called("a"), called("b"), called("a"))
    back = message_of("user", responded("a", {"output": "1"}), responded("b", {}), responded("a", {"output": "2"}))
    calls, results = pairs(message_of("user", {"text": "x"}), turn, back)
    assert len(set(calls)) == 3
    assert results == calls
    longer = pairs(
        message_of("user", {"text": "x"}),
        turn,
        back,
        message_of("model", called("a")),
        message_of("user", responded("a", {})),
    )
    assert longer[0][:3] == calls
    assert longer[1][3] == longer[0][3]


def test_ids_pair_where_both_sides_have_them_and_names_where_one_has_not() -> None:
    turn = message_of("model", called("a", id="x"), called("a", id="y"))
    assert pairs(turn, message_of("user", responded("a", {}, id="y"), responded("a", {}, id="x")))[1] == ["y", "x"]
    assert pairs(turn, message_of("user", responded("a", {}), responded("a", {})))[1] == ["x", "y"]
    calls, results = pairs(
        message_of("model", called("a")), message_of("user", responded("a", {}, id="made-by-the-client"))
    )
    assert results == calls
    assert pairs(message_of("user", responded("a", {}, id="z")))[1] == ["z"]
    assert pairs(message_of("user", responded("a", {})))[1] == ["unknown_a"]


@pytest.mark.parametrize(
    ("response", "is_error", "text"),
    [
        ({"output": "18 C"}, False, "18 C"),
        ({"result": "18 C"}, False, "18 C"),
        ({"output": {"n": 1}}, False, '{"n":1}'),
        ({"error": "no such city"}, True, "no such city"),
        ({"error": "x", "output": "y"}, False, '{"error":"x","output":"y"}'),
        ({"temp": 18, "id": 12345678901234567890123}, False, '{"temp":18,"id":12345678901234567890123}'),
    ],
)
def test_H093_text_of_a_function_response(response: Any, is_error: bool, text: str) -> None:
    (result,) = parts_of(responded("f", response), role="user")
    assert isinstance(result, ToolResult)
    assert (result.is_error, result.parts) == (is_error, (Text(text=text),))


def test_a_response_may_hold_media_and_members_of_its_own() -> None:
    (result,) = parts_of(responded("f", {"output": "see"}, parts=[IMAGE], willContinue=True), role="user")
    assert isinstance(result, ToolResult)
    assert result.parts == (Text(text="see"), Media(kind="image", mime="image/png", data="iVBORw0KGgo="))
    assert result.extra == {"gemini": {"functionResponse": {"willContinue": True}}}


def test_media() -> None:
    file, kept, sound = parts_of(
        {"fileData": {"fileUri": "https://a.example/x.pdf", "mimeType": "application/pdf"}},
        {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "eA==", "displayName": "n"}, "videoMetadata": {"fps": 1}},
        role="user",
    )
    assert file == Media(kind="file", mime="application/pdf", url="https://a.example/x.pdf")
    assert isinstance(kept, Media)
    assert kept.file_id == "https://generativelanguage.googleapis.com/v1beta/files/abc"
    assert sound == Media(
        kind="audio", mime="audio/wav", data="eA==", name="n", extra={"gemini": {"videoMetadata": {"fps": 1}}}
    )


def test_parts_that_are_not_ours_to_read_are_kept() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    assert parts_of(code, {}) == (Opaque(dialect="gemini", value=code),)


def test_H074_signatures_stay_on_their_parts() -> None:
    parts = parts_of(
        {"text": "hm", "thought": True, "thoughtSignature": "YQ=="},
        {"text": "I look.", "thoughtSignature": "Yg=="},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "Yw=="},
    )
    assert parts[0] == Reasoning(text="hm", encrypted="YQ==", extra={"gemini": {}})
    assert parts[1] == Text(text="I look.", extra={"gemini": {"thoughtSignature": "Yg=="}})
    assert parts[2].extra == {"gemini": {"thoughtSignature": "Yw=="}}


def test_H074_a_signature_without_a_word_is_its_neighbours() -> None:
    ended = parts_of({"text": "done."}, {"text": "", "thoughtSignature": "YQ=="})
    assert ended == (Text(text="done.", extra={"gemini": {"thoughtSignature": "YQ=="}}),)
    alone = parts_of({"text": "", "thoughtSignature": "YQ=="}, called("f"))
    assert alone[0] == Reasoning(text="", encrypted="YQ==", extra={"gemini": {}})


def test_a_sealed_thought_is_the_one_it_was_however_it_was_cut() -> None:
    thought = Reasoning(text="let me think", signature="c2ln", extra={"messages": {}})
    seal = sealed_out(thought)
    pieces = ({"text": "let me ", "thought": True}, {"text": "think", "thought": True})
    (message,) = contents_in(
        [message_of("model", *pieces, {"text": "", "thought": True, "thoughtSignature": seal}, called("f"))]
    )
    assert message.parts[0] == thought
    assert message.source is None
    whole = parts_of({"text": "let me think", "thought": True, "thoughtSignature": seal})
    assert whole == (thought,)


@pytest.mark.parametrize(("contents", "where"), [(5, "contents"), (None, "contents"), ([5], "contents[0]"), ([{"role": "robot"}], "contents[0].role")])  # fmt: skip
def test_mistakes_are_named_by_their_place(contents: Any, where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        contents_in(contents)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("content", "part", "where", "kind"),
    [
        ({"role": "robot", "parts": [{"text": "a"}]}, Text(text="a"), "contents[0].role", "role"),
        ({"role": "user", "parts": 5}, Text(text="5"), "contents[0].parts", "form"),
        (message_of("user", 5), Text(text="5"), "contents[0].parts[0]", "form"),
        (message_of("user", {"text": 5}), Text(text='{"text":5}'), "contents[0].parts[0]", "form"),
        (message_of("model", {"functionCall": 5}), Text(text='{"functionCall":5}'), "contents[0].parts[0]", "form"),
        (message_of("model", {"functionCall": {"name": ""}}), ToolCall(id="call_1", name="unknown_tool", raw="{}", args={}), "contents[0].parts[0]", "form"),
        (message_of("model", {"functionCall": {"name": "f", "args": [1]}}), ToolCall(id="call_1", name="f", raw="[1]"), "contents[0].parts[0]", "form"),
        (message_of("model", {"functionCall": {"name": "f", "args": '{"a":1}'}}), ToolCall(id="call_1", name="f", raw='{"a":1}', args={"a": 1}), "contents[0].parts[0]", "form"),
        (message_of("user", {"functionResponse": {"name": "f", "response": "x"}}), ToolResult(call_id="unknown_f", name="f", parts=(Text(text="x"),)), "contents[0].parts[0]", "form"),
        (message_of("user", {"inlineData": {"mimeType": "x"}}), Text(text='{"inlineData":{"mimeType":"x"}}'), "contents[0].parts[0]", "form"),
        (message_of("user", {"fileData": 1}), Text(text='{"fileData":1}'), "contents[0].parts[0]", "form"),
    ],
)  # fmt: skip
def test_other_forms_are_read_and_noted_by_their_place(content: Any, part: Part, where: str, kind: str) -> None:
    history = history_reader()
    (message,) = read_contents([content], history)
    assert (message.parts, message.source) == ((part,), None)
    noted: Loss = history.losses[0]
    assert (noted.feature, noted.where) == (f"history.{kind}", where)
