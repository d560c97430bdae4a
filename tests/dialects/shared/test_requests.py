"""Losses in the same words everywhere."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import NAMES, make_request, message_of
from tests.dialects.refused_bodies import NOT_OBJECTS, refusal
from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.requests import (
    FAILED,
    as_note,
    fit_id,
    foreign_members,
    form_instruction,
    is_idle,
    lose_amount,
    lose_summary,
    lose_thinking,
    shared_members,
    split_failure,
    split_head,
    split_result,
    whole_schema,
    with_effort,
    with_failure,
    with_failure_first,
    with_listener,
    with_one_head,
)
from toolwire.errors import BadRequest
from toolwire.profiles import ANTHROPIC, OPENAI_RESPONSES, PLAIN_CHAT
from toolwire.types import (
    Loss,
    Media,
    Message,
    OutputFormat,
    Reasoning,
    Request,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from toolwire.wire.fields import body_object


def test_only_members_that_mean_something_are_lost() -> None:
    losses: list[Loss] = []
    members = {"logit_bias": {"1": 1}, "store": False, "modalities": None, "functions": [], "audio": {}, "x" * 99: 1}
    request = Request(model="m", messages=(), extra={"chat": members, "messages": {"container": "own"}})
    foreign_members(request, "messages", losses)
    assert losses == [
        Loss("request.logit_bias", "logit_bias", "messages has no such member"),
        Loss("request." + "x" * 60, "x" * 60, "messages has no such member"),
    ]


def test_H076_thoughts_of_others_are_never_rewritten() -> None:
    losses: list[Loss] = []
    lose_thinking(Reasoning(text="hm"), "messages[3]", losses)
    assert losses == [Loss("reasoning", "messages[3]", "reasoning of another dialect cannot be forwarded")]


def test_a_schema_has_the_type_object() -> None:
    assert whole_schema(None) == whole_schema({}) == {"type": "object", "properties": {}}
    assert whole_schema({"required": ["a"]}) == {"type": "object", "properties": {}, "required": ["a"]}
    kept = {"type": "object"}
    assert whole_schema(kept) is kept


def test_members_of_messages_parts_and_tools_are_lost_by_name_and_once() -> None:
    parts = (Text(text="hi", extra={"messages": {"citations": [1]}}),) * 2
    result = ToolResult(call_id="c", parts=(parts[0],), extra={"messages": {"toolset_name": "t"}})
    messages = (
        Message(role="user", parts=parts, extra={"messages": {"output_config": {"effort": "low"}}}),
        Message(
            role="assistant",
            parts=(ToolCall(id="c", name="f", raw="{}", extra={"messages": {"caller": {"type": "x"}}}),),
        ),
        Message(role="tool", parts=(result,)),
    )
    tools = (Tool(name="f", extra={"messages": {"input_examples": [{}], "allowed_callers": ["direct"]}}),)
    losses: list[Loss] = []
    foreign_members(Request(model="m", messages=messages, tools=tools, origin="messages"), "chat", losses)
    assert [(loss.feature, loss.where) for loss in losses] == [
        ("message.output_config.effort", "messages[0].output_config.effort"),
        ("part.citations", "messages[0].citations"),
        ("call.caller", "messages[1].caller"),
        ("result.toolset_name", "messages[2].toolset_name"),
        ("tool.input_examples", 'tools "f".input_examples'),
    ]


def test_however_many_names_a_client_invents_the_list_of_losses_is_bounded() -> None:
    losses: list[Loss] = []
    members = {f"x_{number}": 1 for number in range(1000)}
    foreign_members(Request(model="m", messages=(), origin="chat", extra={"chat": members}), "messages", losses)
    assert len(losses) == 100


def test_members_that_are_read_in_part_are_lost_one_by_one() -> None:
    losses: list[Loss] = []
    extra = {"responses": {"reasoning": {"context": "all_turns", "mode": None}, "text": {"x": 1}}}
    foreign_members(Request(model="m", messages=(), origin="responses", extra=extra), "chat", losses)
    assert [loss.feature for loss in losses] == ["request.reasoning.context", "request.text.x"]


@pytest.mark.parametrize(
    ("dialect", "name", "value", "expected"),
    [
        ("chat", "store", False, True),
        ("chat", "store", True, False),
        ("chat", "service_tier", "default", True),
        ("chat", "service_tier", "flex", False),
        ("responses", "include", ["reasoning.encrypted_content"], True),
        ("responses", "include", ["file_search_call.results"], False),
        ("responses", "include", [{}], False),
        ("responses", "truncation", "auto", False),
        ("gemini", "safetySettings", [{"category": "x", "threshold": "BLOCK_NONE"}], True),
        ("gemini", "safetySettings", [{"category": "x", "threshold": ["BLOCK_NONE"]}], False),
        ("gemini", "safetySettings", [5], False),
        ("messages", "caller", {"type": "direct"}, True),
    ],
)
def test_a_value_that_requests_the_default_is_idle(dialect: str, name: str, value: Any, expected: bool) -> None:
    assert is_idle(dialect, name, value) is expected


def test_members_that_two_dialects_share_go_where_the_back_end_takes_them() -> None:
    members = {"prompt_cache_key": "k", "service_tier": "flex", "logit_bias": {"1": 1}, "safety_identifier": None}
    request = Request(model="m", messages=(), origin="chat", extra={"chat": members})
    assert shared_members(request, "responses", OPENAI_RESPONSES) == {"prompt_cache_key": "k", "service_tier": "flex"}
    assert shared_members(request, "messages", ANTHROPIC) == {}
    back = Request(model="m", messages=(), origin="responses", extra={"responses": members})
    assert shared_members(back, "chat", PLAIN_CHAT) == {}
    losses: list[Loss] = []
    foreign_members(request, "responses", losses, shared_members(request, "responses", OPENAI_RESPONSES))
    assert [loss.feature for loss in losses] == ["request.logit_bias"]


def test_metadata_is_lost_by_its_name() -> None:
    losses: list[Loss] = []
    request = Request(model="m", messages=(), origin="responses", metadata={"a": "b"})
    foreign_members(request, "chat", losses)
    foreign_members(request, "chat", losses, {"metadata": {}})
    assert [loss.feature for loss in losses] == ["request.metadata"]


@pytest.mark.parametrize("body", NOT_OBJECTS, ids=lambda body: repr(body[:20]))
@pytest.mark.parametrize("dialect", NAMES)
def test_what_is_no_object_is_refused_in_every_dialect(dialect: str, body: bytes) -> None:
    assert refusal(dialect, body).code == "invalid_json"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b" ", "the body is empty; expected a JSON object."),
        (b"[]", "the body is an array; expected a JSON object."),
        (b"null", "the body is null; expected a JSON object."),
        (b'{"a":"\xff"}', "the body is not valid JSON: it is not UTF-8 at byte 6."),
    ],
)
def test_the_words(body: bytes, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        body_object(body)
    assert caught.value.message == words


def test_an_object_is_read_exactly() -> None:
    assert body_object(rb'{"n":12345678901234567890123,"s":"\ud800"}') == {"n": 12345678901234567890123, "s": "\ud800"}


def test_only_what_stands_before_all_else_is_the_head() -> None:
    roles: tuple[Role, ...] = ("system", "developer", "user", "system", "assistant")
    head, rest = split_head(tuple(Message(role=role, parts=()) for role in roles))
    assert [message.role for message in head] == ["system", "developer"]
    assert [message.role for message in rest] == ["user", "system", "assistant"]
    assert split_head(()) == ([], [])


def test_a_conversation_of_instructions_alone_gets_a_message_of_the_users() -> None:
    losses: list[Loss] = []
    head = (message_of("system", Text(text="a")), message_of("developer", Text(text="b")))
    assert with_listener(head, losses) == (head[0], message_of("user", Text(text="b")))
    assert [loss.feature for loss in losses] == ["role.system"]
    for spoken in ((*head, message_of("user")), ()):
        assert with_listener(spoken, losses) is spoken
    assert len(losses) == 1


def test_H112_instructions_at_the_start_become_one_message() -> None:
    rest = (message_of("user", Text(text="hi")), message_of("system", Text(text="later")))
    head = (message_of("system", Text(text="a"), Text(text="b")), message_of("developer", Text(text="c")))
    assert with_one_head((*head, *rest)) == (message_of("system", Text(text="a\n\nb\n\nc")), *rest)
    image = Media(kind="image", url="https://a/b.png")
    assert with_one_head((head[1], message_of("system", image))) == (message_of("developer", Text(text="c"), image),)
    single = (head[0], *rest)
    assert with_one_head(single) is single


def test_H141_a_note_is_labelled_and_recorded() -> None:
    losses: list[Loss] = []
    assert as_note("a", "messages[3]", losses) == "<system>\na\n</system>"
    assert [(loss.feature, loss.where) for loss in losses] == [("role.system", "messages[3]")]


SAID: dict[str, dict[str, Any]] = {
    "chat": {"reasoning_effort": "high"},
    "messages": {"output_config": {"effort": "high"}},
    "responses": {"reasoning": {"effort": "high"}},
}


@pytest.mark.parametrize("dialect", NAMES)
def test_it_equals_a_request_with_that_effort(dialect: str) -> None:
    given = with_effort(make_request(dialect), "high")
    decoded = make_request(dialect, **SAID[dialect])
    assert given.thinking == decoded.thinking == Thinking(effort="high")
    assert given.source == decoded.source
    assert json.loads(given.wire) == json.loads(decoded.wire)
    again = DIALECTS[dialect].decode_request(given.wire, {})
    assert again.thinking == given.thinking


@pytest.mark.parametrize(
    ("dialect", "members"),
    [
        ("chat", {"reasoning_effort": "low"}),
        ("chat", {"reasoning_effort": "none"}),
        ("responses", {"reasoning": {"effort": "low", "summary": "auto"}}),
        ("messages", {"output_config": {"effort": "low"}}),
        ("messages", {"thinking": {"type": "enabled", "budget_tokens": 2000}}),
        ("messages", {"thinking": {"type": "disabled"}}),
    ],
)
def test_the_clients_own_word_stands(dialect: str, members: dict[str, Any]) -> None:
    request = make_request(dialect, **members)
    assert with_effort(request, "high") is request


def test_what_stands_beside_it_stays() -> None:
    request = with_effort(make_request("responses", reasoning={"summary": "auto"}, temperature=0.10), "xhigh")
    assert request.source["reasoning"] == {"summary": "auto", "effort": "xhigh"}
    assert request.thinking == Thinking(effort="xhigh", summary="auto")
    assert with_effort(make_request("responses", reasoning=None), "low").source["reasoning"] == {"effort": "low"}
    adaptive = with_effort(make_request("messages", thinking={"type": "adaptive"}), "medium")
    assert adaptive.source["thinking"] == {"type": "adaptive"}
    assert adaptive.source["output_config"] == {"effort": "medium"}


def test_messages_has_no_least_effort() -> None:
    assert with_effort(make_request("messages"), "minimal").source["output_config"] == {"effort": "low"}
    assert with_effort(make_request("chat"), "minimal").source["reasoning_effort"] == "minimal"


def test_without_an_effort_or_a_dialect() -> None:
    request = make_request("chat")
    assert with_effort(request, "") is request
    bare = Request(model="m", messages=())
    assert with_effort(bare, "high") == msgspec.structs.replace(bare, thinking=Thinking(effort="high"))


def test_gemini_has_thinking_levels_without_the_second_highest() -> None:
    given = with_effort(make_request("gemini", generationConfig={"temperature": 1}), "xhigh")
    assert given.thinking == Thinking(effort="xhigh")
    config = {"temperature": 1, "thinkingConfig": {"thinkingLevel": "high"}}
    assert given.source["generationConfig"] == json.loads(given.wire)["generationConfig"] == config
    decoded = make_request("gemini", generationConfig={"thinkingConfig": {"thinkingBudget": 5}})
    assert with_effort(decoded, "high") is decoded


@pytest.mark.parametrize(
    ("thinking", "features"),
    [
        (Thinking(budget=5, mode="on"), ["thinking.budget"]),
        (Thinking(mode="off"), ["thinking"]),
        (Thinking(mode="adaptive"), ["thinking"]),
        (Thinking(), []),
        (Thinking(summary="auto"), ["thinking.summary"]),
        (Thinking(summary="none"), []),
    ],
)
def test_what_an_effort_cannot_say_is_lost(thinking: Thinking, features: list[str]) -> None:
    losses: list[Loss] = []
    lose_amount(thinking, losses)
    lose_summary(thinking, losses)
    assert [loss.feature for loss in losses] == features


@given(st.text(max_size=20) | st.sampled_from(["\n", "\nx", FAILED, f"{FAILED}\nx"]))
def test_H093_what_was_written_is_read_back(text: str) -> None:
    assert split_failure(with_failure(text)) == text


def test_other_texts_are_no_failures() -> None:
    for text in ("", "fine", f"{FAILED} Really.", f" {FAILED}", f"It said: {FAILED}"):
        assert split_failure(text) is None


def test_the_line_is_taken_from_the_first_part() -> None:
    image = Media(kind="image", url="u")
    assert split_result((Text(text=FAILED), image)) == (True, (image,))
    assert split_result((Text(text=f"{FAILED}\na"), image)) == (True, (Text(text="a"), image))
    assert split_result((Text(text=FAILED),)) == (True, (Text(text=""),))
    assert split_result((image, Text(text=FAILED))) == (False, (image, Text(text=FAILED)))
    assert split_result(()) == (False, ())


def test_the_line_stands_before_parts_of_any_kind() -> None:
    image = Media(kind="image", url="u")
    assert with_failure_first([Text(text="a"), image]) == [Text(text=f"{FAILED}\na"), image]
    assert with_failure_first([image]) == [Text(text=FAILED), image]
    assert with_failure_first([]) == [Text(text=FAILED)]


def test_free_text_needs_no_instruction() -> None:
    assert form_instruction(OutputFormat(), has_tools=True) == ""


def test_json_is_requested_with_its_schema() -> None:
    assert (
        form_instruction(OutputFormat(format="json"), has_tools=False)
        == "Your answer must be one JSON object, and nothing else."
    )
    decoded = form_instruction(OutputFormat(format="schema", schema={"type": "object"}), has_tools=True)
    assert decoded == 'An answer that calls no tool must be JSON, and nothing else, by this schema: {"type":"object"}'


@pytest.mark.parametrize("call_id", ["call_1", "toolu_01A-b", "x" * 64])
def test_legal_ids_stay(call_id: str) -> None:
    assert fit_id(call_id, 64) == call_id


@given(st.text(min_size=1, max_size=100), st.sampled_from([40, 64]))
def test_H043_H045_every_id_becomes_legal_and_stays_so(call_id: str, limit: int) -> None:
    fitted = fit_id(call_id, limit)
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", fitted)
    assert len(fitted) <= limit
    assert fit_id(fitted, limit) == fitted
    assert fit_id(call_id, limit) == fitted


def test_H049_different_ids_stay_different() -> None:
    ids = ["a.b", "a:b", "a_b", "a b", "\ud800", "\ud801", "x" * 65, "x" * 66, "x" * 64]
    assert len({fit_id(call_id, 64) for call_id in ids}) == len(ids)
