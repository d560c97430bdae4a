"""A runtime inside a Python program, with the back ends of a configuration or with a running gateway as its only back end."""

from __future__ import annotations

from pathlib import Path

from ..backends import build
from ..backends.http.transport import Transport
from ..catalog.found import found_config
from ..catalog.router import router_for
from ..config.file import BackendConfig, Config, with_backends
from ..config.policy import policy_of
from ..config.prices import price_table
from ..config.secret import Secret
from ..errors import ConfigError
from ..memory.signatures import SignatureMemory
from ..pipeline.groups import ModelGroups
from ..profiles import TOOLWIRE
from ..runtime import Runtime, RuntimeSettings

_GATEWAY = "gateway"


class Host:
    """The runtime and its connections; the caller closes it."""

    def __init__(self, config: Config, prefix: str = "") -> None:
        self._prefix = prefix
        self._transport = Transport()
        backends = {backend.name: build(backend, self._transport) for backend in config.backends}
        policies = {backend.name: policy_of(backend) for backend in config.backends}
        self.prices = price_table(config)
        router = router_for(config)
        self.runtime = Runtime(backends, router, policies, signatures=SignatureMemory())
        groups = ModelGroups(config.groups)
        self.runtime.configure(RuntimeSettings(backends=backends, router=router, policies=policies, groups=groups))

    def model(self, name: str) -> str:
        """The name of the model for the runtime."""
        return f"{self._prefix}{name}"

    async def close(self) -> None:
        await self.runtime.close()
        await self._transport.close()


def host_at(url: str, key: str = "") -> Host:
    """A host that sends every request to a running gateway, which resolves the model names."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f'found the address "{url[:100]}"; expected one such as "http://127.0.0.1:18741".')
    base = url.rstrip("/").removesuffix("/v1")
    gateway = BackendConfig(
        name=_GATEWAY, kind="anthropic", base_url=base, key=Secret(key or "none"), guard="off", profile=TOOLWIRE.name
    )
    return Host(with_backends(Config(), (gateway,)), f"{_GATEWAY}/")


async def host_of(config: Config | Path | str | None) -> Host:
    """A host with the back ends of a configuration, of a file (by default the one that the command line reads), or of discovery."""
    return Host(config if isinstance(config, Config) else await found_config(Path(config) if config else None))
