"""One gateway for all tests with real clients, and a clean environment without the user's settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest

from tests.clients.gateway import Gateway, running_gateway


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture(scope="session")
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loading all trusted certificates takes longer than a test, and loopback needs none."""
    end = "-----END CERTIFICATE-----\n"
    first, _, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(end)
    path = tmp_path_factory.mktemp("trust") / "one.pem"
    path.write_text(first + end, encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one_certificate: Path) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("OPENAI_", "ANTHROPIC_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(one_certificate))
