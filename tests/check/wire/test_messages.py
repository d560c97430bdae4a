from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.check.deviations import DeviationLog
from toolwire.check.wire.frames import SeenAnswer
from toolwire.check.wire.messages import is_error, read_stream


def read(values: list[dict[str, Any]]) -> tuple[SeenAnswer, set[str]]:
    log = DeviationLog()
    raw = "".join(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n" for value in values)
    answer = read_stream(raw.encode(), log)
    return answer, set(log.found)


def start() -> dict[str, Any]:
    usage = {"input_tokens": 3, "output_tokens": 0}
    return {
        "type": "message_start",
        "message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": usage},
    }


def end(reason: str = "tool_use") -> list[dict[str, Any]]:
    delta = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 4}}
    return [delta, {"type": "message_stop"}]


def block(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


CALL = {"type": "tool_use", "id": "t", "name": "f", "input": {}}


def test_a_valid_call_is_read_without_deviation() -> None:
    answer, found = read([start(), block(0, **CALL), delta(0, '{"a": 1}'), stop(0), *end()])
    assert not found
    assert [(one.id, one.name, one.arguments) for one in answer.calls] == [("t", "f", '{"a": 1}')]
    assert (answer.finish, answer.usage) == ("calls", (3, 4))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([start(), block(0, **CALL), *end()], "stream.part_end_missing"),
        ([block(0, **CALL), stop(0), *end()], "stream.start_missing"),
        ([start(), delta(0, "{}"), *end()], "stream.order"),
        ([start(), block(0, **CALL), delta(1, "{}"), stop(0), *end()], "stream.index"),
        ([start(), block(0, **{**CALL, "input": {"a": 1}}), stop(0), *end()], "call.arguments_in_start"),
        ([start(), block(0, **{**CALL, "input": "{}"}), stop(0), *end()], "call.arguments_in_start"),
        ([start(), block(0, **{**CALL, "input": []}), stop(0), *end()], "call.arguments_type"),
        ([start(), block(0, **{**CALL, "id": ""}), stop(0), *end()], "call.id_missing"),
        ([start(), *end("done")], "finish.unknown"),
        ([start(), *end("tool_use")], "finish.calls_absent"),
        ([start(), {"type": "error", "error": {"type": "x"}}], "stream.error"),
        ([start(), *end("end_turn"), stop(0)], "stream.after_end"),
    ],
)
def test_an_irregular_stream_has_its_code(given: list[dict[str, Any]], code: str) -> None:
    assert code in read(given)[1]


def test_the_form_of_an_error() -> None:
    assert is_error({"type": "error", "error": {"type": "x", "message": "no"}})
    assert not is_error({"type": "error", "error": "no"})
