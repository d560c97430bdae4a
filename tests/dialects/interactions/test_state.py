"""Interactions: what is stored, and requests completed from it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.codec_harness import NOW, frames, make_request, numbered_ids
from toolwire.dialects.base import AnswerContext
from toolwire.dialects.interactions import state
from toolwire.dialects.shared.memory import PastTurns
from toolwire.errors import InternalError
from toolwire.types import State

STEPS: list[dict[str, Any]] = [
    {"type": "thought", "summary": [{"type": "text", "text": "hm"}], "signature": "c2ln"},
    {"type": "model_output", "content": [{"type": "text", "text": "hello", "annotations": [{"type": "url_citation"}]}]},
    {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}},
]


def test_a_request_is_completed_with_the_steps_before_it() -> None:
    request = make_request("interactions", previous_interaction_id="int_1", system_instruction="s", store=True)
    own = state.own_items(request.source, {})
    past = PastTurns(items=STEPS, messages=state.messages_of(STEPS))
    whole = state.complete(request, own, past, looks_up=False)
    assert [message.role for message in whole.messages] == ["system", "assistant", "assistant", "assistant", "user"]
    assert whole.source["input"] == [*STEPS, *own]
    assert whole.state is None
    assert "previous_interaction_id" not in whole.source


@pytest.mark.parametrize(
    ("status", "ending"),
    [("completed", "completed"), ("requires_action", "completed"), ("incomplete", "incomplete"), ("failed", "failed")],
)
def test_what_is_stored(status: str, ending: str) -> None:
    kept = state.remembered(make_request("interactions"), {"id": "int_1", "status": status, "steps": STEPS})
    assert kept is not None
    assert (kept.id, kept.status, [step for _, step in kept.output]) == ("int_1", ending, STEPS)
    assert kept.body == {"id": "int_1", "status": status}


def test_what_is_not_stored() -> None:
    assert state.remembered(make_request("interactions"), {"status": "completed"}) is None
    assert state.remembered(make_request("interactions"), {"id": "int_1", "status": "in_progress"}) is None


def test_an_unknown_id_is_not_found() -> None:
    error = state.not_found(State(previous="int_9"), "int_9")
    assert (error.status, error.where) == (404, "previous_interaction_id")


def test_statuses_of_the_background() -> None:
    context = AnswerContext(request=make_request("interactions"), mint=numbered_ids(), now=NOW, answer_id="int_1")
    queued = state.queued_body(context)
    assert (queued["id"], queued["status"], queued["background"]) == ("int_1", "queued", True)
    assert state.body_with_status(queued, "cancelled", None)["status"] == "cancelled"
    failed = state.body_with_status(queued, "failed", InternalError("no.", code="x"))
    assert failed["errors"] == [{"code": "x", "message": "no."}]


def test_a_replay_has_the_events_of_a_stream() -> None:
    value = {"id": "int_1", "status": "requires_action", "steps": STEPS}
    found = frames(state.replay(value, -1))
    assert found[-1] == ("done", "[DONE]")
    kinds = [name for name, _ in found[:-1]]
    starts = ["step.start", "step.delta", "step.delta", "step.stop"]
    assert kinds == [
        "interaction.created",
        *starts,
        *starts,
        "step.start",
        "step.delta",
        "step.stop",
        "interaction.completed",
    ]
    assert found[-2][1]["interaction"]["steps"] == STEPS
    rest = frames(state.replay(value, 4))
    assert [(name, value["event_id"]) for name, value in rest[:-1]] == [("interaction.completed", "5")]
