"""One stage per proof_* file; each test runs with the clients of the three dialects, streaming and not, by its parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.programs.codex_backend import session
from tests.programs.codex_backend.binaries import NEWEST, VERSIONS
from tests.programs.codex_backend.clients import CLIENTS, Client
from tests.programs.codex_backend.stage import Stage, backends_of, fresh_tag, running
from tests.thorough import is_thorough

Opening = Callable[..., Client]
VERSION = os.environ.get("TOOLWIRE_CODEX", NEWEST)


def pytest_report_header() -> str | None:
    alone = os.environ.get(session.NOTE)
    return f"network: {alone}" if alone else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if is_thorough() or _is_in_turn(item)]


def _is_in_turn(item: pytest.Item) -> bool:
    """Every dialect in every scene on every back end, alternating streaming and the other dialect; the two versions alternate oppositely."""
    chosen = getattr(item, "callspec", None)
    if chosen is None or not item.path.name.startswith("proof_"):
        return True
    turn = sum(chosen.indices.values()) + VERSIONS.index(VERSION)
    return turn % 2 == 0 if "way" in chosen.params else turn % 3 == 0 if "other" in chosen.params else True


@pytest.fixture(scope="module")
def codex_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running(VERSION, tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture(params=sorted(CLIENTS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["whole", "stream"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=backends_of(VERSION))
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tag() -> str:
    return fresh_tag()


@pytest.fixture
def client(codex_stage: Stage, dialect: str, way: str) -> Opening:
    def opened(backend: str, tools: list[dict[str, Any]] | None = None) -> Client:
        return CLIENTS[dialect](codex_stage, backend, is_streamed=way == "stream", tools=tools)

    return opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Adds the log of the gateway to a failure."""
    report = yield
    stage = getattr(item, "funcargs", {}).get("codex_stage")
    if report.failed and stage is not None:
        report.sections.append(("the stage", stage.tail()))
    return report
