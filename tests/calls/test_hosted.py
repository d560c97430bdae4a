"""Uses of the provider's own tools, and their outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.calls.telling import assistant, user
from toolwire.calls.hosted import halves
from toolwire.types import Opaque


def part(kind: str, dialect: str = "messages", **members: Any) -> Opaque:
    return Opaque(dialect=dialect, value={"type": kind, **members})


USE = part("server_tool_use", id="s1")
FOUND = part("web_search_tool_result", tool_use_id="s1")


def test_a_whole_pair_stays_also_over_two_messages() -> None:
    assert halves((user("hi"), assistant(USE), user("so"), assistant(FOUND, "yes"))) == set()


def test_a_use_without_outcome_goes_unless_the_provider_has_paused() -> None:
    assert halves((user("hi"), assistant(USE), user("so"), assistant("yes"))) == {(1, 0)}
    assert halves((user("hi"), assistant("yes", USE))) == set()


def test_an_outcome_before_its_use_goes() -> None:
    assert halves((user("hi"), assistant(FOUND), user("so"), assistant(USE, FOUND))) == {(1, 0)}


def test_a_second_copy_goes() -> None:
    assert halves((user("hi"), assistant(USE, FOUND, USE, FOUND))) == {(1, 2), (1, 3)}


def test_uses_of_servers_tools_and_of_unknown_ones_are_pairs_too() -> None:
    assert halves((assistant(part("mcp_tool_use", id="m1")), user("hi"), assistant("yes"))) == {(0, 0)}
    called = part("x_call", "responses", call_id="c1")
    assert halves((assistant(called), user(part("x_call_output", "responses", call_id="c1")), assistant("y"))) == set()


@pytest.mark.parametrize(
    "alone",
    [
        part("web_search_call", "responses", id="ws_1"),
        part("mcp_call", "responses", id="mcp_1", output="42"),
        part("document"),
        part("server_tool_use", id=7),
        part("server_tool_use", "elsewhere", id="s1"),
        Opaque(dialect="messages", value={}),
    ],
)
def test_parts_that_are_no_halves_stay(alone: Opaque) -> None:
    assert halves((assistant(alone), user("hi"), assistant("yes"))) == set()
