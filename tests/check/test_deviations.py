from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.check.deviations import CODES, DeviationLog


def test_a_code_is_recorded_once_with_its_first_place() -> None:
    log = DeviationLog("text")
    log.add("finish.missing", "end", "first")
    log.add("finish.missing", "later", "second")
    (found,) = log.found.values()
    assert (found.where, found.detail, found.is_fault) == ("text: end", "first", True)


def test_details_are_bounded() -> None:
    log = DeviationLog()
    log.add("usage.wrong", "usage", {"a": "x" * 10_000})
    assert len(log.found["usage.wrong"].detail) == 300


def test_an_unknown_code_is_a_mistake_of_the_probe() -> None:
    with pytest.raises(ValueError, match="not a code"):
        DeviationLog().add("finish.mising", "end")


def test_the_documentation_lists_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text()
    for code, meaning in CODES.items():
        assert f"| `{code}` | {'fault' if meaning.is_fault else 'unusual'} | {meaning.text} |" in page


def test_every_code_has_a_meaning_that_is_a_sentence() -> None:
    assert all(meaning.text.endswith(".") and "." in code for code, meaning in CODES.items())
