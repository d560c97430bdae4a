"""Ids that fit: legal ones stay, others are mapped, always alike and never to the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.dialects.shared.call_ids import fit_id


@pytest.mark.parametrize("call_id", ["call_1", "toolu_01A-b", "x" * 64])
def test_legal_ids_stay(call_id: str) -> None:
    assert fit_id(call_id, 64) == call_id


@given(st.text(min_size=1, max_size=100), st.sampled_from([40, 64]))
def test_H043_H045_every_id_becomes_legal_and_stays_so(call_id: str, limit: int) -> None:
    fitted = fit_id(call_id, limit)
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", fitted)
    assert len(fitted) <= limit
    assert fit_id(fitted, limit) == fitted
    assert fit_id(call_id, limit) == fitted


def test_H049_different_ids_stay_different() -> None:
    ids = ["a.b", "a:b", "a_b", "a b", "\ud800", "\ud801", "x" * 65, "x" * 66, "x" * 64]
    assert len({fit_id(call_id, 64) for call_id in ids}) == len(ids)
