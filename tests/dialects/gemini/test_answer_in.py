"""Gemini answers in: chunks, bodies, blocks and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.codec_harness import answer_in, body_in, events_in, failure, irregular_in, make_request, terminal
from tests.dialects.upstream_events import gemini_call, gemini_chunk, sse
from toolwire.dialects.base import OTHER_CHOICES
from toolwire.dialects.gemini.answer_in import Candidate, Nameless
from toolwire.dialects.shared.answer_in import Assembly
from toolwire.events import Event, Finished, Noted, PartEnded, Started, fold
from toolwire.types import Citation, Opaque, Part, Reasoning, Refusal, Request, Text, ToolCall

TOOLS = [{"functionDeclarations": [{"name": "weather", "parametersJsonSchema": {"type": "object"}}]}]


def events(*chunks: bytes, **members: Any) -> Any:
    return events_in("gemini", *chunks, request=make_request("gemini", **members))


def body(value: Any, **members: Any) -> Any:
    return body_in("gemini", json.dumps(value).encode(), make_request("gemini", is_stream=False, **members))


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


def test_a_whole_body_gives_the_same_answer() -> None:
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
def test_a_call_that_the_model_wrote_wrong_is_an_error_with_its_text(finish: str, is_stream: bool) -> None:
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


def test_a_second_candidate_where_one_was_requested_is_dropped_and_reported() -> None:
    wire = [
        gemini_chunk(gemini_call("x", "f", {"a": 1})),
        gemini_chunk(gemini_call("y", "f", {"b": 2}), index=1),
        gemini_chunk({"text": ""}, finish="STOP"),
        gemini_chunk({"text": ""}, finish="STOP", index=1),
    ]
    for request in (make_request("gemini"), make_request("messages")):
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
    request: Request = make_request("chat", tools=[{"type": "function", "function": {"name": "3d", "parameters": {}}}])
    found = events_in("gemini", gemini_chunk(gemini_call("a", "_3d", {}), finish="STOP"), request=request)
    (part,) = [event.part for event in found if isinstance(event, PartEnded)]
    assert isinstance(part, ToolCall)
    assert part.name == "3d"


def chunk(*parts: Any, **members: Any) -> Any:
    return {"content": {"parts": list(parts), "role": "model"}, **members}


def parts_of(*chunks: Any, is_whole: bool = False, offered: frozenset[str] = frozenset()) -> list[Part]:
    candidate = Candidate(Assembly(), 0, offered)
    events: list[Event] = []
    for value in chunks:
        events += candidate.read(value, is_whole=is_whole)
    events += candidate.end()[0]
    return [event.part for event in events if isinstance(event, PartEnded)]


def test_pieces_of_text_are_one_part_and_of_a_body_each_its_own() -> None:
    pieces = [chunk({"text": "a"}), chunk({"text": "b"}, {"text": "c"})]
    assert parts_of(*pieces) == [Text(text="abc")]
    whole = parts_of(*pieces, is_whole=True)
    assert whole == [Text(text="a"), *(Text(text=text, is_continuation=True) for text in "bc")]


def test_reasoning_and_text_are_separate() -> None:
    found = parts_of(
        chunk({"text": "let ", "thought": True}),
        chunk({"text": "me", "thought": True}, {"text": "So"}),
        chunk({"text": "hm", "thought": True}),
        chunk({"text": "it is."}),
    )
    assert [(type(part).__name__, getattr(part, "text", "")) for part in found] == [
        ("Reasoning", "let me"), ("Text", "So"), ("Reasoning", "hm"), ("Text", "it is."),
    ]  # fmt: skip


def test_H002_H016_calls_of_many_chunks_are_many_calls() -> None:
    found = parts_of(
        chunk({"functionCall": {"id": "1", "name": "a", "args": {"n": 1}}}),
        chunk({"functionCall": {"id": "2", "name": "a", "args": {"n": 1}}}),
        chunk({"functionCall": {"name": "b"}}, {"functionCall": {"name": "b", "args": None}}),
    )
    assert [(part.id, part.name, part.raw) for part in found if isinstance(part, ToolCall)] == [
        ("1", "a", '{"n":1}'), ("2", "a", '{"n":1}'), ("", "b", "{}"), ("", "b", "{}"),
    ]  # fmt: skip


def test_H074_a_signature_stays_on_its_part() -> None:
    found = parts_of(
        chunk({"text": "why", "thought": True, "thoughtSignature": "QQ=="}),
        chunk({"text": "because", "thought": True}),
        chunk({"text": "one"}),
        chunk({"text": "two", "thoughtSignature": "Qg=="}),
        chunk({"text": "three"}),
        chunk({"functionCall": {"name": "f"}, "thoughtSignature": "Qw=="}, {"functionCall": {"name": "g"}}),
    )
    assert found[:2] == [
        Reasoning(text="why", encrypted="QQ==", extra={"gemini": {}}), Reasoning(text="because", extra={"gemini": {}}),
    ]  # fmt: skip
    assert found[2:5] == [
        Text(text="one"),
        Text(text="two", is_continuation=True, extra={"gemini": {"thoughtSignature": "Qg=="}}),
        Text(text="three", is_continuation=True),
    ]
    assert [part.extra for part in found[5:]] == [{"gemini": {"thoughtSignature": "Qw=="}}, {}]


def test_H074_a_signature_without_a_word_goes_before_what_it_led_to() -> None:
    found = parts_of(
        chunk({"text": "so"}), chunk({"text": "", "thoughtSignature": "QQ=="}), chunk({"functionCall": {"name": "f"}})
    )
    assert found[:2] == [Text(text="so"), Reasoning(text="", encrypted="QQ==", extra={"gemini": {}})]


def test_H074_a_signature_at_the_end_belongs_to_the_answer() -> None:
    candidate = Candidate(Assembly(), 0, frozenset())
    candidate.read(chunk({"text": "so"}), is_whole=False)
    candidate.read(chunk({"text": "", "thoughtSignature": "QQ=="}, finishReason="STOP"), is_whole=False)
    assert candidate.finish == "STOP"
    _, choice = candidate.end()
    assert choice.extra == {"gemini": {"thoughtSignature": "QQ=="}}


def test_H029_events_after_an_end_continue_the_answer() -> None:
    candidate = Candidate(Assembly(), 0, frozenset())
    candidate.read(chunk({"text": "a"}, finishReason="STOP"), is_whole=False)
    assert candidate.finish == "STOP"
    candidate.read(chunk({"text": "b"}), is_whole=False)
    assert candidate.finish == ""
    candidate.read({"finishReason": "MAX_TOKENS"}, is_whole=False)
    assert candidate.end()[1].reason == "length"


@pytest.mark.parametrize(
    ("finish", "has_call", "reason"),
    [
        ("STOP", False, "stop"), ("STOP", True, "tool_calls"), ("MAX_TOKENS", True, "length"), ("SAFETY", True, "refused"),
        ("OTHER", False, "other"), ("OTHER", True, "tool_calls"), ("NEW_WORD", False, "other"), ("LANGUAGE", False, "refused"),
    ],
)  # fmt: skip
def test_H028_how_it_ended(finish: str, has_call: bool, reason: str) -> None:
    candidate = Candidate(Assembly(), 0, frozenset())
    part = {"functionCall": {"name": "f"}} if has_call else {"text": "x"}
    candidate.read(chunk(part, finishReason=finish), is_whole=False)
    choice = candidate.end()[1]
    assert (choice.reason, choice.raw_reason) == (reason, finish)


def test_the_stop_reason_is_sent_where_nothing_else_is() -> None:
    refused = {"finishReason": "PROHIBITED_CONTENT", "finishMessage": "Not this."}
    (told,) = parts_of(refused)
    assert told == Refusal(text="The provider ended the answer: PROHIBITED_CONTENT. Not this.", extra={"gemini": {}})
    assert parts_of(chunk({"text": "I"}, **refused)) == [Text(text="I")]


def test_H054_a_name_that_had_to_change_is_the_tools_own_again() -> None:
    (part,) = parts_of(chunk({"functionCall": {"name": "_3d"}}), offered=frozenset({"3d"}))
    assert isinstance(part, ToolCall)
    assert part.name == "3d"


def test_a_call_without_a_name_is_rejected() -> None:
    with pytest.raises(Nameless):
        parts_of(chunk({"functionCall": {"args": {}}}))


def test_arguments_in_pieces_only_where_they_were_requested() -> None:
    pieces = [
        {"functionCall": {"name": "f", "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]}},
        {"functionCall": {}},
    ]
    assert parts_of(*map(chunk, pieces)) == [Opaque(dialect="gemini", value=piece) for piece in pieces]


def test_other_parts_are_carried() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "x"}}
    assert parts_of(chunk({"text": "a"}, image, {"text": "b"})) == [
        Text(text="a"), Opaque(dialect="gemini", value=image), Text(text="b"),
    ]  # fmt: skip


def test_sources_are_the_last_texts() -> None:
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
        "groundingSupports": [{"segment": {"endIndex": 5, "text": "It is"}, "groundingChunkIndices": [0]}],
    }
    cited = (Citation(url="https://a.example", title="A", quote="It is", start=0, end=5),)
    for is_whole in (True, False):
        found = parts_of(chunk({"text": "It is 18 C."}, groundingMetadata=grounding), is_whole=is_whole)
        assert found == [Text(text="It is 18 C.", citations=cited)]


@pytest.mark.parametrize(
    "value", [{"content": 1}, {"content": {"parts": 1}}, {"content": {"parts": [1, None, {}]}}, {}]
)
def test_odd_chunks_say_nothing(value: Any) -> None:
    assert [part for part in parts_of(value) if not isinstance(part, Opaque)] == []
