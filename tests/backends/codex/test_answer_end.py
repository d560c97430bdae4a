"""When an answer with calls is complete, by the messages of the real versions (tests/backends/codex/wire/recordings has whole turns)."""

from __future__ import annotations

import pytest

from toolwire.backends.codex.answer_end import COUNT, LONG_SILENCE, SILENCE, Ending
from toolwire.backends.codex.wire import Version, abilities_of

pytestmark = pytest.mark.slow


def ending(minor: int) -> Ending:
    version = Version(0, minor)
    return Ending(version, abilities_of(version))


def count(total: int) -> dict[str, object]:
    return {"tokenUsage": {"total": {"totalTokens": total}, "last": {"totalTokens": 120}}}


@pytest.mark.parametrize("minor", [89, 92, 98, 110, 120, 130])
def test_older_versions_tell_it_by_counting(minor: int) -> None:
    told = ending(minor)
    assert told.silence == LONG_SILENCE
    told.hear("item/completed", count(120))
    assert told.silence == LONG_SILENCE
    told.hear(COUNT, count(120))
    assert told.silence == 0


@pytest.mark.parametrize("minor", [89, 130])
def test_a_count_that_is_told_again_begins_a_response(minor: int) -> None:
    told = ending(minor)
    told.hear(COUNT, count(120))
    told.begin()
    told.hear(COUNT, count(120))
    assert told.silence == LONG_SILENCE
    told.hear(COUNT, count(240))
    assert told.silence == 0


def test_where_a_count_comes_after_the_results_it_tells_nothing() -> None:
    for minor, silence in ((144, SILENCE), (131, SILENCE), (145, LONG_SILENCE), (166, LONG_SILENCE)):
        told = ending(minor)
        told.hear(COUNT, count(120))
        assert told.silence == silence


@pytest.mark.parametrize("params", [{}, {"tokenUsage": None}, {"tokenUsage": []}, {"tokenUsage": {"total": None}}])
def test_a_count_of_nothing_tells_nothing(params: dict[str, object]) -> None:
    told = ending(89)
    told.hear(COUNT, params)
    assert told.silence == LONG_SILENCE
