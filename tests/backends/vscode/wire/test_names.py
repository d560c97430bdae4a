"""VSCodeToolNames of tools: legal for Copilot, each its own, and back again."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.vscode.wire.names import VSCodeToolNames

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
NAMES = st.text(max_size=70) | st.sampled_from(["a.b", "a_b", "a/b", "", "x" * 64, "x" * 65, "größe", "a\ud800"])


@given(st.lists(NAMES, max_size=12))
def test_H052_H053_names_come_back(given_names: list[str]) -> None:
    names = VSCodeToolNames(given_names)
    written = {name: names.wire(name) for name in given_names}
    assert all(LEGAL.fullmatch(name) for name in written.values())
    assert len(set(written.values())) == len(written)
    assert {names.client(name) for name in written.values()} == set(given_names)
    assert all(names.client(wire) == name for name, wire in written.items())


@given(NAMES, st.lists(NAMES, max_size=5))
def test_a_name_alone_decides_what_it_becomes(name: str, others: list[str]) -> None:
    alone = VSCodeToolNames([name]).wire(name)
    among = VSCodeToolNames([*others, name]).wire(name)
    is_taken = alone in {VSCodeToolNames([other]).wire(other) for other in others if other != name}
    assert among == alone or is_taken
    assert VSCodeToolNames().wire(name) == alone


def test_a_name_that_looks_like_anothers_keeps_it() -> None:
    marked = VSCodeToolNames().wire("a.b")
    names = VSCodeToolNames(["a.b", marked])
    assert names.wire(marked) == marked
    assert names.client(names.wire("a.b")) == "a.b"
    assert names.wire("a.b") != marked


def test_a_name_that_is_not_ours_stays() -> None:
    assert VSCodeToolNames(["a"]).client("b") == "b"
    assert VSCodeToolNames().wire("get_weather") == "get_weather"
