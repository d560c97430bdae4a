"""The back end that asks Cursor's agent service: every request a run there, or the next step of a run that waits for its results."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from ...calls.retelling import has_calls
from ...calls.schemas import Schemas, TooCostly
from ...config import BackendConfig
from ...dialects.cursor import Opening, Outlook, Setup, TurnDecoder, opening
from ...dialects.cursor.permits import allowed_tools
from ...errors import UpstreamError
from ...events import Event
from ...profiles import CURSOR
from ...tools.workspace.sandbox import Shell
from ...types import JsonObject, Loss, Request, Tool
from ...wire.exact import encode
from ..base import EventReply, Model
from ..budget import CODE, Budget, conversation_of
from ..continuing import Continuation, answered_calls, place_after, place_of
from ..parking import Parking
from ..refusals import check_tools
from ..synthesis import new_id
from ..transport import Transport
from .allowance import Allowance
from .channel import Gone
from .local import LocalTools
from .repeats import Repeats
from .service import Service, Way
from .tries import Tries
from .turn import Limits, Turn

_LISTED = 300.0  # seconds that a list of models is good for
# What is not begun anew: the client has waited for long enough, and can ask again; or the agent runs in circles.
_LAST_WORDS = frozenset({"upstream_timeout", CODE})


class TurnReply(EventReply, kw_only=True):
    """leave: nobody reads it, or on; also where reading never began."""

    leave: Callable[[], None]

    async def close(self) -> None:
        await super().close()
        self.leave()


class CursorBackend:
    """Answers in events. Belongs to one event loop."""

    dialect = ""
    profile = CURSOR
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, config: BackendConfig, transport: Transport, *, limits: Limits | None = None) -> None:
        self.name = config.name
        self.service = Service(config, transport)
        self.budget = Budget(config.max_requests_per_minute, config.max_tokens_per_minute)
        self.parking: Parking[Turn] = Parking(Turn.leave, seconds=max(1, config.park_seconds))
        self._config = config
        self._limits = limits or _limits(config)
        self._local = local_tools(config)
        self._leaving: set[asyncio.Task[None]] = set()
        self._schemas = Schemas()
        self._listing = asyncio.Lock()
        self._models: list[Model] = []
        self._listed_at = 0.0

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
        allowance = Allowance(self.budget, conversation)
        if (reply := await self._continued(request, allowance)) is not None:
            return reply
        original = str(uuid.uuid4())
        tries = Tries(self.service, self._config.retries, time.monotonic() + self._limits.silent)
        while True:
            way: Way | None = None
            try:
                way = await self.service.way()
                return await self._answered(request, way, original, allowance)
            except UpstreamError as error:
                pause = tries.pause(error, way, time.monotonic())
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Every run is left when this returns; the transport is shared and closed by its owner. Safe to call twice."""
        await self.parking.close()
        while self._leaving:
            await asyncio.wait(self._leaving)
        await self.service.close()

    async def _answered(self, request: Request, way: Way, original: str, allowance: Allowance) -> EventReply:
        local = None if _has_tools(request) else self._local
        opened = opening(request, self._setup(local))
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
        return self._reply(turn, request, first, opened.losses)

    def _setup(self, local: LocalTools | None) -> Setup:
        return Setup(
            conversation_id=str(uuid.uuid4()),
            run_id=str(uuid.uuid4()),
            message_id=str(uuid.uuid4()),
            workspace=str(Path(self._config.workspace).resolve()) if local is not None else "",
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

    async def _continued(self, request: Request, allowance: Allowance) -> EventReply | None:
        """The next answer of a run that waits for these results; None where there is none, or it cannot go on."""
        if not len(self.parking):
            return None
        found = place_of(request, request.owner)
        turn = self.parking.take(found[0]) if found is not None else None
        if found is None or turn is None:
            self.parking.overtake(answered_calls(request), request.owner)
            return None
        try:
            if turn.is_alive:
                await turn.give(request, _results(found[1]), allowance)
                return self._reply(turn, request, await turn.first(), found[1].losses)
        except UpstreamError as error:
            if error.code in _LAST_WORDS:
                self._soon(turn.leave())
                raise
        except BaseException:
            self._soon(turn.leave())
            raise
        self._soon(turn.leave())
        return None  # the whole conversation is here, so it can be begun anew

    def _reply(self, turn: Turn, request: Request, first: list[Event], losses: tuple[Loss, ...]) -> TurnReply:
        told = _Told(self, turn, request)
        return TurnReply(events=told.events(first), losses=losses, how=turn.how, leave=told.leave)

    def settle(self, turn: Turn, request: Request) -> None:
        """An answer has ended: the run waits for results, or is over."""
        turn.allowance.ended(turn.tokens, time.monotonic())
        if turn.is_waiting and self._config.park_seconds:
            turn.died = lambda: self._died(turn)
            self.parking.park(turn, place_after(request, turn.calls, request.owner))
        else:
            self._soon(turn.leave())

    def abandon(self, turn: Turn) -> None:
        self._soon(turn.leave())

    def _died(self, turn: Turn) -> None:
        if self.parking.forget(turn):
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

    async def events(self, first: list[Event]) -> AsyncIterator[list[Event]]:
        try:
            events = first
            while True:
                if self._turn.is_over:
                    self._settle()  # before the client hears of it, who may be back at once
                if events:
                    yield events
                if self._is_done:
                    return
                events = await self._turn.more()
        finally:
            self.leave()

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


def _results(found: Continuation) -> dict[str, Any]:
    return {call.id: result for call, result in zip(found.calls, found.results, strict=True)}


def _limits(config: BackendConfig) -> Limits:
    return Limits(first=config.first_byte_timeout, idle=config.idle_timeout, silent=min(60.0, config.idle_timeout))
