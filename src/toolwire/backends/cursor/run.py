"""One live run of the agent: read continuously, answered in one or several answers, with heartbeats while it waits for results.

The reader never stops, so that the server's requests are answered even while the client runs its tools. An answer ends with the
run, or shortly after its last call: no message says that no further call will follow.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from ...calls.signatures import print_of
from ...calls.stop_sequences import StopFilter
from ...calls.validation import LocalCall
from ...errors import GatewayError, InternalError, UpstreamError
from ...events import Event, Finished, Noted, PartEnded, Started
from ...ids import new_id
from ...types import Loss, Message, Request, ToolCall, ToolResult, Usage
from ...wire.connect import ConnectEnd, ConnectFrame
from ..budget import ConversationBudget
from ..sessions import read_first
from ..synthesis import estimated_usage
from .allowance import Allowance, Runaway
from .local.execs import LocalTools
from .transport.channel import RunChannel
from .wire.decoder import DecoderReply, RunDecoder
from .wire.execs import CANCEL, CLIENT_HEARTBEAT, Exec

_MAX_EVENTS = 1000  # unread events, and
_MAX_BYTES = 1 << 20  # bytes of unread messages; beyond either the reader pauses
_MAX_LOCAL = 8  # local tools that run at a time
_STOP_SECONDS = 1.0
_ESTIMATED = Loss("usage.input", "usage", "the back end has not counted the input yet; it is estimated")

STALLED = "run_stalled"  # error code of a continued run without an answer; the back end restarts it, no client sees it
EMPTY = "empty_answer"


class RunLimits(Struct, frozen=True, kw_only=True):
    """Timeouts in seconds; stall and heartbeats detect a run that never ends, and 0 disables either check."""

    first: float  # until the first part
    idle: float  # between two messages with progress
    silent: float = 60.0  # without any message, heartbeats included
    quiet: float = 0.15  # after a call, for another one
    announced: float = 3.0  # the same if another one was announced
    beat: float = 5.0  # between our heartbeats
    exec_beat: float = 3.0  # between our heartbeats for each open exec
    heartbeats: int = 10  # of the server without progress
    stall: float = 12.0  # without progress, for a continued run that stored unsent text


class Repeats:
    """Results of the calls since the last user message, to recognise a call that is made again. Failed calls may be retried."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._results: dict[str, ToolResult] = {}
        calls: list[ToolCall] = []
        for message in messages[_last_user_message(messages) :]:
            calls = [part for part in message.parts if isinstance(part, ToolCall)] or calls
            self.learn(calls, [part for part in message.parts if isinstance(part, ToolResult)])

    def learn(self, calls: Iterable[ToolCall], results: Iterable[ToolResult]) -> None:
        by_id = {call.id: call for call in calls}
        for result in results:
            call = by_id.get(result.call_id)
            if call is not None and not result.is_error:
                self._results[_fingerprint(call)] = result

    def result(self, call: ToolCall) -> ToolResult | None:
        return self._results.get(_fingerprint(call))


class AgentRun:
    """The owner must stop() it. on_end is called once if the run ends while it is parked."""

    def __init__(
        self,
        channel: RunChannel,
        decoder: RunDecoder,
        limits: RunLimits,
        *,
        repeats: Repeats | None = None,
        local: LocalTools | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.how = channel.how
        self.calls: list[ToolCall] = []  # of the last answer
        self.is_over = False  # the last answer has ended
        self.tokens = 0  # cost of the last answer
        self.local_calls: list[LocalCall] = []  # local tools that ran for the last answer
        self.allowance = Allowance(ConversationBudget(0, 0))
        self.on_end: Callable[[], None] | None = None
        self._channel = channel
        self._decoder = decoder
        self._limits = limits
        self._now = clock
        self._repeats = repeats or Repeats()
        self._local = local
        self._request: Request | None = None
        self._stopping: StopFilter | None = None
        self._events: list[Event] = []
        self._unread = 0  # bytes of the messages that these events came in
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._is_gone = False
        self._is_given_up = False  # by us, without the server's knowledge
        self._has_begun = False
        self._is_continued = False  # with results, so a restart has more to start from
        self._progress = 0
        self._working: dict[int, asyncio.Task[None]] = {}  # local execs by number
        self._workers = asyncio.Semaphore(_MAX_LOCAL)
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
        """Start the answer to this request."""
        self.allowance = allowance or Allowance(ConversationBudget(0, 0))
        self.is_over = self._has_begun = False
        self.calls = []
        self.local_calls = []
        self.tokens = 0
        self.on_end = None
        self._moved_at = self._heard_at = self._now()
        self._request = request
        self._stopping = StopFilter(request.sampling.stop) if any(request.sampling.stop) else None

    async def first(self) -> list[Event]:
        """All events up to the first part. Raises GatewayError where there is none."""
        events = await read_first(self, self.more)
        self._has_begun = True
        if events and isinstance(events[-1], Finished) and not self._decoder.answer.parts.has_any:
            raise _empty()
        return events

    async def more(self) -> list[Event]:
        """The next events; may be empty at the end, and while all text may still become a stop sequence."""
        while not self._events and not self._decoder.is_over:
            wait = self._deadline() - self._now()
            if wait <= 0:
                self._time_out()
                continue
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._news.wait()
        events, self._events = self._events, []
        self._unread = 0
        if not self._room.is_set():
            self._moved_at = self._heard_at = self._now()  # the client caused the pause until now
            self._room.set()
        return self._deliver(events)

    async def resume(
        self, request: Request, results: Mapping[str, ToolResult], allowance: Allowance | None = None
    ) -> None:
        """Send the results of the last answer's calls; first() and more() then read the next answer."""
        self._is_continued = True
        self._repeats.learn(self.calls, results.values())
        reply = self._decoder.resume(results)
        self.listen(request, allowance)
        await self._take(reply)

    async def stop(self) -> None:
        """Cancel the run on the server and free everything. Safe to call twice."""
        self.on_end = None
        if self._decoder.is_ended and not self._is_gone:
            await asyncio.wait([self._reading], timeout=_STOP_SECONDS)  # only the end of the stream is missing
        is_alive = self.is_alive or self._is_given_up
        tasks = [self._reading, self._beating, *self._working.values()]
        try:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if is_alive:
                with suppress(UpstreamError, TimeoutError):
                    async with asyncio.timeout(_STOP_SECONDS):
                        await self._channel.send(CANCEL)
        finally:
            await self._channel.close()

    def _deadline(self) -> float:
        limits = self._limits
        if self._decoder.is_waiting:
            return self._moved_at + (limits.announced if self._decoder.expects_more else limits.quiet)
        wait = limits.idle if self._has_begun else limits.first
        moved_at = self._now() if self._working else self._moved_at  # local tools have limits of their own
        return min(moved_at + wait, self._heard_at + limits.silent, self._stall_deadline())

    def _stall_deadline(self) -> float:
        """When a continued run that stored unsent text and sends only heartbeats ends with that text."""
        is_idle = self._is_continued and self._decoder.heartbeats and self._decoder.blobs.unsent and not self._working
        return self._moved_at + self._limits.stall if is_idle and self._limits.stall else math.inf

    def _time_out(self) -> None:
        if events := self._decoder.end_calls() or self._decoder.end_stalled():
            self._events += events
            return
        if self._deadline() > self._now():
            return  # the stored text had been sent before
        is_silent = self._now() - self._heard_at >= self._limits.silent
        seconds = self._limits.silent if is_silent else self._limits.idle if self._has_begun else self._limits.first
        self._give_up(_too_slow(seconds, is_silent=is_silent))

    async def _read(self) -> None:
        """Read to the end of the stream, which may come after the end of the turn: text that is only stored as a blob can follow."""
        try:
            is_open = True
            while is_open:
                await self._room.wait()
                for item in await self._channel.receive():
                    self._heard_at = self._now()
                    is_open = await self._receive(item)
        except UpstreamError as error:
            self._fail(error)
        finally:
            self._fail(InternalError("the run could not be read to its end.", hint="Please report this."))
            if self.on_end is not None:
                self.on_end()

    async def _receive(self, item: ConnectFrame | ConnectEnd) -> bool:
        """False: nothing can follow."""
        if isinstance(item, ConnectEnd):
            self._events += self._decoder.end(item.fault)
            self._news.set()
            return False
        reply = self._decoder.receive(item.data)
        self._unread += len(item.data)
        await self._take(reply)
        self._check_heartbeats()
        return not self._is_gone

    def _check_heartbeats(self) -> None:
        """After too many heartbeats without progress the answer is the text stored as a blob. A continued run without any is given up,
        since the same conversation can be sent again. A new run may still be thinking, and has its timeouts."""
        limit = self._limits.heartbeats
        if not limit or self._decoder.heartbeats < limit or self._working or self._decoder.is_over:
            return
        self._events += self._decoder.end_stalled()
        self._news.set()
        if self._is_continued and not self._decoder.answer.has_text and not self._decoder.calls:
            self._give_up(stalled(limit))

    async def _take(self, reply: DecoderReply) -> None:
        """Act on what the decoder returned. A reply beyond the allowance ends the run instead."""
        now = self._now()
        try:
            self.allowance.check_round(reply.declined, len(reply.local), now)
        except UpstreamError as error:
            self._events += reply.events
            if isinstance(error, Runaway):
                self._events += self._decoder.end_runaway(error.message)
            self._give_up(error)
            return
        self.allowance.count_context(reply.used, now)
        if self._decoder.progress != self._progress:
            self._progress = self._decoder.progress
            self._moved_at = now
        self._events += reply.events
        for exec in reply.local:
            self._working[exec.id] = asyncio.create_task(self._run_local(exec))
        for number in reply.aborted:
            if (task := self._working.pop(number, None)) is not None:
                task.cancel()
        if self._events and (len(self._events) > _MAX_EVENTS or self._unread > _MAX_BYTES):
            self._room.clear()
        self._news.set()
        await self._send(reply.send)

    async def _send(self, messages: list[bytes]) -> None:
        """A failure to send does not end the answer: the reader learns how the run ended, and its last messages."""
        with suppress(UpstreamError):
            for message in messages:
                await self._channel.send(message)

    async def _run_local(self, exec: Exec) -> None:
        assert self._local is not None
        try:
            async with self._workers:
                ran = await self._local.run(exec)
            self.local_calls.append(ran.call)
            await self._send(ran.messages)
        finally:
            self._decoder.finish_local(exec)
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
            if self.on_end is not None and self._now() - self._heard_at >= limits.silent:
                self._reading.cancel()  # no request would notice that a parked run is dead

    def _give_up(self, error: GatewayError) -> None:
        self._is_given_up = self._is_given_up or not self._is_gone
        self._fail(error)

    def _fail(self, error: GatewayError) -> None:
        """Nothing more comes. The request may be sent again only if no output of the model was seen."""
        if isinstance(error, UpstreamError) and error.retryable and self._decoder.has_seen_output:
            error = error.fresh()  # other runs on the same connection share the error, and may have seen less
            error.retryable = False
        self._events += self._decoder.fail(error)
        self._is_gone = True
        self._news.set()

    def _deliver(self, events: list[Event]) -> list[Event]:
        if self._stopping is not None:
            events = self._stopping.send(events)
        delivered: list[Event] = []
        for event in events:
            match event:
                case Started():
                    delivered.append(replace(event, id=new_id("gen_")))
                case Finished(usage=Usage() as usage):
                    if usage.output and not usage.input and self._request is not None:
                        usage = replace(usage, input=estimated_usage(self._request, ()).input)
                        delivered.append(Noted(note=_ESTIMATED))
                    self.tokens = usage.input + usage.output
                    delivered.append(replace(event, usage=usage))
                case PartEnded(part=ToolCall() as call):
                    self.calls.append(call)
                    delivered.append(event)
                    if self._repeats.result(call) is not None:
                        loss = Loss("repeated_call", call.name, "the same call had been made and answered before")
                        delivered.append(Noted(note=loss))
                case _:
                    delivered.append(event)
        is_read = not self._events and self._decoder.is_over
        self.is_over = is_read if self._stopping is None else self._stopping.is_over
        return delivered


def stalled(heartbeats: int) -> UpstreamError:
    return UpstreamError(
        f"the run sent {heartbeats} heartbeats and nothing else after it got its results.",
        status=504,
        code=STALLED,
        hint="Try again; raise stall_heartbeats of this back end if its models need longer.",
    )


def _empty() -> UpstreamError:
    return UpstreamError(
        "the agent ended its turn without text, thoughts or calls.",
        status=502,
        code=EMPTY,
        hint="Try again, or rephrase the request.",
    )


def _too_slow(seconds: float, *, is_silent: bool) -> GatewayError:
    what = "no message and no heartbeat came" if is_silent else "the agent sent no output"
    return UpstreamError(
        f"{what} for {seconds:g} seconds.",
        status=504,
        code="upstream_timeout",
        hint="Try again; raise first_byte_timeout or idle_timeout of this back end if its models need longer.",
        retryable=is_silent,
    )


def _last_user_message(messages: Sequence[Message]) -> int:
    for number in range(len(messages) - 1, -1, -1):
        message = messages[number]
        if message.role == "user" and any(not isinstance(part, ToolResult) for part in message.parts):
            return number
    return 0


def _fingerprint(call: ToolCall) -> str:
    return print_of((call,), lambda call_id: "")
