"""One run of the agent: read all the time, told as one answer or several, kept alive between them, and left in order.

The reader never stops, so that what the server asks in between is answered also while the client runs its tools. An answer ends
where the run does, or a moment after its calls have come: nothing on the wire says that no further call will follow.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from ...calls.stop_sequences import Stopping
from ...calls.validation import LocalCall
from ...errors import GatewayError, InternalError, UpstreamError
from ...events import Event, Failed, Finished, Noted, PartEnded, PartStarted, Started
from ...ids import new_id
from ...types import Loss, Request, ToolCall, ToolResult, Usage
from ...wire.connect import ConnectEnd, ConnectFrame
from ..budget import Budget
from ..synthesis import estimated_usage
from .allowance import Allowance, Runaway
from .local.execs import LocalTools
from .repeats import Repeats
from .transport.channel import Channel, Gone
from .wire import CLIENT_HEARTBEAT, Exec, Reply, TurnDecoder
from .wire.execs import CANCEL

_MOST_EVENTS = 1000  # that nobody has read yet, and
_MOST_BYTES = 1 << 20  # of messages; beyond them the server waits
_MOST_WORK = 8  # tools of the gateway's own that run at a time
_LEAVING = 1.0  # seconds for a word of farewell
_ESTIMATED = Loss("usage.input", "usage", "the back end has not counted the input yet; it is estimated")


STALLED = "run_stalled"  # the code of a continued run that gives no answer: it is restarted, and no client sees it
EMPTY = "empty_answer"


class Limits(Struct, frozen=True, kw_only=True):
    """Seconds: until the first word; between two; of no frame at all; after a call for another one, and if one was announced.

    heartbeats: so many from the server without progress make a stall. stall: so many seconds without progress do the same for a
    continued run that stored unsent text. 0 disables either check.
    """

    first: float
    idle: float
    silent: float = 60.0
    quiet: float = 0.15
    announced: float = 3.0
    beat: float = 5.0
    exec_beat: float = 3.0
    heartbeats: int = 10
    stall: float = 15.0


class Turn:
    """Whoever has it must leave() it, whatever happens. died is called once if the run ends while it is parked."""

    def __init__(
        self,
        channel: Channel,
        decoder: TurnDecoder,
        limits: Limits,
        *,
        repeats: Repeats | None = None,
        local: LocalTools | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.how = channel.how
        self.calls: list[ToolCall] = []  # of the last answer
        self.is_over = False  # the last answer has come to its end
        self.tokens = 0  # that the last answer has cost
        self.local_calls: list[LocalCall] = []  # that ran here for the last answer
        self.allowance = Allowance(Budget(0, 0))
        self.died: Callable[[], None] | None = None
        self._channel = channel
        self._decoder = decoder
        self._limits = limits
        self._now = clock
        self._repeats = repeats or Repeats()
        self._local = local
        self._request: Request | None = None
        self._stopping: Stopping | None = None
        self._events: list[Event] = []
        self._unread = 0  # bytes of the messages that these events came in
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._is_gone = False
        self._is_given_up = False  # by us, and the server does not know
        self._has_begun = False
        self._is_continued = False  # with results; only then a new run has more to start from
        self._progress = 0
        self._working: dict[int, asyncio.Task[None]] = {}  # execs that run here, by their number
        self._workers = asyncio.Semaphore(_MOST_WORK)
        self._heard_at = self._moved_at = self._now()
        self._reading = asyncio.create_task(self._read())
        self._beating = asyncio.create_task(self._beat())

    @property
    def is_alive(self) -> bool:
        return not self._is_gone and not self._decoder.is_ended

    @property
    def is_waiting(self) -> bool:
        """The run waits for the results of the last answer's calls."""
        return bool(self.calls) and self._decoder.is_over and self.is_alive

    def listen(self, request: Request, allowance: Allowance | None = None) -> None:
        """The next answer is for this request, and may cost so much."""
        self.allowance = allowance or Allowance(Budget(0, 0))
        self.is_over = self._has_begun = False
        self.calls = []
        self.local_calls = []
        self.tokens = 0
        self.died = None
        self._moved_at = self._heard_at = self._now()
        self._request = request
        self._stopping = Stopping(request.sampling.stop) if any(request.sampling.stop) else None

    async def first(self) -> list[Event]:
        """Everything up to the first word. Raises GatewayError where there is none."""
        events: list[Event] = []
        has_spoken = False
        while not has_spoken and not self.is_over:
            more = await self.more()
            has_spoken = any(isinstance(event, PartStarted) for event in more)
            events += more
        self._has_begun = True
        last = events[-1] if events else None
        if isinstance(last, Failed) and not has_spoken:
            raise last.error.fresh()
        if isinstance(last, Finished) and not self._decoder.has_output:
            raise _empty()
        return events

    async def more(self) -> list[Event]:
        """What has come since; nothing where the answer is over, or all of it may still become a stop sequence."""
        while not self._events and not self._decoder.is_over:
            wait = self._patience() - self._now()
            if wait <= 0:
                self._time_is_up()
                continue
            self._news.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                pass
        events, self._events = self._events, []
        self._unread = 0
        if not self._room.is_set():
            self._moved_at = self._heard_at = self._now()  # the silence until now was the client's
            self._room.set()
        return self._kept(events)

    async def give(
        self, request: Request, results: Mapping[str, ToolResult], allowance: Allowance | None = None
    ) -> None:
        """Results for the calls of the last answer; the next one is read with first() and more()."""
        self._is_continued = True
        self._repeats.learn(self.calls, results.values())
        reply = self._decoder.give(results)
        self.listen(request, allowance)
        await self._take(reply)

    async def leave(self) -> None:
        """The server is told, and everything is gone when this returns. Safe to call twice."""
        self.died = None
        if self._decoder.is_ended and not self._is_gone:
            await asyncio.wait([self._reading], timeout=_LEAVING)  # only the end of the stream is missing
        is_alive = self.is_alive or self._is_given_up
        try:
            await self._stop()
            if is_alive:
                async with asyncio.timeout(_LEAVING):
                    await self._channel.send(CANCEL)
        except (Gone, TimeoutError):
            pass
        finally:
            await self._channel.close()

    async def _stop(self) -> None:
        tasks = [self._reading, self._beating, *self._working.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _patience(self) -> float:
        limits = self._limits
        if self._decoder.is_waiting:
            return self._moved_at + (limits.announced if self._decoder.expects_more else limits.quiet)
        wait = limits.idle if self._has_begun else limits.first
        moved_at = self._now() if self._working else self._moved_at  # what runs here has limits of its own
        return min(moved_at + wait, self._heard_at + limits.silent, self._stall_at())

    def _stall_at(self) -> float:
        """When a continued run that stored unsent text and sends only heartbeats ends with that text."""
        is_idle = (
            self._is_continued and self._decoder.heartbeats and self._decoder.has_unsent_text and not self._working
        )
        return self._moved_at + self._limits.stall if is_idle and self._limits.stall else math.inf

    def _time_is_up(self) -> None:
        if self._decoder.is_waiting:
            self._events += self._decoder.settle()
            return
        if events := self._decoder.stall():
            self._events += events
            return
        if self._patience() > self._now():
            return  # the stored text had been sent before
        is_silent = self._now() - self._heard_at >= self._limits.silent
        seconds = self._limits.silent if is_silent else self._limits.idle if self._has_begun else self._limits.first
        self._give_up(_too_slow(seconds, is_silent=is_silent))

    async def _read(self) -> None:
        """Up to the end of the stream, which may be a while after that of the turn: text that comes as a blob can follow."""
        try:
            is_open = True
            while is_open:
                await self._room.wait()
                for frame in await self._channel.receive():
                    self._heard_at = self._now()
                    is_open = await self._heard(frame)
        except Gone as gone:
            self._cut(gone.error)
        finally:
            self._cut(InternalError("the run could not be read to its end.", hint="Please report this."))
            if self.died is not None:
                self.died()

    async def _heard(self, frame: ConnectFrame | ConnectEnd) -> bool:
        """False: nothing can follow."""
        match frame:
            case ConnectEnd():
                self._events += self._decoder.end(frame.fault)
                self._news.set()
                return False
            case ConnectFrame():
                reply = self._decoder.receive(frame.data)
                self._unread += len(frame.data)
                await self._take(reply)
                self._check_stall()
                return not self._is_gone

    def _check_stall(self) -> None:
        """So many heartbeats and nothing else: the answer is the text that came as a blob. A continued run without any is given up,
        since the same conversation can be sent again; a new one may just think for long, and has its time limits."""
        limit = self._limits.heartbeats
        if not limit or self._decoder.heartbeats < limit or self._working or self._decoder.is_over:
            return
        self._events += self._decoder.stall()
        self._news.set()
        if self._is_continued and not self._decoder.has_text and not self._decoder.calls:
            self._give_up(stalled(limit))

    async def _take(self, reply: Reply) -> None:
        """What is beyond the allowance is not answered: the run ends there."""
        now = self._now()
        try:
            self.allowance.answered(reply.declined, len(reply.local), now)
        except UpstreamError as error:
            self._events += reply.events
            if isinstance(error, Runaway):
                self._events += self._decoder.exhaust(error.message)
            self._give_up(error)
            return
        self.allowance.used(reply.used, now)
        self._heed(reply)
        await self._send(reply.send)

    def _heed(self, reply: Reply) -> None:
        if self._decoder.progress != self._progress:
            self._progress = self._decoder.progress
            self._moved_at = self._now()
        self._events += reply.events
        for exec in reply.local:
            self._working[exec.id] = asyncio.create_task(self._worked(exec))
        for number in reply.aborted:
            if (task := self._working.pop(number, None)) is not None:
                task.cancel()
        if self._events and (len(self._events) > _MOST_EVENTS or self._unread > _MOST_BYTES):
            self._room.clear()
        self._news.set()

    async def _send(self, messages: list[bytes]) -> None:
        """What cannot be sent any more is not what ends the answer: the reader hears what became of the run, and its last words."""
        with suppress(Gone):
            for message in messages:
                await self._channel.send(message)

    async def _worked(self, exec: Exec) -> None:
        """A tool of the gateway's own; what it does is progress, too."""
        assert self._local is not None
        try:
            async with self._workers:
                ran = await self._local.run(exec)
            self.local_calls.append(ran.call)
            await self._send(ran.messages)
        finally:
            self._decoder.ran(exec)
            self._working.pop(exec.id, None)
            self._moved_at = self._now()

    async def _beat(self) -> None:
        limits = self._limits
        beat, exec_beat = self._now() + limits.beat, self._now() + limits.exec_beat
        while not self._is_gone:
            await asyncio.sleep(min(beat, exec_beat) - self._now())
            if self._now() >= exec_beat:
                exec_beat = self._now() + limits.exec_beat
                await self._send(self._decoder.exec_heartbeats())
            if self._now() >= beat:
                beat = self._now() + limits.beat
                await self._send([CLIENT_HEARTBEAT])
            if self.died is not None and self._now() - self._heard_at >= limits.silent:
                self._reading.cancel()  # nobody else would notice that a parked run is dead

    def _give_up(self, error: GatewayError) -> None:
        self._is_given_up = self._is_given_up or not self._is_gone
        self._cut(error)

    def _cut(self, error: GatewayError) -> None:
        """Nothing more comes. The request may be sent again only if nothing of the model was seen."""
        if isinstance(error, UpstreamError) and error.retryable and self._decoder.has_spoken:
            error = _final(error)
        self._events += self._decoder.cut(error)
        self._is_gone = True
        self._news.set()

    def _kept(self, events: list[Event]) -> list[Event]:
        if self._stopping is not None:
            events = self._stopping.send(events)
        kept: list[Event] = []
        for event in events:
            kept += self._told(event)
            if isinstance(event, PartEnded) and isinstance(event.part, ToolCall):
                self.calls.append(event.part)
                if (loss := self._repeats.loss(event.part)) is not None:
                    kept.append(Noted(note=loss))
        is_told = not self._events and self._decoder.is_over
        self.is_over = is_told if self._stopping is None else self._stopping.is_over
        return kept

    def _told(self, event: Event) -> list[Event]:
        match event:
            case Started():
                return [replace(event, id=new_id("gen_"))]
            case Finished(usage=Usage() as usage):
                notes: list[Event] = []
                if usage.output and not usage.input and self._request is not None:
                    usage = replace(usage, input=estimated_usage(self._request, ()).input)
                    notes.append(Noted(note=_ESTIMATED))
                self.tokens = usage.input + usage.output
                return [*notes, replace(event, usage=usage)]
            case _:
                return [event]


def _final(error: UpstreamError) -> UpstreamError:
    """Another one: all runs of a connection hear of its end by the same, and may have seen less."""
    return UpstreamError(
        error.message,
        status=error.status,
        code=error.code,
        where=error.where,
        hint=error.hint,
        headers=error.headers,
        details=error.details,
    )


def stalled(heartbeats: int) -> UpstreamError:
    return UpstreamError(
        f"the run gave {heartbeats} heartbeats and nothing else after it had its results.",
        status=504,
        code=STALLED,
        hint="Try again; raise stall_heartbeats of this back end if its models need longer.",
    )


def _empty() -> UpstreamError:
    return UpstreamError(
        "the agent ended its turn without text, thoughts or calls.",
        status=502,
        code=EMPTY,
        hint="Try again, or ask in other words.",
    )


def _too_slow(seconds: float, *, is_silent: bool) -> GatewayError:
    what = "not even a heartbeat came" if is_silent else "the agent said nothing"
    return UpstreamError(
        f"{what} for {seconds:g} seconds.",
        status=504,
        code="upstream_timeout",
        hint="Try again; raise first_byte_timeout or idle_timeout of this back end if its models need longer.",
        retryable=is_silent,
    )
