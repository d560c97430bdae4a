"""Which request gets which mounted tools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.mounted.fakes import FakeTool, config, offer_of
from toolwire.pipeline.mounted.offer import CallRate, approval_of, is_for
from toolwire.types import RecurringTools, Tool


@pytest.mark.parametrize(
    ("fields", "remote", "changes_things", "expected"),
    [
        ({}, "read", False, "allow"),
        ({}, "read", True, "ask"),
        ({"approval": "allow"}, "write", True, "allow"),
        ({"approval": "deny"}, "read", False, "deny"),
        ({"approval": "deny", "approvals": {"read*": "auto"}}, "read_file", False, "allow"),
        ({"approval": "allow", "approvals": {"write*": "ask", "*": "deny"}}, "write_file", True, "ask"),
        ({"approval": "allow", "approvals": {"write*": "ask", "*": "deny"}}, "read_file", False, "deny"),
    ],
)
def test_the_first_pattern_decides_about_a_call(fields: Any, remote: str, changes_things: bool, expected: str) -> None:
    assert approval_of(config(**fields), remote, changes_things=changes_things) == expected


@pytest.mark.parametrize(
    ("fields", "key", "expected"),
    [
        ({}, "", True),
        ({}, "ann", True),
        ({"models": ("fast",)}, "", True),
        ({"models": ("local/*",)}, "", True),
        ({"models": ("other/*",)}, "", False),
        ({"models": ()}, "", False),
        ({"keys": ("team-*",)}, "team-a", True),
        ({"keys": ("team-*",)}, "ann", False),
        ({"keys": ()}, "ann", False),
        ({"keys": ()}, "", True),  # the owner's own key
    ],
)
def test_models_and_keys_are_chosen_by_patterns(fields: Any, key: str, expected: bool) -> None:
    assert is_for(config(**fields), ("fast", "local/qwen"), key) is expected


def test_the_tools_follow_those_of_the_client_and_are_the_same_object_again() -> None:
    offer, own = offer_of(FakeTool("box__echo"), FakeTool("box__two")), RecurringTools((Tool(name="weather"),))
    tools, taken = offer.added_to(own)
    assert [tool.name for tool in tools] == ["weather", "box__echo", "box__two"]
    assert taken == ()
    assert offer.added_to(own)[0] is tools
    assert offer.added_to(())[0] is offer.listed


def test_a_name_of_the_client_takes_precedence() -> None:
    tools, taken = offer_of(FakeTool("box__echo"), FakeTool("box__two")).added_to((Tool(name="box__echo"),))
    assert [tool.name for tool in tools] == ["box__echo", "box__two"]
    assert taken == ("box__echo",)


def test_calls_per_minute_are_counted_for_each_key_and_server() -> None:
    now, server = 0.0, config(calls_per_minute=2)
    rate = CallRate(lambda: now)
    assert [rate.admit(server, "ann") for _ in range(3)] == [True, True, False]
    assert rate.admit(server, "bob")
    assert rate.admit(config("other", calls_per_minute=2), "ann")
    now = 60.5
    assert rate.admit(server, "ann")
    assert all(rate.admit(config(), "ann") for _ in range(100))
