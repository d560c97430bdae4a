"""Settings for all tests. Slow test modules carry `pytestmark = pytest.mark.slow`; `make check` skips them, `make test` runs them."""

from __future__ import annotations

import re
import signal
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import settings

from tests.thorough import is_thorough

# No deadline: the duration of one example depends on the machine. Examples are derandomized, so that a green run stays green until
# the code changes; a thorough run looks for new examples.
settings.register_profile("toolwire", deadline=None, derandomize=not is_thorough())
settings.load_profile("toolwire")

_LONGEST = 300  # seconds for one test
_IS_SLOW_MODULE = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.slow", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick gate does not even import slow modules: importing them would take a third of its time."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if _IS_SLOW_MODULE.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that hangs fails, instead of holding up the whole run."""
    former = signal.signal(signal.SIGALRM, _expire)
    signal.alarm(_LONGEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def _expire(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"the test did not end within {_LONGEST} seconds.")
