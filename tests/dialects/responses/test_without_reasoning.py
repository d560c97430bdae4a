"""A request without the reasoning of earlier turns: nothing else is lost, and nothing points to it any more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.responses.without_reasoning import without_proof, without_reasoning

USER = {"role": "user", "content": "Hi"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"n": 1}'}
SHELL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_2", "action": {"command": ["ls"]}}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "r"}


def rest_of(*items: Any, **top: Any) -> Any:
    body = without_reasoning(json.dumps({"model": "m", "input": list(items), **top}).encode())
    return None if body is None else json.loads(body)


def test_H084_reasoning_goes_and_all_else_stays_without_its_ids() -> None:
    rest = rest_of(USER, THOUGHT, SAID, CALL, SHELL, RESULT, store=False)
    assert rest["input"] == [
        USER,
        *({k: v for k, v in one.items() if k != "id"} for one in (SAID, CALL, SHELL)),
        RESULT,
    ]
    assert (rest["model"], rest["store"]) == ("m", False)


def test_H166_a_reference_to_reasoning_is_reasoning_and_others_stay() -> None:
    references = [{"type": "item_reference", "id": "rs_1"}, {"id": "rs_2"}, {"type": "item_reference", "id": "msg_1"}]
    assert rest_of(USER, *references)["input"] == [USER, references[2]]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"input":"hi"}', b'{"input":[{"type":"message"}]}', b'{"input":[1]}'])
def test_where_there_is_none_nothing_can_be_left_out(body: bytes) -> None:
    assert without_reasoning(body) is None


def test_numbers_keep_their_digits() -> None:
    wire = b'{"input":[{"type":"reasoning"},1],"n":12345678901234567890123,"x":1.10}'
    assert without_reasoning(wire) == b'{"input":[1],"n":12345678901234567890123,"x":1.10}'


def test_H083_a_model_without_proofs_is_not_asked_for_them() -> None:
    wire = b'{"input":"x","include":["a","reasoning.encrypted_content"]}'
    assert without_proof(wire) == b'{"input":"x","include":["a"]}'
    for other in (b'{"input":"x","include":["a"]}', b'{"include":null}', b"[]"):
        assert without_proof(other) is None
