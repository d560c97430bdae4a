from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.check.deviations import DeviationLog
from toolwire.check.wire.gemini import is_error, read_body

USAGE = {"promptTokenCount": 1, "candidatesTokenCount": 2}


def body(*parts: Any, **more: Any) -> bytes:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", **more}
    return json.dumps({"candidates": [candidate], "usageMetadata": USAGE}).encode()


def test_a_valid_call_is_read_without_deviation() -> None:
    log = DeviationLog()
    answer = read_body(body({"text": "a"}, {"functionCall": {"name": "f", "args": {"a": 1}}}), log)
    assert not log.found
    assert (answer.text, answer.calls[0].arguments, answer.finish, answer.usage) == ("a", '{"a": 1}', "calls", (1, 2))


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (body({"functionCall": {"name": "f", "args": "{}"}}), "call.arguments_type"),
        (body({"functionCall": {"args": {}}}), "call.name_missing"),
        (body({"text": 7}), "body.member_type"),
        (body({"text": "a"}, finishReason="DONE"), "finish.unknown"),
        (body({"text": "a"}, finishReason=None), "finish.missing"),
        (b"{}", "body.structure"),
        (b'{"error": {"code": 500, "message": "no"}}', "body.error"),
    ],
)
def test_an_irregular_body_has_its_code(raw: bytes, code: str) -> None:
    log = DeviationLog()
    read_body(raw, log)
    assert code in log.found


def test_the_form_of_an_error() -> None:
    assert is_error({"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}})
    assert is_error([{"error": {"code": 400, "message": "no"}}])
    assert not is_error({"error": {"message": "no"}})
