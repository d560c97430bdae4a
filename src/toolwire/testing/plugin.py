"""The pytest plugin: `--toolwire-record`, the marker `toolwire` and the fixture `toolwire_gateway`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # imported when a test uses the fixture, because pytest loads this module in every run
    from .gateway import CassetteGateway

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
FOLDER = "cassettes"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("toolwire")
    group.addoption("--toolwire-record", action="store_true", help="Record all cassettes of the selected tests again.")


def pytest_configure(config: pytest.Config) -> None:
    text = 'toolwire(cassette="NAME.jsonl", match="exact", timing="instant", damage=()): how toolwire_gateway answers'
    config.addinivalue_line("markers", text)


@pytest.fixture
def toolwire_gateway(request: pytest.FixtureRequest) -> Iterator[CassetteGateway]:
    """Answers from the cassette of this test; records it if there is none, or with --toolwire-record.

    A request without a recorded answer fails the test, with the difference to the nearest one.
    """
    from .gateway import CassetteGateway

    marker = request.node.get_closest_marker("toolwire")
    options: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    file = _file_of(request, options.pop("cassette", ""))
    is_recording = request.config.getoption("--toolwire-record") or not file.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    gateway = CassetteGateway.record(file) if is_recording else CassetteGateway.replay(file, **options)
    with gateway:
        yield gateway
        misses = gateway.misses
    if misses:
        pytest.fail(
            f"{file.name}: {misses[0]} Record it again with --toolwire-record if the change is intended.", pytrace=False
        )


def _file_of(request: pytest.FixtureRequest, name: str) -> Path:
    path = Path(request.node.path)
    own = f"{path.stem}.{_UNSAFE.sub('-', request.node.name)}.jsonl"
    return path.parent / FOLDER / (name or own)
