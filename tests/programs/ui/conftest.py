"""One gateway and one browser for the tests of the inspector."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.programs.ui.chromium import Chromium, chromium
from tests.programs.ui.stage import Stage, staged


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    """Without the flows of the tests before."""
    shared_stage.clear()
    return shared_stage
