"""Requests of the endpoint for compaction, and what is retained beside a summary."""

from __future__ import annotations

import pytest

from toolwire.dialects.responses import DIALECT
from toolwire.dialects.responses.compaction_form import decode_compact, found_tools, retained
from toolwire.dialects.responses.items_in import message_in
from toolwire.errors import BadRequest


def test_the_endpoint_of_a_back_end_is_used_for_it() -> None:
    assert DIALECT.path_of_request is not None
    request = decode_compact(b'{"model":"m","input":"x","previous_response_id":"resp_1"}', {})
    assert DIALECT.path_of_request(request) == "/responses/compact"
    assert request.state is not None
    assert not request.state.is_kept


def test_no_default_replaces_a_missing_model() -> None:
    with pytest.raises(BadRequest) as caught:
        decode_compact(b'{"input":"x"}', {})
    assert (caught.value.status, caught.value.code) == (400, "missing_model")


def test_the_newest_messages_of_the_user_are_retained_in_their_order() -> None:
    items = [{"role": "user", "content": f"{number} " + "x" * 100_000} for number in range(4)]
    items.insert(2, {"role": "assistant", "content": "no"})
    found = retained([message_in(item, "input") for item in items], str)
    assert [part.value["content"][0]["text"][0] for part in found] == ["2", "3"]
    assert {part.value["id"] for part in found} == {"msg_"}


def test_tools_that_a_search_has_found_are_found_again() -> None:
    tool = {"type": "function", "name": "look", "parameters": {"type": "object"}}
    output = {
        "type": "tool_search_output",
        "call_id": "c",
        "status": "completed",
        "execution": "client",
        "tools": [tool],
    }
    messages = [message_in(item, "input") for item in ({"role": "user", "content": "x"}, output)]
    assert [found.name for found in found_tools(messages)] == ["look"]
    assert found_tools(messages[:1]) == ()
