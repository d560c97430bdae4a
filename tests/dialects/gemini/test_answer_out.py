"""Gemini answers out: chunks in order, calls whole, ends in its own words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.codec_harness import NOW, body_in, body_out, events_in, frames, make_request, numbered_ids, out
from tests.dialects.upstream_events import REGULAR
from toolwire.dialects.base import AnswerContext
from toolwire.dialects.gemini.answer_out import GeminiStreamEncoder, finish_of
from toolwire.dialects.shared.sealed_reasoning import sealed_in
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started, emptied, fold
from toolwire.types import Choice, Citation, Extra, Media, Opaque, Part, Reasoning, Refusal, Text, ToolCall, Usage


def events_of(*parts: Part, choice: Choice | None = None, **members: Any) -> list[Event]:
    events: list[Event] = [Started(id="x", model="gpt")]
    for index, part in enumerate(parts):
        text = part.raw if isinstance(part, ToolCall) else getattr(part, "text", "")
        events.append(PartStarted(index=index, part=emptied(part)))
        events += [PartDelta(index, text)] if text else []
        events.append(PartEnded(index=index, part=part))
    return [*events, Finished(choices=(choice or Choice(reason="stop"),), usage=Usage(input=3, output=2), **members)]


def chunks(*events: Event) -> list[Any]:
    return [value for _, value in frames(out("gemini", events))]


def parts_in(values: list[Any]) -> list[Any]:
    found = [part for value in values for one in value.get("candidates", ()) for part in one["content"]["parts"]]
    return [part for part in found if part != {"text": ""}]


def test_a_stream_of_chunks() -> None:
    values = chunks(*events_of(Text(text="hi"), choice=Choice(reason="stop")))
    assert [value["candidates"][0]["content"] for value in values] == [
        {"parts": [{"text": "hi"}], "role": "model"}, {"parts": [{"text": ""}], "role": "model"},
    ]  # fmt: skip
    assert all(value["modelVersion"] == "m" and value["responseId"] for value in values)
    assert len({value["responseId"] for value in values}) == 1
    assert values[-1]["candidates"][0]["finishReason"] == "STOP"
    assert values[-1]["usageMetadata"] == {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}


def test_H002_H028_calls_leave_whole_each_with_its_id() -> None:
    calls = [ToolCall(id=f"c{number}", name="f", raw='{"a": [1]}', args={"a": [1]}) for number in range(3)]
    values = chunks(*events_of(Text(text="x"), *calls, choice=Choice(reason="tool_calls")))
    written = [part["functionCall"] for part in parts_in(values) if "functionCall" in part]
    assert written == [{"id": f"c{number}", "name": "f", "args": {"a": [1]}} for number in range(3)]
    assert values[-1]["candidates"][0]["finishReason"] == "STOP"


def test_H003_calls_that_grow_at_once_leave_in_their_order() -> None:
    first, second = (ToolCall(id=one, name=one, raw="{}", args={}) for one in ("a", "b"))
    values = chunks(
        Started(id="", model=""),
        PartStarted(index=0, part=emptied(first)),
        PartStarted(index=1, part=emptied(second)),
        PartStarted(index=2, part=Text(text="")),
        PartDelta(1, "{}"),
        PartEnded(index=1, part=second),
        PartDelta(2, "after"),
        PartDelta(0, "{}"),
        PartEnded(index=0, part=first),
        PartDelta(2, " all"),
        PartEnded(index=2, part=Text(text="after all")),
        Finished(choices=(Choice(reason="tool_calls"),)),
    )
    names = [part["functionCall"]["name"] if "functionCall" in part else part["text"] for part in parts_in(values)]
    assert names == ["a", "b", "after", " all"]


def test_H024_arguments_that_are_no_object_stay_readable() -> None:
    (part,) = body_out("gemini", events_of(ToolCall(id="a", name="f", raw='{"a":')))["candidates"][0]["content"][
        "parts"
    ]
    assert part["functionCall"]["args"] == {"_raw": '{"a":'}
    (part,) = body_out("gemini", events_of(ToolCall(id="a", name="f", raw="ls", kind="custom")))["candidates"][0][
        "content"
    ]["parts"]
    assert part["functionCall"]["args"] == {"input": "ls"}


def test_thoughts_are_marked_and_their_proof_is_sealed() -> None:
    thought = Reasoning(text="hm", signature="c2ln", extra={"messages": {}})
    found = parts_in(chunks(*events_of(thought, Text(text="so"))))
    assert found[0] == {"text": "hm", "thought": True}
    assert found[1]["thought"] is True
    assert sealed_in(found[1]["thoughtSignature"])
    assert found[2] == {"text": "so"}
    whole = body_out("gemini", events_of(thought))["candidates"][0]["content"]["parts"]
    assert whole == [{"text": "hm", "thought": True, "thoughtSignature": found[1]["thoughtSignature"]}]


def test_H074_its_own_signatures_stay_where_they_were() -> None:
    own: Extra = {"gemini": {}}
    parts: tuple[Part, ...] = (
        Reasoning(text="hm", encrypted="QQ==", extra=own),
        Text(text="so", extra={"gemini": {"thoughtSignature": "Qg=="}}),
        Reasoning(text="", encrypted="RA==", extra=own),
        ToolCall(id="c", name="f", raw="{}", args={}, extra={"gemini": {"thoughtSignature": "Qw=="}}),
    )
    whole = body_out("gemini", events_of(*parts, choice=Choice(reason="tool_calls")))["candidates"][0]["content"][
        "parts"
    ]
    assert whole == [
        {"text": "hm", "thought": True, "thoughtSignature": "QQ=="},
        {"text": "so", "thoughtSignature": "Qg=="},
        {"text": "", "thoughtSignature": "RA=="},
        {"functionCall": {"id": "c", "name": "f", "args": {}}, "thoughtSignature": "Qw=="},
    ]
    streamed = parts_in(chunks(*events_of(*parts)))
    assert streamed == [
        {"text": "hm", "thought": True},
        {"text": "", "thought": True, "thoughtSignature": "QQ=="},
        *whole[1:],
    ]
    last = Choice(reason="stop", extra={"gemini": {"thoughtSignature": "RQ=="}})
    ending = chunks(*events_of(Text(text="x"), choice=last))[-1]["candidates"][0]
    assert ending["content"]["parts"] == [{"text": "", "thoughtSignature": "RQ=="}]
    assert "thoughtSignature" not in ending


@pytest.mark.parametrize(
    ("choice", "word"),
    [
        (Choice(reason="stop", raw_reason="end_turn"), "STOP"),
        (Choice(reason="tool_calls", raw_reason="tool_use"), "STOP"),
        (Choice(reason="length", raw_reason="length"), "MAX_TOKENS"),
        (Choice(reason="refused", raw_reason="content_filter"), "SAFETY"),
        (Choice(reason="refused", raw_reason="RECITATION"), "RECITATION"),
        (Choice(reason="stop", raw_reason="RECITATION"), "STOP"),
        (Choice(reason="paused", raw_reason="pause_turn"), "OTHER"),
        (Choice(reason="other", raw_reason="MALFORMED_FUNCTION_CALL"), "MALFORMED_FUNCTION_CALL"),
        (Choice(reason="other"), "OTHER"),
    ],
)
def test_finish_reasons_of_gemini(choice: Choice, word: str) -> None:
    assert finish_of(choice) == {"finishReason": word}


def test_a_blocked_prompt_has_no_candidate() -> None:
    feedback = {"promptFeedback": {"blockReason": "SAFETY"}}
    events = body_in("gemini", json.dumps({**feedback, "usageMetadata": {"promptTokenCount": 3}}).encode())
    assert "candidates" not in body_out("gemini", events)
    assert body_out("gemini", events)["promptFeedback"] == feedback["promptFeedback"]
    (last,) = chunks(*events)
    assert "candidates" not in last


def test_a_refusal_of_another_dialect_is_reported() -> None:
    events = events_of(Refusal(text="I cannot."), choice=Choice(reason="refused"))
    assert parts_in(chunks(*events)) == [{"text": "I cannot."}]
    assert parts_in([body_out("gemini", events)]) == [{"text": "I cannot."}]


def test_sources_stand_at_the_end() -> None:
    text = Text(
        text="Grüße!", citations=(Citation(url="https://a.example", title="A", start=0, end=5), Citation(quote="q"))
    )
    cited = {"citations": [{"uri": "https://a.example", "title": "A", "startIndex": 0, "endIndex": 7}]}
    assert chunks(*events_of(text))[-1]["candidates"][0]["citationMetadata"] == cited
    assert body_out("gemini", events_of(text))["candidates"][0]["citationMetadata"] == cited


def test_parts_that_it_has_no_form_for_are_left_out() -> None:
    own = {"executableCode": {"code": "1"}}
    parts: tuple[Part, ...] = (Opaque(dialect="messages", value={"type": "x"}), Opaque(dialect="gemini", value=own))
    assert parts_in(chunks(*events_of(*parts, Media(kind="image", url="https://x")))) == [own]
    assert parts_in([body_out("gemini", events_of(*parts))]) == [own]


def test_a_failure_is_the_last_chunk() -> None:
    values = chunks(Started(id="", model=""), Failed(error=UpstreamError("gone.", status=503)))
    assert values == [{"error": {"code": 503, "message": "gone.", "status": "UNAVAILABLE"}}]


def test_its_own_answer_comes_out_as_it_came_in() -> None:
    value = {
        "candidates": [
            {
                "content": {"parts": [{"text": "hm", "thought": True}, {"text": "so", "thoughtSignature": "QQ=="}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
                "safetyRatings": [{"category": "c"}],
                "groundingMetadata": {"webSearchQueries": ["q"]},
            }
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3, "trafficType": "x"},
        "modelVersion": "gemini-3-pro",
        "responseId": "r1",
        "createTime": "now",
    }  # fmt: skip
    assert body_out("gemini", body_in("gemini", json.dumps(value).encode())) == value


def test_a_stream_that_is_taken_over_continues_where_it_was() -> None:
    """What left as it came was only observed."""
    events = events_in("gemini", REGULAR["gemini"])
    writer = GeminiStreamEncoder(AnswerContext(request=make_request("gemini"), mint=numbered_ids(), now=NOW))
    half = next(place for place, event in enumerate(events) if isinstance(event, PartEnded) and event.index == 1)
    for event in events[:half]:
        if not isinstance(event, PartDelta):
            writer.observe(event)
    rest = b"".join(writer.send(event) for event in events[half:])
    written = parts_in([value for _, value in frames(rest)])
    assert [part["functionCall"]["name"] for part in written if "functionCall" in part] == ["weather", "now"]
    assert frames(rest)[-1][1]["responseId"] == "r1"


def test_many_candidates_do_not_wait_for_each_other() -> None:
    values = chunks(
        Started(id="", model=""),
        PartStarted(index=0, part=Text(text=""), choice=0),
        PartStarted(index=1, part=Text(text=""), choice=1),
        PartDelta(1, "b"),
        PartDelta(0, "a"),
        PartEnded(index=0, part=Text(text="a"), choice=0),
        PartEnded(index=1, part=Text(text="b"), choice=1),
        Finished(choices=(Choice(reason="stop"), Choice(reason="length", index=1))),
    )
    assert [(value["candidates"][0]["index"], value["candidates"][0]["content"]["parts"]) for value in values[:2]] == [
        (1, [{"text": "b"}]), (0, [{"text": "a"}]),
    ]  # fmt: skip
    assert [one["finishReason"] for one in values[2]["candidates"]] == ["STOP", "MAX_TOKENS"]
    assert fold(events_in("gemini", out("gemini", events_of(Text(text="x"))))).parts_of(0) == (Text(text="x"),)
