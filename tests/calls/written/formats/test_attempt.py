from __future__ import annotations

import pytest

from tests.calls.speaking import CALL, told
from toolwire.calls.written.formats import GRAMMARS
from toolwire.calls.written.formats.attempt import Trial, Until
from toolwire.calls.written.formats.base import Closed, Grew, Opened
from toolwire.calls.written.formats.openers import Openers

pytestmark = pytest.mark.slow


def trial(opener: str = "<tool_call", until: Until = "nothing") -> Trial:
    opening = Openers(GRAMMARS).at(opener, 0)
    assert opening is not None
    return Trial(opening, told(), lambda grammar: until)


def test_one_grammar_after_the_other_reads_it() -> None:
    found = trial()
    assert found.feed(">get_weather<arg_key>city</arg_key>").pieces == [Opened("get_weather")]
    assert found.feed("<arg_value>Paris</arg_value></tool_call> x").pieces[-1] == Closed(
        name="get_weather", raw='{"city":"Paris"}'
    )


def test_it_is_none_if_all_say_so() -> None:
    found = trial()
    assert found.feed("> is a tag, </tool_call>").status == "none"
    assert found.span == "<tool_call> is a tag, </tool_call>"


def test_the_last_grammar_may_find_sense_at_the_end() -> None:
    found = trial("<tool_calls>")
    assert found.feed(f"\n{CALL}").status == "more"
    read = found.close()
    assert read.status == "done"
    assert [type(piece) for piece in read.pieces] == [Closed]


def test_what_was_given_is_no_longer_kept() -> None:
    found = trial()
    read = found.feed('>{"name": "get_weather", "arguments": {"city')
    assert read.pieces == [Opened("get_weather"), Grew('{"city')]
    assert found.span == "<tool_call"


def test_where_more_is_asked_nothing_is_given_early() -> None:
    found = trial(until="line")
    assert found.feed(f">{CALL}").pieces == []
    assert found.until == "line"
    assert len(found.feed("</tool_call>").pieces) == 1
