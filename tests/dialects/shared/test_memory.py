"""Every dialect with a memory keeps the same promises."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects import FRONTS, MEMORIES
from toolwire.dialects.shared.memory import PastTurns
from toolwire.types import Request

FIRST: dict[str, Any] = {
    "responses": {"model": "m", "input": [{"role": "user", "content": "one"}]},
    "interactions": {"model": "m", "input": "one"},
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "one"}],
        "thread": {"type": "create"},
    },
}
ANSWER: dict[str, Any] = {
    "responses": {
        "id": "resp_1",
        "status": "completed",
        "output": [
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]}
        ],
    },
    "interactions": {
        "id": "int_1",
        "status": "completed",
        "steps": [{"type": "model_output", "content": [{"type": "text", "text": "two"}]}],
    },
    "messages": {"id": "msg_1", "stop_reason": "end_turn", "content": [{"type": "text", "text": "two"}]},
}
SECOND: dict[str, Any] = {
    "responses": {"model": "m", "input": "three", "previous_response_id": "resp_1"},
    "interactions": {"model": "m", "input": "three", "previous_interaction_id": "int_1"},
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "three"}],
        "thread": {"type": "continue", "previous_message_id": "msg_1"},
    },
}


def read(dialect: str, body: dict[str, Any]) -> Request:
    return FRONTS[dialect].decode_request(json.dumps(body).encode(), {})


@pytest.mark.parametrize("dialect", MEMORIES)
def test_a_request_made_whole_is_as_if_the_client_had_sent_it_all(dialect: str) -> None:
    memory = MEMORIES[dialect]
    first = read(dialect, FIRST[dialect])
    kept = memory.remembered(first, ANSWER[dialect])
    assert kept is not None
    assert kept.id.startswith(memory.prefix)
    items = [*memory.own_items(first.source, {}), *(value for _, value in kept.output)]
    second = read(dialect, SECOND[dialect])
    own = memory.own_items(second.source, {})
    past = PastTurns(head=kept.head, items=items, messages=memory.messages_of(items))
    whole = memory.complete(second, own, past, looks_up=False)
    assert [message.role for message in whole.messages] == ["user", "assistant", "user"]
    assert whole.state is None
    assert whole.wire == b""
    again = read(dialect, json.loads(json.dumps(whole.source)))
    assert [message.parts for message in again.messages] == [message.parts for message in whole.messages]


@pytest.mark.parametrize("dialect", MEMORIES)
def test_an_answer_without_an_id_or_an_end_is_not_remembered(dialect: str) -> None:
    request = read(dialect, FIRST[dialect])
    answer = ANSWER[dialect]
    assert MEMORIES[dialect].remembered(request, answer | {"id": ""}) is None
    assert MEMORIES[dialect].remembered(request, answer | {"id": 7}) is None
    assert MEMORIES[dialect].remembered(request, answer | {"status": "queued", "stop_reason": None}) is None
