"""The address of a process: of its own listener, or as configured for other machines."""

from __future__ import annotations

import socket

import pytest

from toolwire.cluster.node import bind_internal
from toolwire.config.file import ClusterConfig
from toolwire.errors import ConfigError


def test_workers_have_ports_of_their_own() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="cannot listen"):
            bind_internal(ClusterConfig(port=port))
    listeners = [bind_internal(ClusterConfig()) for _ in range(2)]
    assert len({listener.getsockname()[1] for listener in listeners}) == 2
    for listener in listeners:
        listener.close()
