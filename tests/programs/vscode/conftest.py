"""One VS Code per session; each test runs with the clients of the three dialects, streaming and not, by its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs.codex_backend.clients import CLIENTS as DIALECTS
from tests.programs.codex_backend.clients import Client, Messages
from tests.programs.codex_backend.stage import fresh_tag
from tests.programs.vscode.stage import PLAYER, Stage, running
from tests.thorough import is_thorough

HERE = Path(__file__).parent
Opening = Callable[..., Client]


class Patient(Messages):
    """With a high token limit, which this dialect requires for a long answer."""

    def body(self) -> dict[str, Any]:
        return super().body() | {"max_tokens": 1_000_000}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if is_thorough() or _is_in_turn(item)]


def _is_in_turn(item: pytest.Item) -> bool:
    """Every dialect in every scene, alternating streaming."""
    chosen = getattr(item, "callspec", None)
    if chosen is None or not {"way", "dialect"} <= set(chosen.params) or HERE not in item.path.parents:
        return True
    return sum(chosen.indices.values()) % 2 == 0


CLIENTS = DIALECTS | {"messages": Patient}


@pytest.fixture(scope="session")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running(tmp_path_factory.mktemp("editor")) as stage:
        yield stage


@pytest.fixture(params=sorted(CLIENTS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["whole", "stream"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tag() -> str:
    return fresh_tag()


@pytest.fixture
def client(editor: Stage, dialect: str, way: str) -> Opening:
    def opened(model: str = PLAYER, tools: list[dict[str, Any]] | None = None) -> Client:
        return CLIENTS[dialect](editor, model, is_streamed=way == "stream", tools=tools)  # type: ignore[arg-type]

    return opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Adds the logs of the gateway and VS Code to a failure."""
    report = yield
    stage = getattr(item, "funcargs", {}).get("editor")
    if report.failed and stage is not None:
        report.sections.append(("the stage", stage.tail()))
    return report
