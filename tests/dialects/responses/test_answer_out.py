"""Responses answers out: numbers without gaps, items that are the same in every event, one end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.answers import CHARACTERS
from tests.dialects.codec_harness import NOW, body_out, frames, out
from tests.dialects.responses.stream_rules import well_formed
from tests.thorough import examples
from toolwire.dialects.shared.sealed_reasoning import unseal
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Citation, Media, Opaque, Part, Reason, Reasoning, Refusal, Text, ToolCall, Usage

STARTED = Started(id="up_1", model="upstream")
CALL = ToolCall(id="call_x", name="a", raw='{"k":1}', args={"k": 1})


def finished(reason: Reason = "stop") -> Finished:
    return Finished(choices=(Choice(reason=reason),), usage=Usage(input=10, output=7, cached=4, reasoning=2))


def whole(index: int, part: Part, *texts: str) -> list[Event]:
    return [
        PartStarted(index=index, part=part),
        *(PartDelta(index, text) for text in texts),
        PartEnded(index=index, part=part),
    ]


def items(wire: bytes) -> list[dict[str, Any]]:
    output: list[dict[str, Any]] = well_formed(wire)[-1]["response"]["output"]
    return output


def test_H006_a_call_is_the_same_in_every_event() -> None:
    values = well_formed(out("responses", [STARTED, *whole(0, CALL, '{"k"', ":1}"), finished("tool_calls")]))
    kinds = [value["type"].removeprefix("response.") for value in values]
    assert kinds == [
        "created", "in_progress", "output_item.added", "function_call_arguments.delta", "function_call_arguments.delta",
        "function_call_arguments.done", "output_item.done", "completed",
    ]  # fmt: skip
    done = values[-2]["item"]
    assert done == {
        "type": "function_call",
        "id": done["id"],
        "call_id": "call_x",
        "name": "a",
        "arguments": CALL.raw,
        "status": "completed",
    }
    assert done["id"].startswith("fc_")
    assert values[2]["item"]["call_id"] == "call_x"
    assert values[5]["arguments"] == CALL.raw


def test_H007_a_freeform_call_has_its_own_events() -> None:
    part = ToolCall(id="c", name="patch", raw="*** Begin", kind="custom", namespace="ns")
    wire = out("responses", [STARTED, *whole(0, part, "*** ", "Begin"), finished("tool_calls")])
    assert b"function_call_arguments" not in wire
    (item,) = items(wire)
    assert (item["type"], item["input"], item["namespace"]) == ("custom_tool_call", "*** Begin", "ns")


def test_calls_that_grow_at_once_keep_to_their_items() -> None:
    events: list[Event] = [
        STARTED,
        *(PartStarted(index=index, part=ToolCall(id=f"c{index}", name="a", raw="")) for index in (0, 1)),
    ]
    events += [PartDelta(1, '{"k"'), PartDelta(0, "{}"), PartDelta(1, ":1}")]
    events += [
        PartEnded(index=0, part=ToolCall(id="c0", name="a", raw="{}")),
        PartEnded(index=1, part=ToolCall(id="c1", name="a", raw=CALL.raw)),
    ]
    assert [item["arguments"] for item in items(out("responses", [*events, finished("tool_calls")]))] == [
        "{}",
        CALL.raw,
    ]


def test_texts_that_follow_each_other_share_a_message() -> None:
    events = [
        STARTED,
        *whole(0, Text(text="a"), "a"),
        *whole(1, Refusal(text="no"), "no"),
        *whole(2, CALL, CALL.raw),
        *whole(3, Text(text="b"), "b"),
        finished(),
    ]
    found = items(out("responses", events))
    assert [item["type"] for item in found] == ["message", "function_call", "message"]
    assert [part["type"] for part in found[0]["content"]] == ["output_text", "refusal"]


def test_a_text_that_outlasts_a_call_is_done_at_the_end() -> None:
    events: list[Event] = [
        STARTED,
        PartStarted(index=0, part=Text(text="")),
        *whole(1, CALL, CALL.raw),
        PartDelta(0, "late"),
    ]
    events += [PartEnded(index=0, part=Text(text="late")), finished("tool_calls")]
    found = items(out("responses", events))
    assert found[0]["content"][0]["text"] == "late"
    assert found[1]["type"] == "function_call"


def test_foreign_reasoning_is_sent_as_summaries_and_own_reasoning_unchanged() -> None:
    foreign = Reasoning(text="hm", signature="s")
    own = Reasoning(text="raw", item_id="rs_9", encrypted="ZW5j", extra={"responses": {}})
    one, two = items(out("responses", [STARTED, *whole(0, foreign, "hm"), *whole(1, own, "raw"), finished()]))
    assert one["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert one["encrypted_content"].startswith("tw1.")
    assert two == {
        "type": "reasoning",
        "id": "rs_9",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "raw"}],
        "encrypted_content": "ZW5j",
    }


@given(st.text(CHARACTERS, min_size=1, max_size=20))
@examples(60)
def test_any_text_is_json(text: str) -> None:
    part = ToolCall(id="c", name="c", raw=text, kind="custom")
    wire = out(
        "responses",
        [
            STARTED,
            *whole(0, Text(text=text), text),
            *whole(1, part, *text),
            *whole(2, Reasoning(text=text), text),
            finished(),
        ],
    )
    message, call, thought = items(wire)
    assert (message["content"][0]["text"], call["input"], thought["summary"][0]["text"]) == (text, text, text)
    assert (
        "".join(value["delta"] for value in well_formed(wire) if "custom_tool_call_input.delta" in value["type"])
        == text
    )
    wire.decode("utf-8")


@pytest.mark.parametrize("has_usage", [True, False])
def test_the_end_has_its_usage_and_time(has_usage: bool) -> None:
    end = finished() if has_usage else Finished(choices=(Choice(reason="stop"),))
    final = well_formed(out("responses", [STARTED, end]))[-1]["response"]
    assert final["status"] == "completed"
    assert final["completed_at"] == NOW
    assert final["usage"]["input_tokens_details"]["cached_tokens"] == (4 if has_usage else 0)
    assert final["usage"]["total_tokens"] == (17 if has_usage else 0)


@pytest.mark.parametrize(("reason", "details"), [("length", "max_output_tokens"), ("refused", "content_filter")])
def test_H155_an_incomplete_answer_has_its_reason(reason: Reason, details: str) -> None:
    events = [STARTED, *whole(0, ToolCall(id="c", name="a", raw='{"k'), '{"k'), finished(reason)]
    last = well_formed(out("responses", events))[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": details}
    assert last["response"]["output"][0]["status"] == "incomplete"
    assert body_out("responses", events)["status"] == "incomplete"


def test_H154_H155_a_failure_is_response_failed() -> None:
    events: list[Event] = [
        STARTED,
        *whole(0, Text(text="a"), "a"),
        PartStarted(index=1, part=CALL),
        Failed(error=UpstreamError("gone.", status=429)),
    ]
    last = well_formed(out("responses", events))[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"] == {"code": "rate_limit_exceeded", "message": "gone."}
    assert well_formed(out("responses", [Failed(error=UpstreamError("gone."))]))[-1]["response"]["status"] == "failed"


def test_logprobs_and_annotations() -> None:
    entry = {"token": "a", "logprob": -0.5}
    cited = Citation(url="https://a", title="A", start=0, end=1)
    part = Text(text="a", logprobs=(entry,), citations=(cited, cited))
    events: list[Event] = [STARTED, PartStarted(index=0, part=Text(text="")), PartDelta(0, "a", (entry,))]
    events += [Noted(note=cited, index=0), Noted(note=cited, index=0), PartEnded(index=0, part=part), finished()]
    values = well_formed(out("responses", events))
    added = [value for value in values if value["type"].endswith("annotation.added")]
    assert [value["annotation_index"] for value in added] == [0, 1]
    content = values[-1]["response"]["output"][0]["content"][0]
    assert [one["url"] for one in content["annotations"]] == ["https://a", "https://a"]
    assert content["logprobs"] == [{"token": "a", "logprob": -0.5, "bytes": [], "top_logprobs": []}]


def test_own_hosted_items_go_out_with_their_events() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    part = Opaque(dialect="responses", value=item)
    note = Opaque(
        dialect="responses", value={"type": "response.web_search_call.searching", "output_index": 7, "item_id": "ws_1"}
    )
    events = [
        STARTED,
        *whole(0, Text(text="a"), "a"),
        PartStarted(index=1, part=part),
        Noted(note=note, index=1),
        PartEnded(index=1, part=part),
        finished(),
    ]
    assert items(out("responses", events))[1] == item


@pytest.mark.parametrize(
    "part",
    [Media(kind="image", url="u"), Opaque(dialect="messages", value={"type": "x"})],
)
def test_parts_without_an_item_leave_no_trace(part: Part) -> None:
    assert items(out("responses", [STARTED, *whole(0, part), finished()])) == []


def test_reasoning_without_text_is_sealed_and_hidden() -> None:
    thoughts = [
        Reasoning(text="", signature="s1"),
        Reasoning(text="b", signature="s2"),
        Reasoning(text="", redacted="r"),
        Reasoning(text="c", signature="s3"),
    ]
    events: list[Event] = [STARTED]
    for index, part in enumerate(thoughts):
        begun = Reasoning(text="", redacted=part.redacted)
        deltas = [PartDelta(index, part.text)] if part.text else []
        events += [PartStarted(index=index, part=begun), *deltas, PartEnded(index=index, part=part)]
    values = well_formed(out("responses", [*events, finished()]))
    [item] = values[-1]["response"]["output"]
    assert [piece["text"] for piece in item["summary"]] == ["b", "c"]
    shown = [value["summary_index"] for value in values if value["type"] == "response.reasoning_summary_part.added"]
    assert shown == [0, 1]
    back = unseal(item["encrypted_content"], ["b", "c"])
    assert [(part.text, part.signature, part.redacted) for part in back] == [
        ("", "s1", None),
        ("b", "s2", None),
        ("", None, "r"),
        ("c", "s3", None),
    ]


def test_typed_calls_beside_others_take_their_place_when_they_are_whole() -> None:
    typed = ToolCall(id="call_s", name="shell", raw='{"commands":[]}', args={"commands": []}, kind="typed")
    events: list[Event] = [
        STARTED,
        PartStarted(index=0, part=ToolCall(id="call_s", name="shell", raw="", kind="typed")),
        PartStarted(index=1, part=ToolCall(id="call_x", name="a", raw="")),
        PartDelta(1, CALL.raw),
        PartEnded(index=0, part=typed),
        PartEnded(index=1, part=CALL),
        finished("tool_calls"),
    ]
    found = items(out("responses", events))
    assert [item["type"] for item in found] == ["function_call", "shell_call"]
    well_formed(out("responses", events))


@pytest.mark.parametrize("kind", ["a\n\ndata: {}", "\ud800", "vendor.note"])
def test_a_foreign_event_cannot_break_the_frames(kind: str) -> None:
    note = Noted(note=Opaque(dialect="responses", value={"type": kind, "x": 1, "sequence_number": 99}))
    found = frames(out("responses", [STARTED, note, finished()]))
    assert found[2][1] == {"type": kind, "sequence_number": 2, "x": 1}
    assert len(found) == 4


def test_the_body_is_the_object_of_the_last_event() -> None:
    events = [
        STARTED,
        *whole(0, Reasoning(text="hm"), "hm"),
        *whole(1, Text(text="a"), "a"),
        *whole(2, CALL, CALL.raw),
        finished("tool_calls"),
    ]
    last = well_formed(out("responses", events))[-1]["response"]
    body = body_out("responses", events)
    assert json.loads(json.dumps(body["output"])) == last["output"]
    assert body.keys() == last.keys()
    assert body["error"] is None


def test_one_item_that_is_sent_in_two_has_two_ids() -> None:
    wire = out(
        "responses",
        [
            STARTED,
            *whole(0, Refusal(text="no", item_id="msg_1"), "no"),
            *whole(1, ToolCall(id="c", name="a", raw="{}", args={}, item_id="fc_1"), "{}"),
            *whole(2, Text(text="hm", item_id="msg_1"), "hm"),
            *whole(3, Text(text="so", item_id="msg_1"), "so"),
            finished("tool_calls"),
        ],
    )
    first, call, second = items(wire)
    assert (first["id"], call["id"]) == ("msg_1", "fc_1")
    assert second["id"] not in ("msg_1", "fc_1")
    assert [piece["text"] for piece in second["content"]] == ["hm", "so"]
