"""Bodies that every dialect refuses, and the way to spoil a good one at one place."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest

GONE = object()

NOT_OBJECTS = [
    b"",
    b"  \n",
    b"{",
    b"[]",
    b'"text"',
    b"null",
    b"5",
    b'{"model":"m",}',
    b'{"model":NaN}',
    b'\xef\xbb\xbf{"model":"m"}',
    b'{"model":"\xff"}',
    b"\x00",
    b'{"model":"m"}{"model":"m"}',
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b'{"n":' + b"9" * 5000 + b"}",
    b'{"n":1e99999999999999999999}',
    b"\x1f\x8b\x08\x00",
]


def with_change(body: Any, path: str, value: Any) -> Any:
    """The body with one place changed: "messages.0.role"; GONE takes the member away."""
    changed = copy.deepcopy(body)
    owner = changed
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        owner = owner[step]
    if value is GONE:
        del owner[last]
    else:
        owner[last] = value
    return changed


def refusal(dialect: str, body: Any) -> BadRequest:
    wire = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(BadRequest) as caught:
        DIALECTS[dialect].decode_request(wire, {})
    assert caught.value.status == 400
    assert len(caught.value.sentence()) < 500
    return caught.value


def assert_noted(dialect: str, body: Any, where: str) -> None:
    """The body is read, and a loss names this place or the part or message that it belongs to."""
    request = DIALECTS[dialect].decode_request(json.dumps(body).encode(), {})
    places = [loss.where for loss in request.repaired]
    assert any(where.startswith(place) or place.startswith(where) for place in places), places
    assert all(loss.feature.startswith("history.") for loss in request.repaired)
