"""A gateway for each kind of upstream, started at its first use, and a new task for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.programs.stage import KINDS, Stage, Task, running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Third-party programs have time limits of their own, which a busy machine can exceed: their tests are rerun once."""
    folder = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=1))


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Stage]]:
    opened: dict[str, Stage] = {}
    with ExitStack() as stack:

        def stage(kind: str) -> Stage:
            if kind not in opened:
                opened[kind] = stack.enter_context(running(kind, tmp_path_factory.mktemp(kind)))
            return opened[kind]

        yield stage


@pytest.fixture(params=KINDS)
def stage(request: pytest.FixtureRequest, stages: Callable[[str], Stage]) -> Stage:
    return stages(request.param)


@pytest.fixture
def task(stage: Stage, tmp_path: Path) -> Task:
    return Task(stage, tmp_path / "task")
