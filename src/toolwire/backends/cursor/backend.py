"""The back end that asks Cursor's agent service: every request a run there, or the next step of a run that waits for its results."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from ...calls.schemas import Schemas, TooCostly
from ...calls.written.history_text import has_calls
from ...config.file import BackendConfig
from ...errors import UpstreamError
from ...events import Event, Failed, Noted, PartDelta, PartEnded, PartStarted, Started
from ...ids import new_id
from ...profiles import CURSOR
from ...tools.workspace.sandbox import Shell
from ...types import JsonObject, Loss, Request, Tool
from ...wire.exact_json import encode
from ..base import Backend, Confinement, EventReply, Model
from ..budget import CODE, Budget, conversation_of
from ..continuation import Continuation, resume_point_after
from ..http.refusals import check_tools
from ..http.transport import Transport
from ..sessions import Parking
from .allowance import MOST_DECLINED, MOST_UNOFFERED, Allowance
from .local.execs import LocalTools, confinement
from .machine import branches_in, folder_of, this_machine
from .repeats import Repeats
from .run import EMPTY, STALLED, Limits, Turn, stalled
from .transport.channel import Gone
from .transport.service import Service, Tries, Way
from .wire import Opening, Outlook, Setup, TurnDecoder, offered, opening
from .wire.execs import allowed_tools

_LISTED = 300.0  # seconds that a list of models is good for
_UNPARKED = 600.0  # seconds without parking after a continued run gave no answer
# What is not begun anew: the client has waited for long enough, and can ask again; or the agent runs in circles.
_LAST_WORDS = frozenset({"upstream_timeout", CODE})
_AGAIN = "it was restarted with the whole conversation"
_LOSSES = {
    STALLED: (Loss("cursor.stalled", "turn", f"the run gave no answer to the results; {_AGAIN}"),),
    EMPTY: (Loss("cursor.empty", "turn", f"the run ended without any output; {_AGAIN}"),),
}


class TurnReply(EventReply, kw_only=True):
    """leave: nobody reads it, or on; also where reading never began."""

    leave: Callable[[], None]

    async def close(self) -> None:
        await super().close()
        self.leave()


class Begun(Struct, frozen=True, kw_only=True):
    """An answer up to its first word."""

    turn: Turn
    first: list[Event]
    losses: tuple[Loss, ...] = ()


class CursorBackend(Backend):
    """Answers in events. Belongs to one event loop."""

    dialect = ""
    profile = CURSOR
    tool_kinds: frozenset[str] = frozenset()

    @classmethod
    def from_config(cls, config: BackendConfig, transport: Transport) -> Self:
        return cls(config, transport)

    @classmethod
    def confinement(cls, config: BackendConfig) -> Confinement | None:
        return confinement(config)

    def __init__(self, config: BackendConfig, transport: Transport, *, limits: Limits | None = None) -> None:
        self.name = config.name
        self.service = Service(config, transport)
        self.budget = Budget(config.max_requests_per_minute, config.max_tokens_per_minute)
        self.parking: Parking[Turn] = Parking(Turn.leave, seconds=max(1, config.park_seconds))
        self._config = config
        self._limits = limits or _limits(config)
        self._local = local_tools(config)
        self._leaving: set[asyncio.Task[None]] = set()
        self._machine = this_machine()
        self._schemas = Schemas()
        self._listing = asyncio.Lock()
        self._models: list[Model] = []
        self._listed_at = 0.0
        self._unparked_until = 0.0

    async def program(self) -> str:
        """How the service is reached. Raises GatewayError."""
        return f"reached by {await self.service.carrier()}"

    async def models(self) -> list[Model]:
        if self._config.models:
            return [Model(id=name, owner=self.name) for name in self._config.models]
        async with self._listing:
            if not self._models or time.monotonic() - self._listed_at > _LISTED:
                found = await self.service.models()
                self._models = [Model(id=model.id, owner=self.name, title=model.name) for model in found]
                self._listed_at = time.monotonic()
        return self._models

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        """Raises GatewayError before the first word. What may pass by itself is tried again until then."""
        check_tools(request, self.profile)
        conversation = conversation_of(request)
        self.budget.ask(conversation, time.monotonic())
        has_any = bool(offered(request)) or (self._local is not None and not _has_tools(request))
        most = MOST_DECLINED if has_any else MOST_UNOFFERED
        allowance = Allowance(self.budget, conversation, most_declined=most)
        continued = await self._continued(request, allowance)
        if isinstance(continued, Begun):
            return self._reply(continued, request)
        return self._reply(await self.begin(request, allowance, continued), request)

    async def begin(self, request: Request, allowance: Allowance, before: UpstreamError | None = None) -> Begun:
        """A run of its own for the whole conversation. before: why the run that was continued gave no answer."""
        code = "" if before is None else before.code
        if code == STALLED:
            self._unparked_until = time.monotonic() + _UNPARKED
        until = time.monotonic() + self._limits.silent
        tries = Tries(self.service, self._config.retries, until, was_empty=code == EMPTY)
        original = str(uuid.uuid4())
        while True:
            way: Way | None = None
            try:
                way = await self.service.way()
                begun = await self._answered(request, way, original, allowance)
                return replace(begun, losses=(*begun.losses, *_LOSSES.get(code, ())))
            except UpstreamError as error:
                pause = tries.pause(error, way, time.monotonic())
                if pause is None:
                    raise
                code = code or (EMPTY if error.code == EMPTY else "")
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Every run is left when this returns; the transport is shared and closed by its owner. Safe to call twice."""
        await self.parking.close()
        while self._leaving:
            await asyncio.wait(self._leaving)
        await self.service.close()

    async def _answered(self, request: Request, way: Way, original: str, allowance: Allowance) -> Begun:
        local = None if _has_tools(request) else self._local
        opened = opening(request, self._setup(request, local))
        repeats = Repeats(request.messages)
        decoder = self._decoder(request, opened, repeats, local)
        allowed = allowed_tools(self._config.local_tools if local is not None else ())
        try:
            channel = await self.service.open(way, opened.message, original, allowed)
        except Gone as gone:
            raise gone.error from None
        turn = Turn(channel, decoder, self._limits, repeats=repeats, local=local)
        turn.how = self.service.how(channel)
        try:
            turn.listen(request, allowance)
            first = await turn.first()
        except BaseException:
            self._soon(turn.leave())
            raise
        return Begun(turn=turn, first=first, losses=opened.losses)

    def _setup(self, request: Request, local: LocalTools | None) -> Setup:
        """A client with tools of its own works in a folder of its own, which it mostly names; ours is that of the local tools."""
        workspace = Path(self._config.workspace or ".").resolve()
        folder = "" if local is not None else folder_of(request.messages)
        return Setup(
            conversation_id=str(uuid.uuid4()),
            run_id=str(uuid.uuid4()),
            message_id=str(uuid.uuid4()),
            workspace=folder or str(workspace),
            os=self._machine.os,
            shell=self._machine.shell,
            timezone=self._machine.time_zone,
            branches=branches_in(workspace) if local is not None else {},
            has_context=self._config.request_context == "first",
            schemas=self._config.tool_schemas,
            results=self._config.results,
            history=self._config.history,
        )

    def _decoder(self, request: Request, opened: Opening, repeats: Repeats, local: LocalTools | None) -> TurnDecoder:
        return TurnDecoder(
            Outlook(
                model=request.model,
                opening=opened,
                mint=lambda: new_id("call_"),
                fits=self._fits,
                local=local.exec_kinds if local is not None else frozenset(),
                is_parallel=request.parallel_calls is not False,
                known=repeats.result if self._config.repeated_calls == "answer" else None,
            )
        )

    def _fits(self, tool: Tool, arguments: JsonObject) -> bool:
        """Certainly: a schema that cannot be checked is not taken for one that is met."""
        checker = self._schemas.of(tool.schema).checker
        try:
            return checker is not None and checker.fits(arguments, len(encode(arguments)))
        except TooCostly:
            return False

    async def _continued(self, request: Request, allowance: Allowance) -> Begun | UpstreamError | None:
        """The next answer of a run that waits for these results; where it cannot go on, why not; None where there is no such run."""
        if (resumed := self.parking.resume(request)) is None:
            return None
        turn, found = resumed
        try:
            if turn.is_alive:
                await turn.give(request, _results(found), allowance)
                return Begun(turn=turn, first=await turn.first(), losses=found.losses)
        except UpstreamError as error:
            self._soon(turn.leave())
            if error.code in _LAST_WORDS:
                raise
            return error
        except BaseException:
            self._soon(turn.leave())
            raise
        self._soon(turn.leave())
        return None  # the whole conversation is here, so it can be begun anew

    def _reply(self, begun: Begun, request: Request) -> TurnReply:
        told = _Told(self, begun.turn, request)
        return TurnReply(
            events=told.events(begun.first),
            losses=begun.losses,
            how=begun.turn.how,
            local=begun.turn.local_calls,
            leave=told.leave,
        )

    def settle(self, turn: Turn, request: Request) -> None:
        """An answer has ended: the run waits for results, or is over."""
        turn.allowance.ended(turn.tokens, time.monotonic())
        if turn.is_waiting and self._config.park_seconds and time.monotonic() >= self._unparked_until:
            turn.died = lambda: self._died(turn)
            self.parking.park(turn, resume_point_after(request, turn.calls))
        else:
            self._soon(turn.leave())

    def abandon(self, turn: Turn) -> None:
        self._soon(turn.leave())

    def _died(self, turn: Turn) -> None:
        if self.parking.discard(turn):
            self._soon(turn.leave())

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


class _Told:
    """One answer on its way to the client; the run is handed on exactly once, whatever becomes of the client."""

    def __init__(self, backend: CursorBackend, turn: Turn, request: Request) -> None:
        self._backend = backend
        self._turn = turn
        self._request = request
        self._is_done = False
        self._count = 0  # parts sent so far
        self._offset = 0  # of them before the present run

    async def events(self, first: list[Event]) -> AsyncIterator[list[Event]]:
        try:
            events = first
            while True:
                if _is_stalled(events):
                    events = await self._restarted(events[:-1])
                self._count += sum(isinstance(event, PartStarted) for event in events)
                if self._turn.is_over:
                    self._settle()  # before the client hears of it, who may be back at once
                if events:
                    yield events
                if self._is_done:
                    return
                events = renumbered(await self._turn.more(), self._offset)
        finally:
            self.leave()

    async def _restarted(self, sent: list[Event]) -> list[Event]:
        """The run stalled after reasoning was sent: a new run continues the same answer."""
        self._backend.abandon(self._turn)
        begun = await self._backend.begin(self._request, self._turn.allowance, stalled(0))
        self._turn = begun.turn
        self._offset = self._count + sum(isinstance(event, PartStarted) for event in sent)
        notes = [Noted(note=loss) for loss in begun.losses]
        rest = [event for event in begun.first if not isinstance(event, Started)]
        return [*sent, *notes, *renumbered(rest, self._offset)]

    def leave(self) -> None:
        if not self._is_done:
            self._is_done = True
            self._backend.abandon(self._turn)

    def _settle(self) -> None:
        self._is_done = True
        self._backend.settle(self._turn, self._request)


def _has_tools(request: Request) -> bool:
    """Whether the client has brought any: also those that it does not want called now, that were told in words, or called before."""
    return bool(request.tools) or request.is_lowered or has_calls(request.messages)


def local_tools(config: BackendConfig) -> LocalTools | None:
    if not config.local_tools:
        return None
    return LocalTools(Path(config.workspace or "."), config.local_tools, shell=Shell(sandbox=config.sandbox))


def _is_stalled(events: Sequence[Event]) -> bool:
    last = events[-1] if events else None
    return isinstance(last, Failed) and last.error.code == STALLED


def renumbered(events: Sequence[Event], offset: int) -> list[Event]:
    """The same with parts that follow so many others."""
    if not offset:
        return list(events)
    return [
        replace(event, index=event.index + offset) if isinstance(event, PartStarted | PartDelta | PartEnded) else event
        for event in events
    ]


def _results(found: Continuation) -> dict[str, Any]:
    return {call.id: result for call, result in zip(found.calls, found.results, strict=True)}


def _limits(config: BackendConfig) -> Limits:
    return Limits(
        first=config.first_byte_timeout,
        idle=config.idle_timeout,
        silent=min(60.0, config.idle_timeout),
        heartbeats=config.stall_heartbeats,
        stall=config.stall_seconds,
    )
