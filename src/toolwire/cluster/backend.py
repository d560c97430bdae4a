"""A back end with live runs, in a cluster: what another process holds is forwarded to it, everything else is answered here."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from functools import partial

from ..backends.base import Backend, EventReply, Model, TokenCount, WireReply
from ..backends.continuation import resume_point
from ..errors import UpstreamError
from ..events import Event
from ..types import Request
from .client import PeerClient, PeerLost
from .directory import Directory, Peer

_log = logging.getLogger("toolwire.cluster")


def needs_cluster(backend: Backend) -> bool:
    """Whether requests to it depend on the process that they reach."""
    return backend.parked_runs is not None or backend.is_single_process


class ClusterBackend(Backend):
    """Wraps a back end for all requests; it belongs to the runtime, which closes it."""

    def __init__(self, inner: Backend, directory: Directory, client: PeerClient) -> None:
        self.name = inner.name
        self.dialect = inner.dialect
        self.profile = inner.profile
        self.tool_kinds = inner.tool_kinds
        self.is_single_process = inner.is_single_process
        self.inner = inner
        self._directory = directory
        self._client = client
        if inner.parked_runs is not None:
            inner.parked_runs.on_park = partial(directory.lease, inner.name)

    async def open(self, request: Request, *, is_verbatim: bool) -> WireReply | EventReply:
        """A run of a process that cannot be reached is replaced by a new one."""
        if (peer := await self._holder(request)) is not None:
            try:
                return await self._client.run(peer, self.name, request)
            except PeerLost:
                _log.warning(
                    "back end %s: process %s does not hold the run any more; a new one starts", self.name, peer.id
                )
        return await self.open_here(request, is_verbatim=is_verbatim)

    async def open_here(self, request: Request, *, is_verbatim: bool = False) -> WireReply | EventReply:
        reply = await self.inner.open(request, is_verbatim=is_verbatim)
        if self.inner.parked_runs is None or not isinstance(reply, EventReply):
            return reply
        return _LeasedReply(
            events=self._leased(reply.events),
            losses=reply.losses,
            headers=reply.headers,
            how=reply.how,
            local=reply.local,
            inner=reply,
        )

    def holds(self, request: Request) -> bool:
        """Whether this process is the one to answer a request that was forwarded to it."""
        runs = self.inner.parked_runs
        if runs is None:
            return self.inner.absence is None
        point = resume_point(request)
        return point is not None and runs.holds(point[0])

    async def models(self) -> list[Model]:
        peer = await self._present() if self._is_absent else None
        if peer is not None:
            try:
                return await self._client.models(peer, self.name)
            except PeerLost:
                pass
        return await self.inner.models()

    async def models_here(self) -> list[Model]:
        return await self.inner.models()

    async def count(self, request: Request) -> TokenCount | None:
        return await self.inner.count(request)

    async def relay(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> WireReply | None:
        return await self.inner.relay(method, path, query, headers)

    @property
    def absence(self) -> UpstreamError | None:
        is_elsewhere = any(self.name in peer.present for peer in self._directory.known_peers)
        return None if self._is_absent and is_elsewhere else self.inner.absence

    async def close(self) -> None:
        await self.inner.close()

    @property
    def _is_absent(self) -> bool:
        return self.is_single_process and self.inner.absence is not None

    async def _holder(self, request: Request) -> Peer | None:
        if self._is_absent:
            return await self._present()
        runs = self.inner.parked_runs
        point = resume_point(request) if runs is not None else None
        if runs is None or point is None or runs.holds(point[0]):
            return None
        return await self._directory.holder(self.name, point[0])

    async def _present(self) -> Peer | None:
        """The same one for all, as long as it is there: what it remembers of a conversation stays useful."""
        peers = await self._directory.peers()
        return min(
            (peer for peer in peers.values() if self.name in peer.present), key=lambda peer: peer.id, default=None
        )

    async def _leased(self, events: AsyncIterator[list[Event]]) -> AsyncGenerator[list[Event], None]:
        """The lease of a parked run is in the store before the client reads the end of the answer."""
        async for batch in events:
            await self._directory.flush()
            yield batch


class _LeasedReply(EventReply, kw_only=True):
    inner: EventReply

    async def close(self) -> None:
        await super().close()
        await self.inner.close()
