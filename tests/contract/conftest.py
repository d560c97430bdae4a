"""The gateway of the dialect matrix: the same as for the tests with real clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.gateway import Gateway, running_gateway


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running
