"""Settings for all tests. Slow tests carry `pytest.mark.slow`; `make check` skips them, `make test` runs them."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from tests.order import deal
from tests.thorough import examples, is_thorough, set_quick_gate

_LONGEST = 300  # seconds for one test
_IS_SLOW_MODULE = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.slow", re.MULTILINE)


def pytest_configure(config: pytest.Config) -> None:
    for number in (
        signal.SIGINT,
        signal.SIGHUP,
    ):  # ignored if pytest runs in the background; programs would inherit that
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    set_quick_gate(_is_quick_gate(config))
    # No limits of time: the duration of one example depends on the machine. Examples are derandomized, so that a green run stays
    # green until the code changes; a thorough run looks for new examples.
    limits = examples(100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=not is_thorough())
    settings.register_profile("toolwire", limits)
    settings.load_profile("toolwire")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects without garbage collection, which would take half of the time; no later collection looks at modules and test items."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick gate does not even import slow modules: importing them would take a third of its time."""
    if not _is_quick_gate(config) or collection_path.suffix != ".py":
        return None
    return True if _IS_SLOW_MODULE.search(collection_path.read_text(encoding="utf-8")) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = deal([(item, item.path) for item in items], workers)


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


def _is_quick_gate(config: pytest.Config) -> bool:
    return bool(config.getoption("markexpr") == "not slow")


def _expire(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"the test did not end within {_LONGEST} seconds.")
