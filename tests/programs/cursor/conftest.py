"""A simulator and a gateway for each setting, started at their first use, and a new task for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.programs.cursor.stage import CursorStage, Setting, running
from tests.programs.stage import Task


def pytest_make_parametrize_id(val: object) -> str | None:
    return val.words if isinstance(val, Setting) else None


@pytest.fixture(scope="session")
def cursors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Setting], CursorStage]]:
    opened: dict[Setting, CursorStage] = {}
    with ExitStack() as stack:

        def stage(setting: Setting) -> CursorStage:
            if setting not in opened:
                opened[setting] = stack.enter_context(running(setting, tmp_path_factory.mktemp(setting.words)))
            return opened[setting]

        yield stage


@pytest.fixture
def stage(request: pytest.FixtureRequest, cursors: Callable[[Setting], CursorStage]) -> CursorStage:
    """Parametrized by tests, indirectly."""
    return cursors(request.param)


@pytest.fixture
def task(stage: CursorStage, tmp_path: Path) -> Task:
    return Task(stage, tmp_path / "task")
