from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from toolwire.backends.scripted.regex_process import BadPattern, search


def found(pattern: str, text: str, seconds: float = 20.0) -> str | None:
    return asyncio.run(search(pattern, text, seconds))


@pytest.mark.slow
def test_what_is_found_first_is_given() -> None:
    assert found("[0-9]+", "a 12 b 345") == "12"
    assert found("z", "a") is None
    assert found("é.", "caf\u00e9\U0001f600") == "é\U0001f600"
    assert found("", "a") == ""
    assert found("\ud800", "x\ud800y") == "\ud800"


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["(", "[", "*a", "(?P<x>a)(?P<x>b)", "(" * 300])
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        found(pattern, "a")


@pytest.mark.slow
def test_what_takes_too_long_is_stopped_and_leaves_no_process() -> None:
    before = children()
    with pytest.raises(BadPattern, match="takes longer than"):
        found("(a+)+$", "a" * 60 + "!", seconds=0.3)
    assert children() <= before


def test_a_search_that_is_cancelled_leaves_no_process() -> None:
    before = children()

    async def main() -> None:
        task = asyncio.create_task(search("(a+)+$", "a" * 60 + "!", 60.0))
        while children() <= before:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert children() <= before


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
