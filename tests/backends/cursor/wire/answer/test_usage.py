"""Tokens: counted as they come for an answer that stops, by the turn's own count for the last."""

from __future__ import annotations

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.answer.usage import Meter
from toolwire.types import Usage


def test_nothing_known_is_nothing_told() -> None:
    assert Meter().stop() is None
    assert Meter().end(agent.TurnEndedUpdate()) is None


def test_an_answer_that_stops_counts_what_came_in_it() -> None:
    meter = Meter()
    meter.checkpoint(agent.ConversationTokenDetails(used_tokens=50, max_tokens=90))
    meter.checkpoint(agent.ConversationTokenDetails())
    meter.tokens(3)
    meter.tokens(-9)
    assert meter.stop() == Usage(input=50, output=3)
    meter.tokens(2)
    assert meter.stop() == Usage(input=50, output=2)
    assert meter.limit == 90


def test_the_last_answer_is_the_turn_without_the_answers_before() -> None:
    meter = Meter()
    meter.tokens(30)
    meter.stop()
    meter.tokens(5)
    turn = agent.TurnEndedUpdate(
        input_tokens=100, output_tokens=36, cache_read_tokens=70, cache_write_tokens=10, reasoning_tokens=2
    )
    assert meter.end(turn) == Usage(input=100, output=6, cached=70, cache_written=10, reasoning=2)


def test_no_count_is_negative_and_no_part_larger_than_the_whole() -> None:
    meter = Meter()
    meter.tokens(30)
    meter.stop()
    turn = agent.TurnEndedUpdate(input_tokens=5, output_tokens=20, cache_read_tokens=7, reasoning_tokens=9)
    assert meter.end(turn) == Usage(input=7, output=0, cached=7)
    turn = agent.TurnEndedUpdate(input_tokens=-5, output_tokens=-20, cache_write_tokens=-7, reasoning_tokens=-9)
    assert meter.end(turn) == Usage()


def test_a_turn_that_says_nothing_is_counted_as_it_came() -> None:
    meter = Meter()
    meter.tokens(4)
    assert meter.end(agent.TurnEndedUpdate()) == Usage(output=4)
