"""A good server for the checks: the gateway with the demo model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.testing.background import BackgroundGateway


@pytest.fixture(scope="session")
def good() -> Iterator[str]:
    with BackgroundGateway(with_backends(Config(), (BackendConfig(name="demo", kind="demo"),))) as gateway:
        yield gateway.address
