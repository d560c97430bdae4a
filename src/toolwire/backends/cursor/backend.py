"""The Cursor back end: each request starts a run of the agent service, or resumes a run that waits for tool results."""

from __future__ import annotations

import asyncio
import time
import uuid
from itertools import count
from pathlib import Path
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from ...calls.parts import PartIndexes
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
from ..base import Backend, Confinement, EventReply, Model, ParkedRuns
from ..budget import CODE, ConversationBudget, conversation_of
from ..continuation import resume_point_after
from ..http.refusals import check_tools
from ..http.transport import Transport
from ..sessions import BackgroundTasks, Delivery, Parking, RunReply
from .allowance import MAX_DECLINED, MAX_DECLINED_WITHOUT_TOOLS, Allowance
from .local.execs import LocalTools, confinement
from .machine import branches_in, folder_of, this_machine
from .run import EMPTY, STALLED, AgentRun, Repeats, RunLimits, stalled
from .transport.service import Retries, Service
from .transport.target import Attempt
from .wire.decoder import RunDecoder
from .wire.exec_routing import RunContext
from .wire.execs import allowed_tools
from .wire.request import RunOpening, RunSetup, offered, opening

_MODEL_LIST_SECONDS = 300.0  # how long a list of models is cached
_UNPARKED_SECONDS = 600.0  # without parking after a continued run gave no answer
# Errors after which a run is not restarted: the client has waited long enough, or the agent runs in a loop.
_FINAL = frozenset({"upstream_timeout", CODE})
_RESTARTS = {
    STALLED: Loss(
        "cursor.stalled", "turn", "the run gave no answer to the results; it was restarted with the whole conversation"
    ),
    EMPTY: Loss(
        "cursor.empty", "turn", "the run ended without any output; it was restarted with the whole conversation"
    ),
}


class StartedAnswer(Struct, frozen=True, kw_only=True):
    """A run with the events of its answer up to the first part."""

    run: AgentRun
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

    def __init__(self, config: BackendConfig, transport: Transport, *, limits: RunLimits | None = None) -> None:
        self.name = config.name
        self.service = Service(config, transport)
        self.budget = ConversationBudget(config.max_requests_per_minute, config.max_tokens_per_minute)
        self.parking: Parking[AgentRun] = Parking(AgentRun.stop, seconds=max(1, config.park_seconds))
        self.background = BackgroundTasks()
        self._config = config
        self._limits = limits or RunLimits(
            first=config.first_byte_timeout,
            idle=config.idle_timeout,
            silent=min(60.0, config.idle_timeout),
            heartbeats=config.stall_heartbeats,
            stall=config.stall_seconds,
        )
        workspace, shell = Path(config.workspace or "."), Shell(sandbox=config.sandbox)
        self._local = LocalTools(workspace, config.local_tools, shell=shell) if config.local_tools else None
        self._machine = this_machine()
        self._schemas = Schemas()
        self._listing = asyncio.Lock()
        self._models: list[Model] = []
        self._listed_at = 0.0
        self._unparked_until = 0.0

    @property
    def parked_runs(self) -> ParkedRuns:
        return self.parking

    async def program(self) -> str:
        """Which protocol reaches the service. Raises GatewayError."""
        return f"reached by {await self.service.probe()}"

    async def models(self) -> list[Model]:
        if self._config.models:
            return [Model(id=name, owner=self.name) for name in self._config.models]
        async with self._listing:
            if not self._models or time.monotonic() - self._listed_at > _MODEL_LIST_SECONDS:
                found = await self.service.models()
                self._models = [Model(id=model, owner=self.name, title=title) for model, title in found.items()]
                self._listed_at = time.monotonic()
        return self._models

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        """Raises GatewayError before the first part. Failures that may pass are retried until then."""
        check_tools(request, self.profile)
        conversation = conversation_of(request)
        self.budget.ask(conversation, time.monotonic())
        has_tools = bool(offered(request)) or (self._local is not None and not _has_tools(request))
        max_declined = MAX_DECLINED if has_tools else MAX_DECLINED_WITHOUT_TOOLS
        allowance = Allowance(self.budget, conversation, max_declined=max_declined)
        answer = await self._resume(request, allowance)
        if not isinstance(answer, StartedAnswer):
            answer = await self.start(request, allowance, answer)
        delivery = _Delivery(self, answer.run, request)
        return RunReply(
            events=delivery.events(answer.first),
            losses=answer.losses,
            how=answer.run.how,
            local=answer.run.local_calls,
            stop=delivery.stop,
        )

    async def start(
        self, request: Request, allowance: Allowance, failure: UpstreamError | None = None
    ) -> StartedAnswer:
        """A new run with the whole conversation. failure: why the run that was continued gave no answer."""
        code = "" if failure is None else failure.code
        if code == STALLED:
            self._unparked_until = time.monotonic() + _UNPARKED_SECONDS
        until = time.monotonic() + self._limits.silent
        retries = Retries(self.service, self._config.retries, until, was_empty=code == EMPTY)
        original_id = str(uuid.uuid4())
        local = None if _has_tools(request) else self._local
        allowed = allowed_tools(self._config.local_tools if local is not None else ())
        while True:
            attempt: Attempt | None = None
            try:
                attempt = await self.service.attempt(original_id, allowed)
                answer = await self._start_once(request, attempt, local, allowance)
            except UpstreamError as error:
                delay = retries.delay(error, attempt, time.monotonic())
                if delay is None:
                    raise
                code = code or (EMPTY if error.code == EMPTY else "")
                await asyncio.sleep(delay)
                continue
            return replace(answer, losses=(*answer.losses, _RESTARTS[code])) if code in _RESTARTS else answer

    def end_answer(self, run: AgentRun, request: Request) -> None:
        """The run waits for results and is parked, or is stopped."""
        run.allowance.count_answer(run.tokens, time.monotonic())
        if run.is_waiting and self._config.park_seconds and time.monotonic() >= self._unparked_until:
            run.on_end = lambda: self._discard(run)
            self.parking.park(run, resume_point_after(request, run.calls))
        else:
            self.abandon(run)

    def abandon(self, run: AgentRun) -> None:
        self.background.start(run.stop())

    async def close(self) -> None:
        """Stops every run and waits for it. The transport is shared, and closed by its owner. Safe to call twice."""
        await self.parking.close()
        await self.background.wait()
        await self.service.close()

    async def _start_once(
        self, request: Request, attempt: Attempt, local: LocalTools | None, allowance: Allowance
    ) -> StartedAnswer:
        opened = opening(request, self._setup(request, local))
        repeats = Repeats(request.messages)
        channel = await self.service.open(attempt, opened.message)
        decoder = RunDecoder(self._context(request, opened, repeats, local))
        run = AgentRun(channel, decoder, self._limits, repeats=repeats, local=local)
        run.how = self.service.describe(channel)
        try:
            run.listen(request, allowance)
            first = await run.first()
        except BaseException:
            self.abandon(run)
            raise
        return StartedAnswer(run=run, first=first, losses=opened.losses)

    async def _resume(self, request: Request, allowance: Allowance) -> StartedAnswer | UpstreamError | None:
        """The next answer of the run that waits for these results; None if there is none, the error if that run failed."""
        if (resumed := self.parking.resume(request)) is None:
            return None
        run, found = resumed
        results = {call.id: result for call, result in zip(found.calls, found.results, strict=True)}
        try:
            if run.is_alive:
                await run.resume(request, results, allowance)
                return StartedAnswer(run=run, first=await run.first(), losses=found.losses)
        except UpstreamError as error:
            self.abandon(run)
            if error.code in _FINAL:
                raise
            return error
        except BaseException:
            self.abandon(run)
            raise
        self.abandon(run)
        return None

    def _setup(self, request: Request, local: LocalTools | None) -> RunSetup:
        """A client with tools works in its own folder, which it usually names in its messages; local tools work in ours."""
        workspace = Path(self._config.workspace or ".").resolve()
        folder = "" if local is not None else folder_of(request.messages)
        return RunSetup(
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

    def _context(self, request: Request, opened: RunOpening, repeats: Repeats, local: LocalTools | None) -> RunContext:
        return RunContext(
            model=request.model,
            opening=opened,
            new_call_id=lambda: new_id("call_"),
            fits=self._fits,
            local=local.exec_kinds if local is not None else frozenset(),
            is_parallel=request.parallel_calls is not False,
            known_result=repeats.result if self._config.repeated_calls == "answer" else None,
        )

    def _fits(self, tool: Tool, arguments: JsonObject) -> bool:
        """False for a schema that cannot be checked."""
        checker = self._schemas.of(tool.schema).checker
        try:
            return checker is not None and checker.fits(arguments, len(encode(arguments)))
        except TooCostly:
            return False

    def _discard(self, run: AgentRun) -> None:
        if self.parking.discard(run):
            self.abandon(run)


class _Delivery(Delivery[AgentRun]):
    """Restarts a run that stalls after its reasoning was sent: the new run continues the same answer."""

    def __init__(self, backend: CursorBackend, run: AgentRun, request: Request) -> None:
        super().__init__(run, lambda run: backend.end_answer(run, request), backend.abandon)
        self._backend = backend
        self._request = request
        self._new_index = count().__next__
        self._indexes = PartIndexes(self._new_index)  # of the current run

    async def adjust(self, events: list[Event]) -> list[Event]:
        last = events[-1] if events else None
        if not isinstance(last, Failed) or last.error.code != STALLED:
            return self._renumber(events)
        sent = self._renumber(events[:-1])
        self._backend.abandon(self.run)
        answer = await self._backend.start(self._request, self.run.allowance, stalled(0))
        self.run = answer.run
        self._indexes = PartIndexes(self._new_index)
        notes = [Noted(note=loss) for loss in answer.losses]
        return [*sent, *notes, *self._renumber([event for event in answer.first if not isinstance(event, Started)])]

    def _renumber(self, events: list[Event]) -> list[Event]:
        renumbered: list[Event] = []
        for event in events:
            if isinstance(event, PartStarted):
                renumbered.append(self._indexes.open(event))
            elif isinstance(event, PartDelta | PartEnded | Noted):
                renumbered += self._indexes.forward(event)
            else:
                renumbered.append(event)
        return renumbered


def _has_tools(request: Request) -> bool:
    """Whether the client has any tools, including those it does not want called now, described in its prompt, or called before."""
    return bool(request.tools) or request.has_new_tools or has_calls(request.messages)
