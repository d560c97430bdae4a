"""Who is in the cluster and which process holds which run, as records of the store.

Each process renews its own record every few seconds; one without a renewal is dead. A lease says where a run is parked. It is written
before the client gets the end of the answer, so the next request finds it, whichever process it reaches. A lease of a dead process, or one
that is out of date, costs one failed attempt: then the request starts a new run, as it does without a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct

from ..backends.continuation import ResumePoint
from ..errors import GatewayError
from ..memory.store import SharedRecord, Store

PROCESSES, RUNS, JOBS = "process", "run", "job"
RENEWED = 4.0  # seconds between two renewals
ALIVE = 15.0  # seconds without one after which a process is dead
_CHECKED = 0.5  # seconds between two checks whether the process has something new to report
_CACHED = 1.0  # seconds that the list of processes is cached
_JOB_SECONDS = 86400.0


class Peer(Struct, frozen=True, kw_only=True):
    """A process. address: of its internal listener. present: back ends that only some processes can answer for, and it can."""

    id: str
    address: str
    version: str = ""
    present: tuple[str, ...] = ()


_decode_peer = msgspec.json.Decoder(Peer).decode


class Directory:
    """own: this process. present: the names for its record now."""

    def __init__(
        self,
        store: Store,
        own: Peer,
        present: Callable[[], Sequence[str]] = tuple,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.own = own
        self._store = store
        self._present = present
        self._clock = clock
        self._leases: list[SharedRecord] = []  # not written yet
        self._peers: dict[str, Peer] = {}
        self._listed_at = -_CACHED
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="cluster")

    async def stop(self) -> None:
        """The others stop forwarding to this process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        with contextlib.suppress(GatewayError):
            await self._store.apply(drop=[(PROCESSES, self.own.id)])

    async def renew(self) -> None:
        """Raises GatewayError."""
        self.own = msgspec.structs.replace(self.own, present=tuple(self._present()))
        value = msgspec.json.encode(self.own)
        await self._store.apply(put=[SharedRecord(PROCESSES, self.own.id, value, self._clock() + ALIVE)])

    async def peers(self, *, is_fresh: bool = False) -> dict[str, Peer]:
        """The other processes by id. Empty if the store cannot be used."""
        now = time.monotonic()
        if is_fresh or now - self._listed_at >= _CACHED:
            self._listed_at = now
            with contextlib.suppress(GatewayError):
                records = await self._store.records(PROCESSES)
                found = [_peer_in(record) for record in records if record.name != self.own.id]
                self._peers = {peer.id: peer for peer in found if peer is not None}
        return self._peers

    @property
    def known_peers(self) -> Sequence[Peer]:
        """As of the last look, without waiting."""
        return tuple(self._peers.values())

    def lease(self, backend: str, point: ResumePoint, seconds: float) -> None:
        """This process holds the run that waits here. Written by the next flush()."""
        name = lease_name(backend, point)
        self._leases.append(SharedRecord(RUNS, name, self.own.id.encode(), self._clock() + seconds))

    async def flush(self) -> None:
        """A lease that cannot be written costs a new run if the continuation reaches another process."""
        leases, self._leases = self._leases, []
        if leases:
            with contextlib.suppress(GatewayError):
                await self._store.apply(put=leases)

    async def holder(self, backend: str, point: ResumePoint) -> Peer | None:
        """Another process that holds the run which waits here."""
        return await self._named(RUNS, lease_name(backend, point))

    async def note_job(self, owner: str, answer_id: str) -> None:
        """This process runs a background answer, whose events the others can read here. Raises GatewayError."""
        record = SharedRecord(JOBS, job_name(owner, answer_id), self.own.id.encode(), self._clock() + _JOB_SECONDS)
        await self._store.apply(put=[record])

    async def runner(self, owner: str, answer_id: str) -> Peer | None:
        """Another process that runs a background answer, or has its events since the end."""
        return await self._named(JOBS, job_name(owner, answer_id))

    async def _named(self, space: str, name: str) -> Peer | None:
        try:
            records = await self._store.records(space, name)
        except GatewayError:
            return None
        process = records[0].value.decode("utf-8", "replace") if records else ""
        if not process or process == self.own.id:
            return None
        peers = await self.peers()
        return peers.get(process) or (await self.peers(is_fresh=True)).get(process)

    async def _run(self) -> None:
        renewed_at = -RENEWED
        while True:
            now = time.monotonic()
            if now - renewed_at >= RENEWED or tuple(self._present()) != self.own.present:
                with contextlib.suppress(GatewayError):  # tried again soon
                    await self.renew()
                    renewed_at = now
                await self.peers()
            await asyncio.sleep(_CHECKED)


def lease_name(backend: str, point: ResumePoint) -> str:
    """A hash: nothing about a conversation can be read from it."""
    digest = blake2b(digest_size=20)
    for value in (backend, point.owner, point.history, *sorted(point.calls)):
        data = value.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(data) + data)
    return digest.hexdigest()


def job_name(owner: str, answer_id: str) -> str:
    text = f"{len(owner)} {owner}{answer_id}"
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _peer_in(record: SharedRecord) -> Peer | None:
    try:
        return _decode_peer(record.value)
    except msgspec.MsgspecError:
        return None
