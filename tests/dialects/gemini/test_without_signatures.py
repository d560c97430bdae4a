"""Gemini: requests without signatures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.gemini.without_signatures import without_signatures

HI = {"role": "user", "parts": [{"text": "hi"}]}


def changed(*contents: Any, **members: Any) -> Any:
    body = without_signatures(json.dumps({"contents": list(contents), **members}).encode())
    return None if body is None else json.loads(body)


def test_H074_H076_the_first_call_is_marked_and_nothing_else_is_signed() -> None:
    parts = [
        {"text": "hm", "thought": True, "thoughtSignature": "QQ=="},
        {"text": "", "thought_signature": "Qg=="},
        {"functionCall": {"name": "f", "args": {"thoughtSignature": "an argument"}}, "thoughtSignature": "Qw=="},
        {"functionCall": {"name": "g"}},
    ]
    found = changed(HI, {"role": "model", "parts": parts}, tools=[1])
    assert found == {
        "contents": [
            HI,
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {
                        "functionCall": {"name": "f", "args": {"thoughtSignature": "an argument"}},
                        "thoughtSignature": "skip_thought_signature_validator",
                    },
                    {"functionCall": {"name": "g"}},
                ],
            },
        ],
        "tools": [1],
    }
    assert without_signatures(json.dumps(found).encode()) is None


def test_a_call_that_lacks_one_is_marked() -> None:
    found = changed(HI, {"role": "model", "parts": [{"functionCall": {"name": "f"}}]})
    assert found["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"contents":1}', b'{"contents":[1,{"parts":2},{"parts":[3]}]}'])
def test_what_has_none_stays(body: bytes) -> None:
    assert without_signatures(body) is None
