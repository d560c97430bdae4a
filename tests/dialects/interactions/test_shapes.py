from __future__ import annotations

import json

from toolwire.dialects.interactions.shapes import date_of, encode_error, usage_out
from toolwire.errors import BadRequest
from toolwire.types import Usage


def test_small_values() -> None:
    assert date_of(0) == "1970-01-01T00:00:00Z"
    error = BadRequest("it is wrong.", where="input", code="x")
    assert json.loads(encode_error(error, "r")) == {"error": {"code": "x", "message": "input: it is wrong."}}


def test_thoughts_are_counted_separately() -> None:
    counted = usage_out(Usage(input=10, output=7, reasoning=3, cached=2))
    assert counted == {
        "total_input_tokens": 10, "total_cached_tokens": 2, "total_output_tokens": 4, "total_thought_tokens": 3,
        "total_tokens": 17,
    }  # fmt: skip
