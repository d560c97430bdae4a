from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.check.deviations import DeviationLog
from toolwire.check.wire.frames import SeenAnswer
from toolwire.check.wire.responses import is_error, read_stream


def read(values: list[dict[str, Any]]) -> tuple[SeenAnswer, set[str]]:
    log = DeviationLog()
    raw = "".join(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n" for value in values)
    answer = read_stream(raw.encode(), log)
    return answer, set(log.found)


def item(**more: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "", **more}


def response(*output: Any, status: str = "completed") -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    return {"id": "r", "object": "response", "created_at": 1, "status": status, "output": list(output), "usage": usage}


def numbered(*values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**value, "sequence_number": number} for number, value in enumerate(values)]


CREATED = {"type": "response.created", "response": response(status="in_progress")}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": item()}
DELTA = {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc", "delta": "{}"}
DONE = {"type": "response.output_item.done", "output_index": 0, "item": item(arguments="{}")}
TEXT = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
TEXT_ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {**TEXT, "content": []}}
TEXT_DONE = {"type": "response.output_item.done", "output_index": 0, "item": TEXT}
TEXT_COMPLETED = {"type": "response.completed", "response": response(TEXT)}
COMPLETED = {"type": "response.completed", "response": response(item(arguments="{}"))}


def test_a_valid_call_is_read_without_deviation() -> None:
    answer, found = read(numbered(CREATED, ADDED, DELTA, DONE, COMPLETED))
    assert not found
    assert [(one.id, one.name, one.arguments) for one in answer.calls] == [("c", "f", "{}")]
    assert (answer.finish, answer.usage) == ("calls", (1, 2))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (numbered(ADDED, DELTA, DONE, COMPLETED), "stream.start_missing"),
        (numbered(CREATED, ADDED, DELTA, DONE), "stream.end_missing"),
        (numbered(CREATED, ADDED, {**DELTA, "item_id": "other"}, DONE, COMPLETED), "stream.id_changes"),
        (numbered(CREATED, ADDED, {**DELTA, "delta": "{ }"}, DONE, COMPLETED), "stream.mismatch"),
        (numbered(CREATED, ADDED, DELTA, DONE, {**COMPLETED, "response": response()}), "stream.mismatch"),
        (numbered(CREATED, {**ADDED, "output_index": 2}, COMPLETED), "stream.index"),
        (numbered(CREATED, {"type": "error", "message": "no"}), "stream.error"),
        (numbered(CREATED, COMPLETED, DELTA), "stream.after_end"),
        (numbered({**CREATED, "response": {"id": "r"}}, COMPLETED), "stream.date_missing"),
        (numbered(CREATED, ADDED, DELTA, COMPLETED), "stream.part_end_missing"),
        (numbered(CREATED, ADDED, {**DELTA, "item_id": None}, DONE, COMPLETED), "stream.item_id_missing"),
        (numbered(CREATED, TEXT_ADDED, TEXT_DONE, TEXT_COMPLETED), "stream.deltas_missing"),
    ],
)
def test_an_irregular_stream_has_its_code(given: list[dict[str, Any]], code: str) -> None:
    assert code in read(given)[1]


def test_the_form_of_an_error() -> None:
    assert is_error({"type": "error", "error": {"type": "x", "message": "no"}})
    assert not is_error({"type": "error", "error": "no"})
