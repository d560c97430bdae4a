"""A runtime for a program of one's own: with the back ends of a configuration, or with a gateway that runs elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from ..backends import build
from ..backends.http.transport import Transport
from ..catalog.discovery import discover
from ..catalog.router import router_for
from ..config.file import BackendConfig, Config, load, with_backends
from ..config.policy import policy_of
from ..config.secret import Secret
from ..errors import ConfigError, GatewayError
from ..memory.signatures import Vault
from ..profiles import TOOLWIRE
from ..runtime import Runtime

_GATEWAY = "gateway"


class Host:
    """Opened where it is first needed, closed by whoever opened it."""

    def __init__(self, config: Config, prefix: str = "") -> None:
        self._prefix = prefix
        self._transport = Transport()
        backends = {backend.name: build(backend, self._transport) for backend in config.backends}
        policies = {backend.name: policy_of(backend) for backend in config.backends}
        self.runtime = Runtime(backends, router_for(config), policies, signatures=Vault())

    def model(self, name: str) -> str:
        """The name by which the runtime knows this model."""
        return f"{self._prefix}{name}"

    async def close(self) -> None:
        await self.runtime.close()
        await self._transport.close()


def host_at(url: str, key: str = "") -> Host:
    """A gateway that runs elsewhere answers; every model name is its own matter."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f'found the address "{url[:100]}"; expected one such as "http://127.0.0.1:18741".')
    base = url.rstrip("/").removesuffix("/v1")
    gateway = BackendConfig(
        name=_GATEWAY, kind="anthropic", base_url=base, key=Secret(key or "none"), guard="off", profile=TOOLWIRE.name
    )
    return Host(with_backends(Config(), (gateway,)), f"{_GATEWAY}/")


async def host_of(config: Config | Path | str | None) -> Host:
    """The back ends of a configuration, or of the file that the command line would read, or what this machine offers."""
    if not isinstance(config, Config):
        config = load(Path(config) if config else None, os.environ)
        if not config.path:
            config = with_backends(config, await _discovered())
    return Host(config)


async def _discovered() -> tuple[BackendConfig, ...]:
    transport = Transport()

    async def probe(url: str) -> list[str] | None:
        server = BackendConfig(name="probe", kind="openai-chat", base_url=url.removesuffix("/models"), retries=0)
        try:
            return [model.id for model in await build(server, transport).models()]
        except GatewayError:
            return None

    try:
        return await discover(os.environ, probe)
    finally:
        await transport.close()
