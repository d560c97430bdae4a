"""What is remembered of a response, and requests made whole from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.dialects.responses import decode_request, encode_request
from toolwire.dialects.responses.state import (
    complete,
    messages_of,
    not_found,
    own_items,
    remembered,
    shown_item,
)
from toolwire.dialects.shared.memory import PastTurns
from toolwire.profiles import RESPONSES
from toolwire.types import Request, State
from toolwire.wire.exact_json import decode, encode

CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a":  1.50, "é": "中😀"}',
    "status": "completed",
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
SEALED = THOUGHT | {"id": "rs_2", "encrypted_content": "gAAA"}
SEARCH = {
    "type": "tool_search_call",
    "id": "tsc_1",
    "call_id": "call_2",
    "arguments": {"q": "x"},
    "status": "completed",
}


def read(**members: Any) -> Request:
    return decode_request(json.dumps({"model": "m", "input": "hi"} | members).encode(), {})


def past_of(*items: Any) -> PastTurns:
    return PastTurns(items=list(items), messages=messages_of(list(items)))


def sent(request: Request) -> Any:
    return decode(encode_request(request, RESPONSES).body)


def test_a_string_becomes_an_item() -> None:
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    assert own_items({"input": "hi"}, {}) == [message]
    assert own_items({}, {}) == []


def test_references_are_replaced_in_their_places() -> None:
    source = {"input": [{"role": "user", "content": "a"}, {"type": "item_reference", "id": "fc_1"}, {"id": "rs_1"}]}
    found = {"fc_1": CALL, "rs_1": THOUGHT}
    assert own_items(source, found) == [source["input"][0], CALL, THOUGHT]


def test_the_back_end_gets_the_whole_history_with_store_off() -> None:
    request = read(previous_response_id="resp_1", store=True, instructions="be brief", x_new=1)
    body = sent(complete(request, own_items(request.source, {}), past_of(CALL, THOUGHT, SEARCH), looks_up=False))
    assert body["input"][:3] == [CALL, THOUGHT, SEARCH]
    assert body["store"] is False
    assert body["instructions"] == "be brief"
    assert body["x_new"] == 1
    assert "previous_response_id" not in body


def test_members_of_memory_are_no_loss_for_a_foreign_back_end() -> None:
    request = read(conversation="conv_1", background=True, store=True)
    whole = complete(request, own_items(request.source, {}), PastTurns(), looks_up=False)
    assert whole.extra == {}


def test_H083_a_back_end_that_looks_ids_up_gets_none_that_it_cannot_have() -> None:
    request = read(previous_response_id="resp_1", reasoning={"effort": "low"})
    body = sent(complete(request, [], past_of(THOUGHT, SEALED, CALL), looks_up=True))
    assert [item["type"] for item in body["input"][:2]] == ["reasoning", "function_call"]
    assert body["input"][0]["encrypted_content"] == "gAAA"
    assert all("id" not in item for item in body["input"])
    assert body["include"] == ["reasoning.encrypted_content"]
    plain = read(previous_response_id="resp_1")
    assert "include" not in sent(complete(plain, [], past_of(CALL), looks_up=True))


def test_tools_that_an_earlier_item_declared_can_be_called() -> None:
    found = {
        "type": "tool_search_output",
        "call_id": "call_2",
        "tools": [{"type": "function", "name": "found", "parameters": {"type": "object"}}],
    }
    request = read(previous_response_id="resp_1")
    whole = complete(request, own_items(request.source, {}), past_of(SEARCH, found), looks_up=False)
    assert [tool.name for tool in whole.tools] == ["found"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(max_size=5), values, max_size=4), max_size=5))
def test_output_items_survive_as_they_are(items: list[Any]) -> None:
    output = [CALL, THOUGHT, SEALED, SEARCH, *items]
    kept = remembered(read(), {"id": "resp_1", "status": "completed", "output": output, "x": [1]})
    assert kept is not None
    assert [decode(encode(value)) for _, value in kept.output] == output
    assert len({name for name, _ in kept.output}) == len(output)
    assert kept.body == {"id": "resp_1", "status": "completed", "x": [1], "store": True}


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed"])
def test_how_it_ended_is_kept(status: str) -> None:
    kept = remembered(read(), {"id": "resp_1", "status": status, "output": []})
    assert kept is not None
    assert kept.status == status


def test_what_is_missing_is_reported_by_its_member() -> None:
    state = State(previous="resp_1", conversation="", references=("msg_1",))
    error = not_found(state, "resp_1")
    assert (error.status, error.code, error.where) == (400, "previous_response_not_found", "previous_response_id")
    error = not_found(state, "msg_1")
    assert (error.status, error.where) == (404, "input")
    error = not_found(State(conversation="conv_1"), "conv_1")
    assert (error.status, error.where) == (404, "conversation")


def test_listed_items_are_complete() -> None:
    def new_id(prefix: str) -> str:
        return f"{prefix}new"

    assert shown_item({"role": "assistant", "content": "x"}, new_id) == {
        "id": "msg_new",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}],
        "status": "completed",
    }
    result = {"type": "function_call_output", "call_id": "c", "output": "x", "id": None}
    assert shown_item(result, new_id)["id"] == "fco_new"
    assert shown_item({"type": "unheard_of", "id": "u_1"}, new_id) == {"type": "unheard_of", "id": "u_1"}
    assert shown_item({"type": "", "id": 5}, new_id) == {"type": "", "id": "item_new"}
