"""Gemini answers in: chunks, bodies, blocks and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.playing import answer_in, asking, body_in, events_in, failure, irregular_in, terminal
from tests.dialects.wires import gemini_call, gemini_chunk, sse
from toolwire.dialects.base import OTHER_CHOICES
from toolwire.events import Finished, Noted, PartEnded, Started, fold
from toolwire.types import Reasoning, Refusal, Request, Text, ToolCall

TOOLS = [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": {"type": "object"}}]}]


def events(*chunks: bytes, **members: Any) -> Any:
    return events_in("gemini", *chunks, request=asking("gemini", **members))


def body(value: Any, **members: Any) -> Any:
    return body_in("gemini", json.dumps(value).encode(), asking("gemini", is_stream=False, **members))


def candidate(*parts: Any, finish: str = "STOP", **members: Any) -> dict[str, Any]:
    content = {"content": {"parts": list(parts), "role": "model"}, "finishReason": finish, "index": 0, **members}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 14}
    return {"candidates": [content], "usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}


def test_a_stream_with_text_and_calls() -> None:
    answer = answer_in(
        "gemini",
        gemini_chunk({"text": "I "}),
        gemini_chunk({"text": "look."}),
        gemini_chunk(gemini_call("a", "weather", {"n": 1.0})),
        gemini_chunk(gemini_call("b", "weather", {"n": 2})),
        gemini_chunk({"text": ""}, finish="STOP"),
    )
    assert (answer.started.id, answer.started.model) == ("r1", "m")
    assert [ended.part for ended in answer.parts] == [
        Text(text="I look."),
        ToolCall(id="a", name="weather", raw='{"n":1.0}', args={"n": 1}),
        ToolCall(id="b", name="weather", raw='{"n":2}', args={"n": 2}),
    ]
    (choice,) = answer.finished.choices
    assert (choice.reason, choice.raw_reason) == ("tool_calls", "STOP")
    assert answer.finished.usage is not None
    assert (answer.finished.usage.input, answer.finished.usage.output) == (9, 5)


def test_a_body_says_the_same() -> None:
    found = fold(body(candidate({"text": "hm", "thought": True}, {"text": "I look."}, gemini_call("a", "weather", {}))))
    assert [type(ended.part) for ended in found.parts] == [Reasoning, Text, ToolCall]
    assert found.finished.choices[0].reason == "tool_calls"


def test_H072_numbers_keep_every_digit() -> None:
    wire = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n":12345678901234567890123,"x":1.10}}}]},"finishReason":"STOP"}]}'
    for found in (body_in("gemini", wire), events_in("gemini", b"data: " + wire + b"\n\n")):
        (part,) = [event.part for event in found if isinstance(event, PartEnded)]
        assert isinstance(part, ToolCall)
        assert part.raw == '{"n":12345678901234567890123,"x":1.10}'


def test_H029_only_the_last_end_counts() -> None:
    found = events(
        gemini_chunk({"text": "a"}, finish="STOP"),
        gemini_chunk(gemini_call("a", "weather", {}), finish="STOP"),
        gemini_chunk({"text": "b"}),
        gemini_chunk(finish="STOP"),
    )
    assert isinstance(found[-1], Finished)
    assert found[-1].choices[0].reason == "tool_calls"
    assert [event.part.name for event in found if isinstance(event, PartEnded) and isinstance(event.part, ToolCall)]
    cut = events(gemini_chunk({"text": "a"}, finish="STOP"), gemini_chunk({"text": "b"}))
    assert failure(cut).error.code == "upstream_cut"


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
def test_a_call_that_the_model_wrote_wrong_is_an_error_with_its_words(finish: str, is_stream: bool) -> None:
    value = candidate({"text": "x"}, finish=finish, finishMessage="print(default_api.f(")
    error = failure(events(sse(value)) if is_stream else body(value)).error
    assert error.code == "malformed_tool_call"
    assert finish in error.message
    assert "print(default_api.f(" in error.message


def test_a_response_that_is_malformed_is_an_error_too() -> None:
    error = failure(body(candidate(finish="MALFORMED_RESPONSE"))).error
    assert (error.code, error.status) == ("upstream_error", 502)


@pytest.mark.parametrize("finish", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"])
def test_what_the_provider_stops_is_refused_with_the_reason(finish: str) -> None:
    found = fold(body(candidate(finish=finish)))
    assert found.finished.choices[0].reason == "refused"
    assert finish in "".join(part.text for part in found.parts_of(0) if isinstance(part, Refusal))
    begun = fold(events(gemini_chunk({"text": "Well"}), gemini_chunk(finish=finish)))
    assert [ended.part for ended in begun.parts] == [Text(text="Well")]
    assert begun.finished.choices[0].raw_reason == finish


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_blocked_prompt_is_refused_with_the_reason(is_stream: bool) -> None:
    value = {
        "promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Not so."},
        "usageMetadata": {"promptTokenCount": 3},
    }
    found = fold(events(sse(value)) if is_stream else body(value))
    assert found.finished.choices[0].reason == "refused"
    (part,) = found.parts_of(0)
    assert part == Refusal(text="The provider blocked the prompt: SAFETY. Not so.", extra={"gemini": {}})


@pytest.mark.parametrize("parts", [[], [{"text": ""}], [{"text": "hm", "thought": True}]])
@pytest.mark.parametrize("is_stream", [True, False])
def test_H061_nothing_at_all_is_an_error_to_who_offers_tools(parts: list[Any], is_stream: bool) -> None:
    value = candidate(*parts)
    found = events(sse(value), tools=TOOLS) if is_stream else body(value, tools=TOOLS)
    assert failure(found).error.code == "empty_answer"
    assert isinstance(terminal(events(sse(value)) if is_stream else body(value)), Finished)
    none = {"functionCallingConfig": {"mode": "NONE"}}
    assert isinstance(terminal(body(value, tools=TOOLS, toolConfig=none)), Finished)
    assert isinstance(terminal(body(candidate(*parts, finish="MAX_TOKENS"), tools=TOOLS)), Finished)


def test_H154_a_stream_without_an_end_is_cut() -> None:
    assert failure(events(b"")).error.code == "upstream_cut"
    assert failure(events(gemini_chunk({"text": "a"}))).error.code == "upstream_cut"
    assert failure(events(sse({"usageMetadata": {"promptTokenCount": 1}}))).error.code == "upstream_cut"


def test_an_error_in_a_stream_is_one() -> None:
    value = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    error = failure(events(gemini_chunk({"text": "a"}), sse(value))).error
    assert (error.status, error.message) == (503, "overloaded")
    listed = json.dumps([value]).encode()
    assert failure(events(listed)).error.status == 503
    assert failure(body(value)).error.message == "overloaded"


def test_a_stream_that_came_as_an_array_is_read_all_the_same() -> None:
    chunks = [candidate({"text": "a"}, finish=""), candidate({"text": "b"})]
    wire = json.dumps(chunks, indent=1).encode()
    assert [event.part for event in events(wire) if isinstance(event, PartEnded)] == [Text(text="ab")]
    assert irregular_in("gemini", wire)


def test_a_stream_that_is_called_a_body_is_read_as_one() -> None:
    wire = gemini_chunk({"text": "a"}) + gemini_chunk({"text": "b"}, finish="STOP")
    assert fold(body_in("gemini", wire)).parts_of(0) == (Text(text="ab"),)


@pytest.mark.parametrize("ending", [b"data: [DONE]\n\n", b"data:\n\n"])
def test_an_end_mark_of_another_dialect_is_overlooked(ending: bytes) -> None:
    found = events(gemini_chunk({"text": "a"}, finish="STOP"), b"data: [DONE]\n\n")
    assert isinstance(found[-1], Finished)
    assert irregular_in("gemini", gemini_chunk({"text": "a"}, finish="STOP") + ending)


@pytest.mark.parametrize(
    "junk", [b"data: 5\n\n", b"data: {}\n\n", b"<html>\n\n", b'data: {"x":1}\n\n', b'data: "a"\n\n']
)
def test_what_is_no_answer_is_an_error(junk: bytes) -> None:
    assert failure(events(junk)).error.status == 502


def test_a_nameless_call_is_garbage() -> None:
    assert failure(body(candidate({"functionCall": {"args": {}}}))).error.code == "upstream_garbage"


def test_a_second_candidate_where_one_was_asked_for_is_left_out_and_reported() -> None:
    wire = [
        gemini_chunk(gemini_call("x", "f", {"a": 1})),
        gemini_chunk(gemini_call("y", "f", {"b": 2}), index=1),
        gemini_chunk({"text": ""}, finish="STOP"),
        gemini_chunk({"text": ""}, finish="STOP", index=1),
    ]
    for request in (asking("gemini"), asking("messages")):
        found = events_in("gemini", *wire, request=request)
        assert [part.id for part in fold(found).parts_of(0) if isinstance(part, ToolCall)] == ["x"]
        assert [choice.index for choice in fold(found).finished.choices] == [0]
        assert [event.note for event in found if isinstance(event, Noted)] == [OTHER_CHOICES]
    assert irregular_in("gemini", b"".join(wire))


def test_the_only_candidate_may_have_any_number() -> None:
    answer = answer_in("gemini", gemini_chunk({"text": "a"}, finish="STOP", index=3))
    assert answer.parts_of(0) == (Text(text="a"),)
    assert [choice.index for choice in answer.finished.choices] == [0]


def test_many_candidates() -> None:
    found = fold(
        events(
            gemini_chunk({"text": "a"}, index=0),
            gemini_chunk({"text": "x"}, index=1),
            gemini_chunk({"text": "b"}, index=0, finish="STOP"),
            gemini_chunk({"text": "y"}, index=1, finish="MAX_TOKENS"),
            generationConfig={"candidateCount": 2},
        )
    )
    assert (found.parts_of(0), found.parts_of(1)) == ((Text(text="ab"),), (Text(text="xy"),))
    assert [choice.reason for choice in found.finished.choices] == ["stop", "length"]


def test_unknown_members_are_kept() -> None:
    value = candidate({"text": "a"}, safetyRatings=[{"category": "c"}], avgLogprobs=-0.1) | {"createTime": "now"}
    found = fold(body(value))
    assert found.started.extra == {"gemini": {"createTime": "now"}}
    members = found.finished.choices[0].extra["gemini"]
    assert members["safetyRatings"] == [{"category": "c"}]


def test_usage_comes_with_the_start_and_the_last_one_counts() -> None:
    first = sse({"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": {"promptTokenCount": 7}})
    found = events(first, gemini_chunk(finish="STOP"))
    assert isinstance(found[0], Started)
    assert found[0].usage is not None
    assert found[0].usage.input == 7
    assert found[-1].usage.input == 9


def test_a_stream_for_another_client_has_its_names_from_that_clients_tools() -> None:
    request: Request = asking("chat", tools=[{"type": "function", "function": {"name": "3d", "parameters": {}}}])
    found = events_in("gemini", gemini_chunk(gemini_call("a", "_3d", {}), finish="STOP"), request=request)
    (part,) = [event.part for event in found if isinstance(event, PartEnded)]
    assert isinstance(part, ToolCall)
    assert part.name == "3d"
