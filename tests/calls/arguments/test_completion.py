"""What must follow the beginning of arguments so that the whole has a given value."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.calls.arguments.completion import completion
from toolwire.wire.exact_json import decode


@pytest.mark.parametrize(
    ("sent", "value", "rest"),
    [
        ("", {"a": 1}, '{"a":1}'),
        ('{"a": "x', {"a": "xyz"}, 'yz"}'),
        ('{"a": "x', {"a": "x", "b": [1, "y"]}, '","b":[1,"y"]}'),
        ('{"a": ', {"a": {"b": None}}, '{"b":null}}'),
        ('{"a": [1, {"b": "x', {"a": [1, {"b": "xy", "c": 2}, 3], "d": True}, 'y","c":2},3],"d":true}'),
        ('{"a": [1, ', {"a": [1, 2]}, "2]}"),
        ('{"a": "\\u00e9', {"a": "\u00e9\n"}, '\\n"}'),
        ('{"a": "x', {"a": "y"}, None),
        ('{"a": "x', {"b": "x"}, None),
        ('{"a": 1, "b": "x', {"a": 2, "b": "x"}, None),
        ('{"a": true, "b": "x', {"a": 1, "b": "x"}, None),
        ('{"a": [1, ', {"a": [1]}, None),
        ('{"a": "x', {"a": ["x"]}, None),
        ('{"a": {"b": "x', {"a": "x"}, None),
    ],
)
def test_completion(sent: str, value: dict[str, Any], rest: str | None) -> None:
    assert completion(sent, value) == rest
    if rest is not None:
        assert decode(sent + rest) == value
