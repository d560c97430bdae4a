"""What goes wrong, in sentences."""

from __future__ import annotations

import pytest

from toolwire.tools.mcp.errors import ServerFault, foreign, last_words, server
from toolwire.tools.mcp.target import target_of

pytestmark = pytest.mark.slow

TARGET = target_of("run", "shop", {"KEY": "hunter2-secret"}, None)


def test_a_server_is_called_by_its_name() -> None:
    assert server(TARGET) == 'MCP server "shop"'


def test_last_words_are_the_end_and_hold_no_secret() -> None:
    assert last_words(TARGET, "") == ""
    assert last_words(TARGET, "one\n\n two hunter2-secret\n") == ' It last said: "one | two ***".'
    long = last_words(TARGET, "x" * 10_000 + "the end")
    assert long.endswith('the end".')
    assert len(long) < 300


def test_foreign_words_are_one_line_and_bounded() -> None:
    said = foreign(TARGET, "a\n b\x07 hunter2-secret " + "y" * 10_000)
    assert said.startswith('"a b\\u0007 *** yyy')
    assert len(said) < 300


def test_a_fault_says_whether_the_session_is_over() -> None:
    assert not ServerFault("odd").is_over
    assert ServerFault("dead", is_over=True).is_over
