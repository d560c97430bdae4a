"""Names of tools: every one goes out legal, unlike a built-in one, and comes back in every form that the server has for it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.backends.cursor.wire.names import MAX_LENGTH, PROVIDER, WireNames
from toolwire.types import Tool

LEGAL = re.compile(r"[A-Za-z0-9_-]+\Z")
WORDS = [
    "read",
    "Read",
    "client_read",
    "client_client_read",
    "mcp_tw_read",
    "tw-read",
    "x",
    "tw_x",
    "mcp_tw_x",
    "mcp__a__b",
]
NAMES = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=70)), min_size=1, max_size=12, unique=True)


@given(NAMES)
def test_every_name_comes_back_in_every_form(given_names: list[str]) -> None:
    names = WireNames(given_names)
    written = [names.wire(name) for name in given_names]
    assert len(set(written)) == len(given_names)
    for name, alias in zip(given_names, written, strict=True):
        assert LEGAL.match(alias)
        assert len(f"mcp_{PROVIDER}_{alias}") <= 64
        for form in (alias, f"mcp_tw_{alias}", f"mcp__tw__{alias}", f"tw-{alias}", f"user-tw-{alias}", f"tw_{alias}"):
            assert names.client(form) == name
            assert names.client(form, alias) == name
        assert names.client("something", alias) == name


@examples(50)
@given(NAMES, NAMES)
def test_what_a_name_becomes_does_not_depend_on_the_others(some: list[str], others: list[str]) -> None:
    alone = [WireNames([name]).wire(name) for name in some]
    assert [WireNames([*others, *some]).wire(name) for name in some] == alone
    assert [WireNames().wire(name) for name in some] == alone


@pytest.mark.parametrize(
    "name", ["read", "Read", "Write", "ls", "LS", "web_search", "WebFetch", "TodoWrite", "todo_write"]
)
def test_built_in_names_are_not_used(name: str) -> None:
    assert WireNames([name]).wire(name) == f"client_{name}"


@pytest.mark.parametrize("name", ["bash", "mcp__github__search", "apply_patch", "a-b", "reader", "x" * MAX_LENGTH])
def test_other_names_stay(name: str) -> None:
    assert WireNames([name]).wire(name) == name


def test_H055_a_name_that_is_too_long_is_shortened_and_never_dropped() -> None:
    long, longer = "x" * 58, "x" * 59
    names = WireNames([long, longer])
    for name in (long, longer):
        assert len(PROVIDER) + 1 + len(names.wire(name)) <= 60
        assert names.client(f"mcp_tw_{names.wire(name)}") == name


def test_the_clients_own_name_is_understood() -> None:
    names = WireNames.of([Tool(name="read"), Tool(name="Bash"), Tool(name="web.search")])
    assert names.client("read") == "read"
    assert names.client("mcp_tw_read", "read") == "read"
    assert names.client("mcp_bash") == "Bash"
    assert names.client("web.search") == "web.search"
    assert names.client("Web-Search") == "web.search"


def test_an_unclear_or_unknown_name_matches_nothing() -> None:
    names = WireNames(["get_user", "get-user"])
    assert names.client("GET USER") is None
    assert names.client("get-user") == "get-user"
    assert names.client("nothing", "of this") is None
    assert names.client("", "") is None
    assert names.client("mcp_tw_") is None
    assert WireNames([""]).client("mcp_") is None
    assert len(names) == 2


def test_names_with_the_same_hash_are_distinguished() -> None:
    one, two = "..,.,,,,..,.,.......", ",.,,...,,.,..,......"
    assert WireNames([one]).wire(one) == WireNames([two]).wire(two)
    names = WireNames([one, two])
    assert [names.client(names.wire(name)) for name in (one, two)] == [one, two]


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_name_is_too_strange(name: str, tool_name: str) -> None:
    found = WireNames(["a", "A", "read"]).client(name, tool_name)
    assert found in (None, "a", "A", "read")
