"""One process of a cluster: its identity, its internal listener, and its access to the others."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Mapping
from importlib.metadata import version

from ..backends.base import Backend
from ..backends.http.transport import Transport
from ..config.values import ClusterConfig
from ..errors import ConfigError
from ..ids import new_id
from ..memory.store import Store
from .backend import ClusterBackend, needs_cluster
from .client import PeerClient, PeerLost
from .directory import Directory, Peer
from .endpoint import ClusterEndpoint
from .signature import ClusterSigner


class ClusterNode:
    """listener: of this process alone. endpoint: the application to serve there. Belongs to one event loop after join()."""

    def __init__(self, config: ClusterConfig, listener: socket.socket, max_body: int) -> None:
        self.listener = listener
        port = listener.getsockname()[1]
        host = config.advertise or config.host
        name = f"[{host}]" if ":" in host else host
        self._own = Peer(id=new_id("process_"), address=f"http://{name}:{port}", version=version("toolwire"))
        self._signer = ClusterSigner(config.secret.reveal())
        self.endpoint = ClusterEndpoint(self._own.id, self._signer, max_body)
        self._directory: Directory | None = None
        self._transport: Transport | None = None
        self._client: PeerClient | None = None
        self._backends: Mapping[str, Backend] = {}

    def join(self, store: Store, backends: Mapping[str, Backend]) -> dict[str, Backend]:
        """The back ends for the runtime: those with live runs forward what other processes hold."""
        self._backends = backends
        self._directory = Directory(store, self._own, self._present)
        self._transport = Transport(environ={})  # without proxies
        self._client = PeerClient(self._transport, self._signer)
        reached = self.replace(backends)
        self._directory.start()
        return reached

    def replace(self, backends: Mapping[str, Backend]) -> dict[str, Backend]:
        """The same for other back ends, of which some may be as before."""
        assert self._directory is not None
        assert self._client is not None
        self._backends, before = backends, self.endpoint.backends
        clustered: dict[str, ClusterBackend] = {}
        for name, backend in backends.items():
            if needs_cluster(backend):
                former = before.get(name)
                if former is None or former.inner is not backend:
                    former = ClusterBackend(backend, self._directory, self._client)
                clustered[name] = former
        self.endpoint.backends = clustered
        return {**backends, **clustered}

    def _present(self) -> list[str]:
        return [name for name, one in self._backends.items() if one.is_single_process and one.absence is None]

    async def leave(self) -> None:
        if self._directory is not None:
            await self._directory.stop()
        if self._transport is not None:
            await self._transport.close()

    async def note_job(self, owner: str, answer_id: str) -> None:
        """Raises GatewayError."""
        if self._directory is not None:
            await self._directory.note_job(owner, answer_id)

    async def follow(self, owner: str, answer_id: str, after: int) -> AsyncGenerator[bytes, None]:
        """The events of a background answer of another process. Raises PeerLost if no process has it, also after some events."""
        assert self._directory is not None
        assert self._client is not None
        if (peer := await self._directory.runner(owner, answer_id)) is None:
            raise PeerLost
        async for piece in self._client.follow(peer, owner, answer_id, after):
            yield piece


def bind_internal(config: ClusterConfig, number: int = 0) -> socket.socket:
    """number: of the worker; each has its own port. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port + number if config.port else 0))
    except OSError as error:
        listener.close()
        message = f"cannot listen on {config.host}:{config.port}: {error.strerror}."
        raise ConfigError(message, where="[cluster] host") from None
    return listener
