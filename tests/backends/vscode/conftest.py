"""One gateway for the tests that need nothing else: VS Code is its only back end beside the demo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backends.vscode.stage import TOKEN, vscode_gateway
from tests.server.harness import Gateway, Upstream


@pytest.fixture(scope="module")
def server() -> Iterator[Gateway]:
    with vscode_gateway() as running:
        yield running


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_BRIDGE_TOKEN", TOKEN)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()
