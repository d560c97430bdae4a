"""Compaction in Responses: what a request wants, and the object of the endpoint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.responses import DIALECT
from toolwire.dialects.responses.body_in import body_events
from toolwire.errors import BadRequest
from toolwire.events import PartEnded
from toolwire.types import Compaction, Opaque, Request

USER = {"role": "user", "content": "about compaction"}


def wanted(**members: Any) -> Compaction | None:
    return DIALECT.decode_request(json.dumps({"model": "m", "input": [USER], **members}).encode(), {}).compaction


def test_a_request_that_only_mentions_it_wants_nothing() -> None:
    assert wanted() is None
    assert wanted(input=[{"role": "user", "content": '{"type": "compaction"}'}]) is None


def test_what_a_request_wants() -> None:
    item = {"type": "compaction", "encrypted_content": "x"}
    old = {"type": "compaction_summary", "encrypted_content": "x"}
    assert wanted(input=[item, USER]) == wanted(input=[old, USER]) == Compaction(has_items=True)
    assert wanted(input=[USER, {"type": "compaction_trigger"}]) == Compaction(is_now=True)
    assert wanted(context_management=[{"type": "compaction", "compact_threshold": 5}]) == Compaction(threshold=5)
    assert wanted(context_management=[{"type": "compaction"}]) == Compaction(threshold=200_000)
    newer = {"type": "of_a_newer_provider"}
    assert wanted(context_management=[newer]) == Compaction(edits=(newer,))


def test_a_wrong_threshold_is_refused() -> None:
    with pytest.raises(BadRequest, match="an integer"):
        wanted(context_management=[{"type": "compaction", "compact_threshold": "many"}])


def test_the_answer_of_the_endpoint_is_read_with_all_its_items() -> None:
    output = [{"type": "message", "id": "msg_1", "role": "user", "content": []}, {"type": "compaction", "id": "cmp_1"}]
    value = {"id": "resp_1", "object": "response.compaction", "output": output, "usage": {"input_tokens": 1}}
    events, irregular = body_events(Request(model="m", messages=()), value)
    assert irregular == ""
    parts = [event.part for event in events if isinstance(event, PartEnded)]
    assert [part.value for part in parts if isinstance(part, Opaque)] == output
