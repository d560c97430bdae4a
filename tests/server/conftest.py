"""One gateway with a back end of each kind, shared by the tests that need nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.free_port import free_port
from tests.server.answers import KINDS
from tests.server.harness import Gateway, Upstream, gateway, server_config
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret


@pytest.fixture(scope="session")
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


def backends_of(upstream: Upstream, **fields: object) -> tuple[BackendConfig, ...]:
    """chat, responses and messages as they come, and each once more with every byte written anew."""
    common = {"key": Secret("sk-upstream"), "models": ("m",), "retries": 0} | fields
    return tuple(
        BackendConfig(
            name=f"{name}{ending}",
            kind=kind,  # type: ignore[arg-type] # one of the kinds
            base_url=upstream.url + ("" if name == "messages" else "/v1"),
            verbatim=verbatim,  # type: ignore[arg-type] # one of the two words
            **common,  # type: ignore[arg-type] # what the test gives
        )
        for name, kind in KINDS.items()
        for ending, verbatim in (("", "auto"), ("-anew", "never"))
    )


@pytest.fixture(scope="session")
def server(upstream: Upstream) -> Iterator[Gateway]:
    dead = BackendConfig(name="dead", kind="openai-chat", base_url=f"http://127.0.0.1:{free_port()}", retries=0)
    scripted = BackendConfig(name="scripted", kind="scripted")
    backends = (*backends_of(upstream), dead, scripted)
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield running
