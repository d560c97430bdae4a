"""One turn of the model in a thread of its own: started, read as events, given results, and stopped.

In the tier "held" an answer that ends with calls may be followed by another one: give() sends the results, and reading continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from ...calls.stop_sequences import StopFilter
from ...errors import UpstreamError
from ...events import Event, PartEnded, Started
from ...ids import new_id
from ...telemetry import wire_trace
from ...types import JsonObject, Loss, Request, ToolCall, ToolResult
from ...wire import json_rpc as rpc
from ..continuation import ResumePoint
from ..sessions import AnswerTimeouts, BackgroundTasks, SessionLost, read_first
from .home import Home
from .host import Program
from .pool import Lease, died
from .stored_threads import MAX_USES, StoredThread, session_of, set_session
from .wire.answer_in import CodexTurnDecoder
from .wire.approvals import refuse_call
from .wire.errors import refused
from .wire.names import CodexToolNames
from .wire.request_out import CACHE_KEY_LOSS, ThreadOpening, cache_key, tool_answer
from .wire.versions import Abilities, Version
from .worker import Declined, RequestRefused, Thread, ThreadMessage

TOKEN_COUNT = "thread/tokenUsage/updated"
SILENCE = 0.15  # seconds after a call in which another one would have begun
LONG_SILENCE = 3.0  # for versions that report the end of a response: some providers count no tokens, and then the report is missing
_COUNTS_FIRST = Version(0, 130)  # the last version that was seen to count tokens while calls wait
_START_SECONDS = 60.0  # for a thread or a turn to start, or for a result to be accepted
_STOP_SECONDS = 5.0  # for an interrupt to be answered
_SKIPPED = (
    "Codex has a tool of this name and did not offer the client's to the model; the next request gives it another name"
)
_ERROR_SECONDS = 2.0  # after an error that ends the turn; 0.130 sends nothing more for a turn that never started


class AnswerEnd:
    """Detects the end of a response, for one turn; begin() starts the next response.

    is_raw: Codex reports raw items, and with them all calls of a response. A resumed thread has none, and reports a call only after the
    result of the one before it.
    """

    def __init__(self, version: Version, abilities: Abilities, *, is_raw: bool = True) -> None:
        self._counts_first = not abilities.marker and version[:2] <= _COUNTS_FIRST[:2]
        self._reports_end = is_raw and (abilities.marker or self._counts_first)
        self._is_counted = False
        self._total: object = None

    @property
    def silence(self) -> float:
        """Seconds to wait for another message, once there are calls."""
        if self._is_counted:
            return 0.0
        return LONG_SILENCE if self._reports_end else SILENCE

    def begin(self) -> None:
        self._is_counted = False

    def notify(self, method: str, params: JsonObject) -> None:
        """Codex repeats a token count when the next response begins; only a new count means that a response has ended."""
        if method != TOKEN_COUNT or not self._counts_first:
            return
        usage = params.get("tokenUsage")
        total = usage.get("total") if isinstance(usage, dict) else None
        if total != self._total:
            self._total = total
            self._is_counted = True


class CodexTurn:
    """Its owner must call leave() or store() at the end, also after an error. place: where its thread is stored for the next request.
    home: where Codex writes its threads, None for a remote app-server."""

    def __init__(self, lease: Lease, program: Program, timeouts: AnswerTimeouts, home: Home | None) -> None:
        self.program = program
        self.calls: list[ToolCall] = []  # of the last answer
        self.is_over = False  # the last answer has ended
        self._lease = lease
        self._timeouts = timeouts
        self._home = home
        self._thread: Thread | None = None
        self._decoder = CodexTurnDecoder("")
        self._names = CodexToolNames()
        self._stop_filter: StopFilter | None = None
        self.place: ResumePoint | None = None
        self._is_running = False  # Codex works, or waits for results
        self._ending = AnswerEnd(program.version, program.abilities)
        self._results: dict[str, ToolResult] = {}  # that Codex has not requested yet
        self._has_erred = False
        self._is_faulty = False  # the app-server failed, not the model

    @property
    def is_waiting(self) -> bool:
        """Codex waits for the results of the last answer's calls."""
        awaited = self._decoder.calls
        return (
            bool(self.calls)
            and all(call.id in awaited for call in self.calls)
            and self._decoder.is_over
            and self.is_alive
        )

    @property
    def is_alive(self) -> bool:
        return self._lease.worker.is_alive and self._is_running and not self._is_faulty

    def losses(self, foreseen: Iterable[Loss]) -> tuple[Loss, ...]:
        """foreseen: what the request loses in Codex. Adds the tools that Codex did not offer to the model, according to its log, and
        removes the cache key if the thread has it."""
        skipped = (name for name in sorted(self._lease.worker.channel.skipped_tools()) if name in self._names)
        has_key = self._thread is not None and self._thread.has_key
        return (
            *(loss for loss in foreseen if not (has_key and loss.feature == CACHE_KEY_LOSS)),
            *(Loss("tool.skipped", self._names.client(name), _SKIPPED) for name in skipped),
        )

    @property
    def limits(self) -> JsonObject:
        """The rate limits that Codex reported last."""
        return self._lease.worker.limits

    async def begin(self, opening: ThreadOpening, request: Request, stored: StoredThread | None = None) -> None:
        """stored: a thread that has the first part of the conversation. Raises UpstreamError if Codex rejects the request."""
        worker, program = self._lease.worker, self.program
        self._names = opening.names
        self._ending = AnswerEnd(program.version, program.abilities, is_raw=opening.method == "thread/start")
        try:
            if stored is not None:
                self._thread = thread = stored.thread
                await self._inject(thread, opening)
            else:
                thread = await self._open(opening)
                thread = await self._with_key(thread, opening, cache_key(request))
            thread.request_id = wire_trace.request_id()
            thread.uses += 1
            self._is_running = True
            started = await worker.ask("turn/start", opening.turn_of(thread.id), _START_SECONDS)
        except (SessionLost, RequestRefused, TimeoutError) as error:
            raise self._fault(error) from None
        self._decoder = CodexTurnDecoder(thread.id, _turn_id(started), model=request.model, names=opening.names)
        self._listen(request)

    async def first(self) -> list[Event]:
        """All events up to the first part. Raises UpstreamError where the answer has none."""
        deadline = _now() + self._timeouts.first
        return await read_first(self, lambda: self._read(self._timeouts.first, deadline))

    async def more(self) -> list[Event]:
        """Messages without events do not reset the timeout."""
        events: list[Event] = []
        deadline = _now() + self._timeouts.idle
        while not events and not self.is_over:
            events = await self._read(self._timeouts.idle, deadline)
        return events

    async def give(self, request: Request, results: dict[str, ToolResult]) -> list[Event]:
        """Results for the calls of the last answer, and the first events of the next one. Raises UpstreamError."""
        assert self._thread is not None
        for message in self._thread.ready():  # requests for its calls, and calls that arrived too late for it
            self._decode(message)
        if not self.is_alive:
            raise UpstreamError("the turn in Codex has ended without the results.", code="codex_stopped")
        calls = self.calls
        self._thread.request_id = wire_trace.request_id()
        self._decoder, events = self._decoder.follow()
        self._ending.begin()
        self._listen(request)
        try:
            self._results |= {call.id: results[call.id] for call in calls}
            await self._deliver()
        except (SessionLost, TimeoutError) as error:
            raise self._fault(error) from None
        return self._process_events(events)

    def store(self, cleanup: BackgroundTasks) -> StoredThread | None:
        """The thread for the next request, in place of leave(): the turn is stopped and the worker freed in the background.
        None if the thread cannot be used again."""
        thread, worker = self._thread, self._lease.worker
        if (
            thread is None
            or not thread.is_reusable
            or thread.uses >= MAX_USES
            or self._is_faulty
            or not worker.is_alive
        ):
            return None
        stopping = cleanup.start(self._stop_and_release(thread))
        return StoredThread(worker, thread, self._decoder.turn_id, stopping)

    async def leave(self) -> None:
        """Stops the turn, deletes the thread and frees the worker."""
        if self._thread is None:
            self._lease.release(is_good=not self._is_faulty)
        else:
            await self._stop_and_release(self._thread, is_dropped=True)

    async def _open(self, opening: ThreadOpening) -> Thread:
        """A new thread with the history. Raises SessionLost, RequestRefused or TimeoutError."""
        worker = self._lease.worker
        try:
            self._thread = thread = await worker.open(opening.method, opening.params, _START_SECONDS)
            thread.is_reusable = opening.is_reusable
        except RequestRefused:
            if not opening.is_reusable:
                raise
            self._thread = thread = await worker.open(opening.method, opening.ephemeral_params(), _START_SECONDS)
            worker.can_store = False
        await self._inject(thread, opening)
        return thread

    async def _with_key(self, thread: Thread, opening: ThreadOpening, key: str) -> Thread:
        """Gives the thread the client's cache key, if there is one and this version of Codex has a way to set it."""
        worker = self._lease.worker
        if not key or self._home is None or not thread.is_reusable or not worker.can_set_session:
            return thread
        try:
            thread.has_key = await set_session(worker, thread, session_of(key), self._home)
            return thread
        except RequestRefused:
            worker.can_set_session = False
            await self._drop(thread)
            self._delete_files(thread, self._home)
            return await self._open(opening)

    async def _inject(self, thread: Thread, opening: ThreadOpening) -> None:
        if opening.inject[thread.count :]:
            params = opening.injection(thread.id, thread.count)
            await self._lease.worker.ask("thread/inject_items", params, _START_SECONDS)
        thread.count = len(opening.inject)

    async def _stop_and_release(self, thread: Thread, *, is_dropped: bool = False) -> None:
        try:
            await self._stop(thread)
            if is_dropped:
                await self._drop(thread)
        except (SessionLost, TimeoutError) as error:
            self._fault(error)
        finally:
            if is_dropped and self._home is not None:
                self._delete_files(thread, self._home)
            self._lease.release(is_good=not self._is_faulty)

    def _listen(self, request: Request) -> None:
        self.is_over = False
        self.calls = []
        self._stop_filter = StopFilter(request.sampling.stop) if any(request.sampling.stop) else None

    async def _read(self, seconds: float, deadline: float) -> list[Event]:
        """The events of all messages so far; waits if there are none. seconds: the timeout that ends at the deadline."""
        assert self._thread is not None
        messages = self._thread.ready()
        if not messages:
            try:
                async with asyncio.timeout(self._wait(deadline - _now())):
                    messages = [await self._thread.next()]
            except TimeoutError:
                is_waiting = self._decoder.is_waiting
                return self._process_events(
                    self._decoder.end_calls() if is_waiting else self._decoder.cut(_too_slow(seconds))
                )
            except SessionLost as error:
                return self._process_events(self._decoder.cut(self._fault(error)))
        events = [event for message in messages for event in self._decode(message)]
        try:
            await self._deliver()
        except SessionLost:
            pass  # the next read raises it again
        except TimeoutError as error:
            events += self._decoder.cut(self._fault(error))
        if not events and _now() > deadline:
            events = self._decoder.cut(_too_slow(seconds))
        return self._process_events(events)

    def _wait(self, seconds: float) -> float:
        if self._decoder.is_waiting:
            return self._ending.silence
        return min(seconds, _ERROR_SECONDS) if self._has_erred else seconds

    def _decode(self, message: ThreadMessage) -> list[Event]:
        match message:
            case rpc.RpcRequest():
                events = self._decoder.call(message.id, message.params)
                if events is None:
                    self._lease.worker.respond(refuse_call(message.id))
                return events or []
            case Declined():
                return self._decoder.declined(message.method, message.params)
            case rpc.RpcNotification():
                self._is_running = self._is_running and message.method != "turn/completed"
                self._has_erred |= message.method == "error" and message.params.get("willRetry") is not True
                self._ending.notify(message.method, message.params)
                return self._decoder.notify(message.method, message.params)

    def _process_events(self, events: list[Event]) -> list[Event]:
        if self._stop_filter is not None:
            events = self._stop_filter.send(events)
        # The ids of turns are numbers in old versions, the same in every thread.
        events = [replace(event, id=new_id("gen_")) if isinstance(event, Started) else event for event in events]
        self.calls += [
            event.part for event in events if isinstance(event, PartEnded) and isinstance(event.part, ToolCall)
        ]
        self.is_over = self._decoder.is_over if self._stop_filter is None else self._stop_filter.is_over
        return events

    async def _deliver(self) -> None:
        """Up to 0.144 Codex requests one result after the other, not always in the order of the calls."""
        for call_id in list(self._results):
            call = self._decoder.calls.get(call_id)
            if call is not None and call.request_id is not None:
                answer = tool_answer(self._results.pop(call_id), self.program.abilities)
                await self._lease.worker.reply(call.request_id, answer, _START_SECONDS)

    async def _stop(self, thread: Thread) -> None:
        for message in thread.ready():
            self._decode(message)
        if self._is_running and self._lease.worker.is_alive:
            params = {"threadId": thread.id, "turnId": self._decoder.turn_id}
            with suppress(RequestRefused):  # the turn has ended in the meantime
                await self._lease.worker.ask("turn/interrupt", params, _STOP_SECONDS)

    async def _drop(self, thread: Thread) -> None:
        worker, abilities = self._lease.worker, self.program.abilities
        worker.drop(thread)
        if not worker.is_alive:
            return
        method = "thread/unsubscribe" if abilities.unsubscribe else "" if abilities.ephemeral else "thread/archive"
        method = "thread/delete" if thread.is_reusable else method
        if method:
            with suppress(RequestRefused):  # a thread without a turn cannot be archived
                await worker.ask(method, {"threadId": thread.id}, _STOP_SECONDS)

    def _delete_files(self, thread: Thread, home: Home) -> None:
        """Also those of a process that has died."""
        if thread.path:
            home.delete(thread.path)
        if thread.is_reusable:
            home.delete_thread(thread.id)

    def _fault(self, error: SessionLost | RequestRefused | TimeoutError) -> UpstreamError:
        match error:
            case RequestRefused():
                return refused(error.error)
            case SessionLost():
                self._is_faulty = True
                return died(error)
            case _:
                self._is_faulty = True
                self._lease.distrust()
                return _too_slow(_START_SECONDS)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _turn_id(started: object) -> str:
    turn = started.get("turn") if isinstance(started, dict) else None
    found = turn.get("id") if isinstance(turn, dict) else None
    return found if isinstance(found, str) else ""


def _too_slow(seconds: float) -> UpstreamError:
    return UpstreamError(
        f"Codex sent nothing for {seconds:.0f} seconds.",
        status=504,
        code="upstream_timeout",
        hint="Raise first_byte_timeout or idle_timeout of this back end if its models need longer.",
    )
