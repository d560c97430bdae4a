"""Whole answers of Responses servers that are not as documented."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.codec_harness import make_request
from tests.dialects.upstream_events import call_item, response
from toolwire.dialects.responses.body_in import body_events, failure, reason_of
from toolwire.events import Failed, Finished, PartEnded
from toolwire.types import ToolCall

CALL = call_item(0, "f", "{}")


def events_of(**members: Any) -> tuple[list[Any], str]:
    return body_events(make_request("responses"), {**response("completed", [CALL]), **members})


def test_a_regular_body_is_regular() -> None:
    assert events_of()[1] == ""


@pytest.mark.parametrize(
    "members",
    [
        {"status": None},
        {"usage": {"input_tokens": 1.5, "output_tokens": 1}},
        {"output": [CALL, {**CALL, "call_id": "other"}]},
        {"output": [{**CALL, "call_id": None}]},
        {"output": [None, CALL]},
        {"output": [CALL, {"type": "message", "id": "m", "content": "words"}]},
    ],
)
def test_faults_in_it_are_reported_and_harmless(members: dict[str, Any]) -> None:
    events, irregular = events_of(**members)
    assert irregular
    assert isinstance(events[-1], Finished)
    assert events[-1].choices[0].reason == "tool_calls"


def test_two_items_under_one_id_get_ids_of_their_own() -> None:
    events, _ = events_of(output=[CALL, {**CALL, "call_id": "other"}])
    calls = [event.part for event in events if isinstance(event, PartEnded) and isinstance(event.part, ToolCall)]
    assert [call.item_id for call in calls] == ["fc_0", ""]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"status": "failed", "error": {"message": "busy"}}, "busy"),
        ({"error": {"message": "busy"}}, "busy"),
        ({"output": None, "detail": "busy"}, "busy"),
        ({"status": "in_progress"}, "not finished"),
        ({"output": [{**CALL, "name": ""}]}, "without a name"),
    ],
)
def test_H155_an_error_in_a_200_is_an_error(members: dict[str, Any], words: str) -> None:
    (failed,), irregular = events_of(**members)
    assert isinstance(failed, Failed)
    assert words in failed.error.message
    assert irregular


def test_an_incomplete_answer_has_its_reason() -> None:
    filtered = {"incomplete_details": {"reason": "content_filter"}}
    assert reason_of(filtered, "incomplete", True) == ("content_filter", "refused")
    assert reason_of({}, "incomplete", True) == ("", "length")
    assert failure("words", b"").message == "words"
