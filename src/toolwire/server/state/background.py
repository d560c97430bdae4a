"""Answers in the background: they continue when the client disconnects, and can be polled, followed and cancelled, also from another process.

A process that runs an answer writes a heartbeat to the store every second. Without a recent heartbeat the process is dead, and the
next client that reads the answer gets it as failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable

from msgspec.structs import replace

from ...cluster.node import ClusterNode
from ...dialects import BACKGROUNDS, FRONTS
from ...dialects.base import AnswerContext
from ...errors import BadRequest, GatewayError, InternalError
from ...events import Failed
from ...ids import new_id
from ...memory.answers import RUNNING
from ...memory.store import Entry, Store
from ...pipeline.answer import Answer
from ...runtime import Runtime
from ...telemetry import Record
from ...types import JsonObject, Request
from ...wire.exact_json import decode, encode

_BEAT = 1.0
_SILENCE = 15.0  # after this long without a beat its process is dead
_MAX_HELD = 16 << 20  # bytes of one answer's events
_MAX_ENDED = 16 << 20  # bytes of all ended ones that can still be followed from any event on


class BackgroundRun:
    """One running answer: its events so far, for the clients that follow it."""

    def __init__(self, owner: str, answer_id: str, event_number: bytes) -> None:
        self._number = re.compile(event_number)
        self.owner = owner
        self.id = answer_id
        self.size = 0
        self.is_over = False
        self.task: asyncio.Task[None] | None = None
        self.end: tuple[str, GatewayError] | None = None  # set when the answer was cancelled or failed
        self._pieces: list[bytes] = []
        self._dropped = 0  # pieces, from the first on
        self._changed = asyncio.Event()

    @property
    def is_whole(self) -> bool:
        return self._dropped == 0

    async def write(self, wire: bytes) -> None:
        self._pieces.append(wire)
        self.size += len(wire)
        if self.size > _MAX_HELD:
            self._drop_oldest()
        self._tell()

    def close(self) -> None:
        self.is_over = True
        self._tell()

    def end_with_server(self) -> None:
        self.stop("failed", stopped())

    def stop(self, status: str, error: GatewayError) -> None:
        if self.task is not None and not self.is_over and self.end is None:
            self.end = (status, error)
            self.task.cancel()

    async def follow(self, after: int = -1) -> AsyncGenerator[bytes, None]:
        """The events after this number, including future ones."""
        place = 0
        while True:
            changed = self._changed
            while (place := max(place, self._dropped)) < self._dropped + len(self._pieces):
                wire = self._pieces[place - self._dropped]
                place += 1
                if after >= 0:
                    wire = _behind(wire, after, self._number)
                if wire:
                    yield wire
            if self.is_over:
                return
            await changed.wait()

    def _drop_oldest(self) -> None:
        """Drops a quarter at once. A follower that is this far behind misses these events, but gets the last one, which contains the whole answer."""
        count = min(len(self._pieces) // 4 + 1, len(self._pieces) - 1)
        self.size -= sum(map(len, self._pieces[:count]))
        del self._pieces[:count]
        self._dropped += count

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class Background:
    """ended is called with the record of each answer when it is over, report with each internal error."""

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        ended: Callable[[Record], None],
        report: Callable[[InternalError, str], None],
        cluster: ClusterNode | None = None,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._cluster = cluster
        self._ended = ended
        self._report = report
        self._jobs: dict[tuple[str, str], BackgroundRun] = {}
        self._past: OrderedDict[tuple[str, str], BackgroundRun] = OrderedDict()
        self._past_size = 0

    def find(self, owner: str, answer_id: str) -> BackgroundRun | None:
        return self._jobs.get((owner, answer_id)) or self._past.get((owner, answer_id))

    def follow(self, owner: str, answer_id: str, after: int) -> AsyncGenerator[bytes, None] | None:
        """For other processes of the cluster."""
        job = self.find(owner, answer_id)
        return None if job is None else job.follow(after)

    async def start(self, request: Request, owner: str, record: Record) -> tuple[BackgroundRun, bytes]:
        """The job, and the answer as it is now: queued. Raises BadRequest for what can be known to be wrong at once."""
        assert request.state is not None
        form = BACKGROUNDS[request.origin]
        answer_id = new_id(form.prefix)
        request = replace(request, stream=True, state=replace(request.state, answer_id=answer_id))
        entry = await self._queued(request, owner, answer_id)
        await self._store.put(entry)
        if self._cluster is not None:
            await self._cluster.note_job(owner, answer_id)
        job = self._jobs[owner, answer_id] = BackgroundRun(owner, answer_id, form.event_number)
        job.task = asyncio.get_running_loop().create_task(self._work(job, request, record))
        return job, shown(entry)

    async def stop(self) -> None:
        """The server stops: its running answers fail."""
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for job in list(self._jobs.values()):
            job.end_with_server()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _queued(self, request: Request, owner: str, answer_id: str) -> Entry:
        kept = await self._runtime.stored(request, owner)
        assert kept is not None
        assert request.state is not None
        now = time.time()
        context = AnswerContext(request=request, mint=new_id, now=int(now), is_kept=True, answer_id=answer_id)
        body = BACKGROUNDS[request.origin].queued_body(context)
        return Entry(
            owner=owner,
            id=answer_id,
            kind=request.origin,
            created=now,
            previous=request.state.previous,
            conversation=request.state.conversation,
            status="queued",
            alive=now,
            input=encode(kept.own),
            body=encode(body),
        )

    async def _work(self, job: BackgroundRun, request: Request, record: Record) -> None:
        step: Answer | None = None
        status, error = "failed", None
        beat = asyncio.get_running_loop().create_task(self._beat(job))
        record.status = 200
        try:
            step = await self._runtime.step(request, record, job.owner)
            await self._mark(job, "in_progress")
            await step.run(job.write)
            error = step.error or await self._unsaved(job)
        except asyncio.CancelledError:
            status, error = job.end or (status, stopped())
        except GatewayError as fault:
            error = fault
        except Exception as fault:  # the task has no caller that could report it
            error = InternalError(f"something went wrong inside the gateway; the log has it under {record.request_id}.")
            error.__cause__ = fault
        try:
            beat.cancel()
            if error is not None:
                await self._fail(job, request, step, status, error, record)
            self._retire(job)
            if step is not None:
                await step.release()
        finally:
            self._ended(record)

    async def _beat(self, job: BackgroundRun) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            with contextlib.suppress(GatewayError):  # the store is busy now; the next attempt may succeed
                if await self._store.touch(job.owner, job.id, time.time()) not in RUNNING:
                    job.stop("cancelled", cancelled())

    async def _mark(self, job: BackgroundRun, status: str) -> None:
        entry = await self._store.get(job.owner, job.id)
        if entry is not None and entry.status == "queued":
            await self._store.replace_running(with_status(entry, status, None))

    async def _unsaved(self, job: BackgroundRun) -> GatewayError | None:
        """The reason for an answer that was completed, but is not in the store."""
        with contextlib.suppress(GatewayError):
            entry = await self._store.get(job.owner, job.id)
            if entry is not None and entry.status in RUNNING:
                return InternalError("the answer is complete, but could not be stored.", code="store_unavailable")
        return None

    async def _fail(
        self,
        job: BackgroundRun,
        request: Request,
        step: Answer | None,
        status: str,
        error: GatewayError,
        record: Record,
    ) -> None:
        """Followers get an end unless they have one, the store gets the reason, and the log what is our fault."""
        record.fail(error)
        if isinstance(error, InternalError):
            self._report(error, record.request_id)
        if step is not None:
            wire = step.fail(error)
        else:
            context = AnswerContext(request=request, mint=new_id, now=int(time.time()), is_kept=True, answer_id=job.id)
            wire = FRONTS[request.origin].encoder(context).send(Failed(error=error))
        await job.write(wire)
        with contextlib.suppress(GatewayError):
            entry = await self._store.get(job.owner, job.id)
            if entry is not None and entry.status in RUNNING:
                await self._store.replace_running(with_status(entry, status, error))

    def _retire(self, job: BackgroundRun) -> None:
        """Ended jobs stay a while for those who lost their connection, as many as there is room for."""
        job.close()
        self._jobs.pop((job.owner, job.id), None)
        if job.is_whole:
            self._past[job.owner, job.id] = job
            self._past_size += job.size
        while self._past_size > _MAX_ENDED:
            _, oldest = self._past.popitem(last=False)
            self._past_size -= oldest.size


def stopped() -> GatewayError:
    return BadRequest("the gateway was stopped before this answer was complete.", status=503, code="not_ready")


def cancelled() -> GatewayError:
    return BadRequest("this answer was cancelled.", code="cancelled")


def with_status(entry: Entry, status: str, error: GatewayError | None) -> Entry:
    body: JsonObject = BACKGROUNDS[entry.kind].body_with_status(decode(entry.body), status, error)
    return replace(entry, status=status, body=encode(body))


def heard_of(entry: Entry, now: float) -> Entry:
    """The same status, or failed: no process runs it any more."""
    if entry.status not in RUNNING or now - entry.alive <= _SILENCE:
        return entry
    message = "the gateway was stopped or killed before this answer was complete."
    return with_status(entry, "failed", InternalError(message, code="server_error"))


def shown(entry: Entry) -> bytes:
    """The answer in the form of its dialect, assembled without decoding it."""
    items = b",".join(item.value for item in entry.output)
    member = BACKGROUNDS[entry.kind].output_member.encode()
    return b'%b,"%b":[%b]}' % (entry.body[:-1], member, items)


def _behind(wire: bytes, after: int, number: re.Pattern[bytes]) -> bytes:
    """The frames of these whose number is higher."""
    frames = wire.split(b"\n\n")[:-1]
    return b"".join(
        frame + b"\n\n" for frame in frames if (found := number.search(frame)) is None or int(found[1]) > after
    )
