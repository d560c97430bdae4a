"""Messages answers out: one block open at a time, arguments only as deltas, one end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.answers import CHARACTERS
from tests.dialects.codec_harness import answer_in, body_out, frames, make_request, out
from tests.dialects.messages.stream_rules import well_formed
from tests.thorough import examples
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Citation, Media, Opaque, Part, Reason, Reasoning, Refusal, Text, ToolCall, Usage

STARTED = Started(id="up_1", model="upstream")
CALL = ToolCall(id="x", name="a", raw='{"k":1}', args={"k": 1})


def finished(reason: Reason = "stop", **members: Any) -> Finished:
    return Finished(choices=(Choice(reason=reason, **members),), usage=Usage(input=10, output=7, cached=4))


def opened(index: int, part: Part) -> PartStarted:
    return PartStarted(index=index, part=part)


def ended(index: int, part: Part) -> PartEnded:
    return PartEnded(index=index, part=part)


def blocks(wire: bytes) -> list[tuple[str, str]]:
    """(type of block, all its text) in order."""
    found: list[tuple[str, str]] = []
    for value in well_formed(wire):
        if value["type"] == "content_block_start":
            found.append((value["content_block"]["type"], ""))
        elif value["type"] == "content_block_delta":
            delta = value["delta"]
            text = delta.get("text") or delta.get("partial_json") or delta.get("thinking") or ""
            found[-1] = (found[-1][0], found[-1][1] + text)
    return found


def test_interleaved_parts_wait_for_the_open_block() -> None:
    events: list[Event] = [
        STARTED,
        opened(0, ToolCall(id="x", name="a", raw="")),
        opened(1, ToolCall(id="y", name="b", raw="")),
        PartDelta(1, '{"k"'),
        PartDelta(0, '{"k"'),
        opened(2, Text(text="")),
        PartDelta(2, "hi"),
        PartDelta(1, ":2}"),
        PartDelta(0, ":1}"),
        ended(1, ToolCall(id="y", name="b", raw='{"k":2}')),
        ended(2, Text(text="hi")),
        ended(0, CALL),
        finished("tool_calls"),
    ]
    assert blocks(out("messages", events)) == [("tool_use", '{"k":1}'), ("tool_use", '{"k":2}'), ("text", "hi")]


@given(st.data())
@examples(80)
def test_any_interleaving_is_well_formed_and_whole(data: st.DataObject) -> None:
    kinds: list[Part] = [Text(text="ab"), CALL, Reasoning(text="ab"), Reasoning(text="ab", signature="s"), Reasoning(text=""), Reasoning(text="", signature="s"), Opaque(dialect="chat", value={}), ToolCall(id="c", name="c", raw="ab", kind="custom")]  # fmt: skip
    parts = data.draw(st.lists(st.sampled_from(kinds), max_size=4))
    texts = [getattr(part, "raw", getattr(part, "text", "")) for part in parts]
    steps = [index for index, text in enumerate(texts) for _ in range(len(text) + 2)]
    place: dict[int, int] = {}
    begun: dict[int, int] = {}
    events: list[Event] = [STARTED]
    for which in data.draw(st.permutations(steps)):
        at = place[which] = place.get(which, -1) + 1
        text = texts[which]
        index = begun.setdefault(which, len(begun))
        if at == 0:
            events.append(opened(index, parts[which]))
        elif at <= len(text):
            events.append(PartDelta(index, text[at - 1]))
        else:
            events.append(ended(index, parts[which]))
    wire = out("messages", [*events, finished()])
    told = sorted(text for kind, text in blocks(wire) if text)
    custom = [json.dumps({"input": "ab"}, separators=(",", ":")) if getattr(part, "kind", "") == "custom" else text for part, text in zip(parts, texts, strict=True)]  # fmt: skip
    assert told == sorted(text for text in custom if text)


def test_H010_H011_arguments_come_only_as_deltas_behind_an_empty_input() -> None:
    values = well_formed(
        out("messages", [STARTED, opened(0, CALL), PartDelta(0, CALL.raw), ended(0, CALL), finished("tool_calls")])
    )
    start, delta = values[1], values[2]
    assert start["content_block"] == {"type": "tool_use", "id": "x", "name": "a", "input": {}}
    assert delta["delta"] == {"type": "input_json_delta", "partial_json": CALL.raw}


@given(st.text(CHARACTERS, min_size=1, max_size=20))
@examples(60)
def test_any_text_is_json_also_as_freeform_input(text: str) -> None:
    part = ToolCall(id="c", name="c", raw=text, kind="custom")
    events: list[Event] = [STARTED, opened(0, Text(text="")), PartDelta(0, text), ended(0, Text(text=text))]
    events += [opened(1, part), *(PartDelta(1, one) for one in text), ended(1, part), finished("tool_calls")]
    wire = out("messages", events)
    assert blocks(wire)[0] == ("text", text)
    assert json.loads(blocks(wire)[1][1]) == {"input": text}
    wire.decode("utf-8")


def test_notes_go_to_their_own_block_also_when_it_waits() -> None:
    cited = Citation(url="https://a", title="A", quote="q")
    events: list[Event] = [
        STARTED,
        opened(0, CALL),
        opened(1, Text(text="")),
        PartDelta(1, "a"),
        Noted(note=cited, index=1),
        Noted(note=Opaque(dialect="messages", value={"type": "new_delta"}), index=1),
        ended(0, CALL),
        ended(1, Text(text="a", citations=(cited,))),
        finished(),
    ]
    values = well_formed(out("messages", events))
    deltas = [(value["index"], value["delta"]["type"]) for value in values if value["type"] == "content_block_delta"]
    assert deltas == [(1, "text_delta"), (1, "citations_delta"), (1, "new_delta")]


def test_a_note_opens_a_thought_that_has_no_word_yet() -> None:
    note = Noted(note=Opaque(dialect="messages", value={"type": "new_delta"}), index=0)
    events = [
        STARTED,
        opened(0, Reasoning(text="")),
        note,
        PartDelta(0, "hm"),
        ended(0, Reasoning(text="hm")),
        finished(),
    ]
    assert blocks(out("messages", events)) == [("thinking", "hm")]


def test_H076_reasoning_without_text_or_signature_is_no_block() -> None:
    assert (
        blocks(out("messages", [STARTED, opened(0, Reasoning(text="")), ended(0, Reasoning(text="")), finished()]))
        == []
    )
    assert body_out("messages", [STARTED, ended(0, Reasoning(text="")), finished()])["content"] == []


def test_H081_a_signature_goes_out_once_and_whole() -> None:
    part = Reasoning(text="hm", signature="c2ln")
    values = well_formed(out("messages", [STARTED, opened(0, part), PartDelta(0, "hm"), ended(0, part), finished()]))
    assert [value["delta"]["signature"] for value in values if "signature" in value.get("delta", {})] == ["c2ln"]


def test_H144_usage_at_the_start_is_never_zero() -> None:
    values = well_formed(out("messages", [STARTED, finished()]))
    assert values[0]["message"]["usage"]["input_tokens"] > 0
    assert values[-2]["usage"]["input_tokens"] == 6
    assert values[-2]["usage"]["cache_read_input_tokens"] == 4


def test_H043_ids_are_made_legal() -> None:
    part = ToolCall(id="functions.Bash:0", name="a", raw="{}")
    values = well_formed(out("messages", [STARTED, opened(0, part), ended(0, part), finished()]))
    streamed = values[1]["content_block"]["id"]
    assert streamed == body_out("messages", [STARTED, ended(0, part), finished()])["content"][0]["id"]
    assert streamed.startswith("functions_Bash_0_")


@pytest.mark.parametrize(
    ("choice", "word"),
    [
        (Choice(reason="stop"), "end_turn"),
        (Choice(reason="stop", stop_sequence="x"), "stop_sequence"),
        (Choice(reason="length"), "max_tokens"),
        (Choice(reason="length", raw_reason="model_context_window_exceeded"), "model_context_window_exceeded"),
        (Choice(reason="refused"), "refusal"),
        (Choice(reason="paused"), "pause_turn"),
        (Choice(reason="other"), "end_turn"),
    ],
)
def test_stop_reasons(choice: Choice, word: str) -> None:
    events: list[Event] = [STARTED, Finished(choices=(choice,), usage=Usage(input=1))]
    assert well_formed(out("messages", events))[-2]["delta"]["stop_reason"] == word
    assert body_out("messages", events)["stop_reason"] == word


def test_a_refusal_is_text_that_ends_as_one() -> None:
    events = [STARTED, opened(0, Refusal(text="")), PartDelta(0, "no"), ended(0, Refusal(text="no")), finished()]
    assert blocks(out("messages", events)) == [("text", "no")]
    assert well_formed(out("messages", events))[-2]["delta"]["stop_reason"] == "refusal"
    assert body_out("messages", events)["stop_reason"] == "refusal"


def test_H154_a_failure_ends_in_an_error_event_and_no_stop() -> None:
    events: list[Event] = [
        STARTED,
        opened(0, CALL),
        PartDelta(0, '{"k'),
        Failed(error=UpstreamError("gone.", status=529)),
    ]
    wire = out("messages", events)
    assert well_formed(wire)[-1] == {"type": "error", "error": {"type": "overloaded_error", "message": "gone."}}
    assert b"content_block_stop" not in wire
    assert b"message_stop" not in wire


def test_H024_H031_broken_arguments_are_kept_as_they_are() -> None:
    part = ToolCall(id="x", name="a", raw='{"k')
    events = [STARTED, opened(0, part), PartDelta(0, part.raw), ended(0, part), finished("length")]
    assert body_out("messages", events)["content"][0]["input"] == {"_raw": '{"k'}
    again = answer_in("messages", out("messages", events))
    assert again.parts_of(0) == (ToolCall(id="x", name="a", raw='{"k'),)
    assert again.finished.choices[0].reason == "length"


def test_own_server_tool_blocks_go_out_as_they_came() -> None:
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    part = Opaque(dialect="messages", value=block)
    note = Noted(note=Opaque(dialect="messages", value={"type": "input_json_delta", "partial_json": "{}"}), index=0)
    assert blocks(out("messages", [STARTED, opened(0, part), note, ended(0, part), finished()])) == [
        ("server_tool_use", "{}")
    ]
    assert body_out("messages", [STARTED, ended(0, part), finished()])["content"] == [block]


@pytest.mark.parametrize(
    "part", [Media(kind="image", url="u"), Opaque(dialect="responses", value={"type": "web_search_call"})]
)
def test_parts_without_a_block_leave_no_trace(part: Part) -> None:
    events = [
        STARTED,
        opened(0, part),
        opened(1, Text(text="")),
        PartDelta(1, "a"),
        ended(0, part),
        ended(1, Text(text="a")),
        finished(),
    ]
    assert blocks(out("messages", events)) == [("text", "a")]
    assert body_out("messages", events)["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.parametrize("kind", ["a\n\ndata: {}", "\ud800", "vendor_note"])
def test_a_foreign_event_cannot_break_the_frames(kind: str) -> None:
    note = Noted(note=Opaque(dialect="messages", value={"type": kind, "x": 1}))
    found = frames(out("messages", [STARTED, note, finished()]))
    assert [value["type"] for _, value in found] == ["message_start", kind, "message_delta", "message_stop"]


def test_an_answer_without_a_start_is_started() -> None:
    assert well_formed(out("messages", [finished()], make_request("messages")))
