"""A gateway and a server with only text for each setting, started at their first use, and a new task for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.programs.simulated.stage import Setting, running
from tests.programs.stage import Stage, Task


def pytest_make_parametrize_id(val: object) -> str | None:
    return val.words if isinstance(val, Setting) else None


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Setting], Stage]]:
    opened: dict[Setting, Stage] = {}
    with ExitStack() as stack:

        def stage(setting: Setting) -> Stage:
            if setting not in opened:
                opened[setting] = stack.enter_context(running(setting, tmp_path_factory.mktemp(setting.words)))
            return opened[setting]

        yield stage


@pytest.fixture
def stage(request: pytest.FixtureRequest, simulated: Callable[[Setting], Stage]) -> Stage:
    """Parametrized by tests, indirectly."""
    return simulated(request.param)


@pytest.fixture
def task(stage: Stage, tmp_path: Path) -> Task:
    return Task(stage, tmp_path / "task")
