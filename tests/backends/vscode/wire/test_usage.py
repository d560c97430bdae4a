"""Tokens in a data part."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.vscode.wire.shapes import DataPart
from toolwire.backends.vscode.wire.usage import sends_usage, usage_in, usage_part
from toolwire.types import Usage


def part(text: bytes) -> DataPart:
    return DataPart(mime="usage", data=b64encode(text).decode())


def test_copilots_own_count_is_read() -> None:
    told = part(
        b'{"prompt_tokens":1011,"completion_tokens":20,"total_tokens":1031,'
        b'"prompt_tokens_details":{"cached_tokens":900,"cache_creation_input_tokens":60},"completion_tokens_details":{"reasoning_tokens":5}}'
    )
    assert usage_in(told) == Usage(input=1011, output=20, cached=900, cache_written=60, reasoning=5)


@pytest.mark.parametrize(
    "told",
    [part(b"{}"), part(b"[1]"), part(b"\xff"), DataPart(mime="usage", data="%"), DataPart(mime="usage", data="")],
)
def test_what_says_nothing_is_nothing(told: DataPart) -> None:
    assert usage_in(told) is None


def test_nonsense_counts_nothing() -> None:
    assert usage_in(part(b'{"prompt_tokens":-1,"completion_tokens":"many"}')) == Usage()


COUNTS = st.integers(0, 10**9)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_ours_is_read_as_it_was(read: int, said: int, cached: int, kept: int, reasoning: int) -> None:
    usage = Usage(
        input=read + cached + kept, output=said + reasoning, cached=cached, cache_written=kept, reasoning=reasoning
    )
    assert usage_in(usage_part(usage)) == usage


@pytest.mark.parametrize(
    ("vendor", "copilot", "has_seen", "is_sure"),
    [
        ("copilot", "0.67.0", False, True),
        ("copilot", "1.0.3", False, True),
        ("copilot", "0.31.2", False, False),
        ("copilot", "", False, False),
        ("customendpoint", "0.67.0", False, False),
        ("customendpoint", "0.67.0", True, True),
    ],
)
def test_whether_a_count_is_sure_to_come(vendor: str, copilot: str, has_seen: bool, is_sure: bool) -> None:
    assert sends_usage(vendor, copilot, has_seen=has_seen) is is_sure
