"""Interactions: answers as events and as one interaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tests.dialects.codec_harness import body_out, frames, make_request, out
from toolwire.dialects.shared.sealed_reasoning import sealed_in
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted, Started, emptied
from toolwire.types import Choice, Citation, Part, Reason, Reasoning, Refusal, Text, ToolCall, Usage

CALL = ToolCall(id="c", name="f", raw='{"a":1}', args={"a": 1})
THOUGHT = Reasoning(text="hm", signature="sig", extra={"messages": {}})


def events_of(*parts: Part, reason: Reason = "stop") -> list[Event]:
    events: list[Event] = [Started(id="x", model="gpt")]
    for index, part in enumerate(parts):
        text = part.raw if isinstance(part, ToolCall) else getattr(part, "text", "")
        events.append(PartStarted(index=index, part=emptied(part)))
        events += [PartDelta(index, piece) for piece in (text[:2], text[2:]) if piece]
        events.append(PartEnded(index=index, part=part))
    return [*events, Finished(choices=(Choice(reason=reason),), usage=Usage(input=3, output=2))]


def values(events: Iterable[Event]) -> list[Any]:
    found = frames(out("interactions", events))
    assert found[-1] == ("done", "[DONE]")
    assert all(name == value["event_type"] for name, value in found[:-1])
    assert [value["event_id"] for _, value in found[:-1]] == [str(number + 1) for number in range(len(found) - 1)]
    return [value for _, value in found[:-1]]


def test_each_part_is_a_step() -> None:
    found = values(events_of(THOUGHT, Text(text="hello"), CALL, reason="tool_calls"))
    kinds = [value["event_type"] for value in found]
    assert (kinds[0], kinds[-1]) == ("interaction.created", "interaction.completed")
    assert [value["step"]["type"] for value in found if "step" in value] == ["thought", "model_output", "function_call"]
    assert [value["index"] for value in found if value["event_type"] == "step.stop"] == [0, 1, 2]
    deltas = [value["delta"] for value in found if "delta" in value]
    assert "".join(delta["text"] for delta in deltas if delta["type"] == "text") == "hello"
    assert "".join(delta["arguments"] for delta in deltas if delta["type"] == "arguments_delta") == CALL.raw
    (signature,) = [delta["signature"] for delta in deltas if delta["type"] == "thought_signature"]
    assert sealed_in(signature)
    whole = found[-1]["interaction"]
    assert whole["status"] == "requires_action"
    assert whole["id"] == found[0]["interaction"]["id"]


def test_a_stream_and_one_interaction_have_equal_steps() -> None:
    events = events_of(THOUGHT, Text(text="one"), Text(text="two"), Refusal(text="no"), CALL)
    streamed, body = values(events)[-1]["interaction"], body_out("interactions", events)
    assert streamed["steps"] == body["steps"]
    assert [step["content"][0]["text"] for step in body["steps"] if "content" in step] == ["one", "\n\ntwo", "no"]
    assert body["usage"]["total_tokens"] == 5


def test_H003_parts_that_grow_at_once_are_sent_one_after_the_other() -> None:
    first, second = (ToolCall(id=name, name=name, raw="{}", args={}) for name in ("a", "b"))
    events: list[Event] = [
        Started(id="x", model="gpt"),
        PartStarted(index=0, part=emptied(first)), PartStarted(index=1, part=emptied(second)),
        PartDelta(1, "{}"), PartDelta(0, "{}"), PartEnded(index=1, part=second), PartEnded(index=0, part=first),
        Finished(choices=(Choice(reason="tool_calls"),)),
    ]  # fmt: skip
    indices = [value["index"] for value in values(events) if "index" in value]
    assert indices == [0, 0, 0, 1, 1, 1]


def test_a_call_without_arguments_has_an_object() -> None:
    found = values(events_of(ToolCall(id="c", name="f", raw=""), reason="tool_calls"))
    assert [value["delta"]["arguments"] for value in found if "delta" in value] == ["{}"]


def test_sources() -> None:
    cited = Text(text="hello", citations=(Citation(url="https://x.test", title="X", start=0, end=5),))
    expected = {"type": "url_citation", "url": "https://x.test", "title": "X", "start_index": 0, "end_index": 5}
    found = values(events_of(cited))
    assert [value["delta"]["annotations"] for value in found if value.get("delta", {}).get("annotations")] == [
        [expected]
    ]
    assert body_out("interactions", events_of(cited))["steps"][0]["content"][0]["annotations"] == [expected]


def test_statuses() -> None:
    assert body_out("interactions", events_of(Text(text="x")))["status"] == "completed"
    assert body_out("interactions", events_of(Text(text="x"), reason="length"))["status"] == "incomplete"


def test_H154_an_answer_that_fails_ends_with_its_error() -> None:
    found = values([*events_of(Text(text="hello"))[:-1], Failed(error=UpstreamError("it broke.", code="x"))])
    assert found[-1]["error"] == {"code": "x", "message": "it broke."}
    assert found[-2]["status"] == "failed"
    early = values([Failed(error=UpstreamError("it broke."))])
    assert [value["event_type"] for value in early] == ["interaction.created", "interaction.status_update", "error"]


def test_an_interaction_repeats_its_labels() -> None:
    request = make_request("interactions", is_stream=False, labels={"a": "b"}, previous_interaction_id="int_0")
    body = json.loads(out("interactions", events_of(Text(text="x")), request))
    assert (body["labels"], body["previous_interaction_id"], body["model"]) == ({"a": "b"}, "int_0", "m")
