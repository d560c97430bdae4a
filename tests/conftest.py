"""Settings for all tests. Slow test modules carry `pytestmark = pytest.mark.slow`; `make check` skips them, `make test` runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import settings

from tests.thorough import is_thorough

# No deadline: the duration of one example depends on the machine. Examples are derandomized, so that a green run stays green until
# the code changes; a thorough run looks for new examples.
settings.register_profile("toolwire", deadline=None, derandomize=not is_thorough())
settings.load_profile("toolwire")

_IS_SLOW_MODULE = re.compile(r"^pytestmark = (?:\[\s*)?pytest\.mark\.slow", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick gate does not even import slow modules: importing them would take a third of its time."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if _IS_SLOW_MODULE.search(collection_path.read_text(encoding="utf-8")) else None
