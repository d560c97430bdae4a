"""The gateway's models inside VS Code: what a window asks of them is run like any other request, and told in its frames.

Models that VS Code itself lends are never offered back to it: requests would go round in circles.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable
from contextlib import aclosing

from msgspec import Struct

from ..backends.vscode.window import Window
from ..backends.vscode.wire.answer_out import PartsEncoder
from ..backends.vscode.wire.errors import refused
from ..backends.vscode.wire.frames import Bad
from ..backends.vscode.wire.request_in import request_of
from ..backends.vscode.wire.shapes import NAME, Ask, End, Offer, OfferedModel
from ..dialects.base import ModelLine
from ..errors import BadRequest, GatewayError, InternalError, quote
from ..events import Event, Failed, Finished
from ..ids import new_id
from ..pipeline.answer import EventAnswer
from ..runtime import Runtime
from ..telemetry import Record, wire_trace
from ..types import Request
from .logs import Log

AT_ONCE = 32  # asks of one window
# No list of models tells how much one takes. VS Code leaves out of a conversation what is beyond the first of these.
_INPUT, _OUTPUT = 200_000, 32_000


class Desk(Struct, frozen=True):
    """What the server has for those who ask: opened raises BadRequest where there is no room; own are the back ends that
    ask VS Code."""

    log: Log
    runtime: Callable[[], Runtime]
    opened: Callable[[Record], None]
    closed: Callable[[Record], None]
    own: frozenset[str] = frozenset()

    async def is_own(self, model: str) -> bool:
        """Whether VS Code would be asked; also where an alias leads there."""
        return bool(self.own) and (await self.runtime().catalog.route(model)).backend in self.own


def lent_back(model: str) -> BadRequest:
    words = f"{quote(model)} is a model of VS Code itself; the gateway does not lend it back."
    return BadRequest(words, status=404, code="model_not_found")


class Asks:
    """Those of one window. pause: seconds between two frames of an answer. Belongs to one event loop."""

    def __init__(self, window: Window, desk: Desk, owner: str, pause: float) -> None:
        self._window = window
        self._desk = desk
        self._owner = owner
        self._pause = pause
        self._running: dict[str, asyncio.Task[None]] = {}
        self._listing: asyncio.Task[None] | None = None
        self._offered: Offer | None = None
        self._wants_list = False

    @property
    def is_idle(self) -> bool:
        return not self._running

    def ask(self, frame: Ask) -> None:
        if frame.id in self._running:
            self._refuse(frame.id, BadRequest(f"the id {quote(frame.id)} is in use by another ask.", code="id_in_use"))
        elif self._window.is_leaving:
            self._refuse(frame.id, BadRequest("the gateway is ending.", status=503, code="not_ready"))
        elif len(self._running) >= AT_ONCE:
            why = f"{AT_ONCE} asks of this window are being answered, the most at once."
            self._refuse(frame.id, BadRequest(why, status=429, code="too_many_requests"))
        else:
            task = self._running[frame.id] = asyncio.create_task(self._answer(frame))
            task.add_done_callback(lambda _: self._running.pop(frame.id, None))

    def stop(self, ask_id: str) -> None:
        if (task := self._running.get(ask_id)) is not None:
            task.cancel()

    def list(self) -> None:
        """The window wants to know what there is, now and whenever that changes."""
        self._wants_list, self._offered = True, None
        self.renew()

    def renew(self) -> None:
        if self._wants_list and (self._listing is None or self._listing.done()):
            self._listing = asyncio.create_task(self._offer())

    def close(self) -> None:
        for task in [*self._running.values(), *([self._listing] if self._listing is not None else [])]:
            task.cancel()

    async def _offer(self) -> None:
        try:
            lines = await self._desk.runtime().catalog.models()
            offer = Offer(models=tuple([_offered(line) for line in lines if not await self._desk.is_own(line.id)]))
        except GatewayError as error:
            self._desk.log.say("warning", f"no models could be offered to VS Code: {error.message}")
            return
        if offer != self._offered:
            self._offered = offer
            self._window.say(offer)

    async def _answer(self, frame: Ask) -> None:
        record = Record(
            request_id=new_id("req_"), dialect=NAME, model=frame.model[:100], is_stream=True, started=time.monotonic()
        )
        if wire_trace.active:
            wire_trace.enter(record.request_id)
        try:
            self._desk.opened(record)
        except BadRequest as error:
            self._refuse(frame.id, error)
            return
        encoder = PartsEncoder(frame.id)
        try:
            await self._told(await self._asked(frame), record, encoder)
        except asyncio.CancelledError:
            record.outcome, record.status = "client_gone", 499
            if not encoder.is_over:
                self._window.say(End(id=frame.id, cancelled=True))
            raise
        except GatewayError as error:
            self._fail(error, record, encoder)
        except Exception as fault:
            self._desk.log.say("error", "".join(traceback.format_exception(fault)), record.request_id)
            words = f"something went wrong inside the gateway; the log has it under {record.request_id}."
            self._fail(InternalError(words), record, encoder)
        finally:
            self._desk.closed(record)

    async def _asked(self, frame: Ask) -> Request:
        if await self._desk.is_own(frame.model):
            raise lent_back(frame.model)
        try:
            return request_of(frame, self._owner)
        except Bad as fault:
            raise BadRequest(str(fault)) from None

    async def _told(self, request: Request, record: Record, encoder: PartsEncoder) -> None:
        answering = await self._desk.runtime().answer(request, record, self._owner, is_guarded=True)
        telling = _Telling(self._window, encoder, self._pause)
        try:
            await telling.run(answering, record)
        finally:
            telling.close()
            await answering.release()

    def _fail(self, error: GatewayError, record: Record, encoder: PartsEncoder) -> None:
        record.outcome, record.error, record.status = "error", error.code, record.status or error.status
        for frame in encoder.fail(error):
            self._window.say(frame)

    def _refuse(self, ask_id: str, error: BadRequest) -> None:
        self._window.say(refused(ask_id, error))


class _Telling:
    """VS Code gathers what comes quicker than every 30 ms into heaps; so what comes within a pause leaves as one."""

    def __init__(self, window: Window, encoder: PartsEncoder, pause: float) -> None:
        self._window = window
        self._encoder = encoder
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._events: list[Event] = []
        self._left_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, answering: EventAnswer, record: Record) -> None:
        """Up to its very end, behind the last event: only then it has been counted, and its connection is free for another."""
        async with aclosing(answering.events()) as batches:
            async for events in batches:
                self._events += events
                if not record.first_byte:
                    record.first_byte, record.status = time.monotonic(), 200
                if any(isinstance(event, Finished | Failed) for event in events):
                    self._flush()
                    continue
                self._soon()
                await self._window.outbox.room()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _soon(self) -> None:
        if self._timer is not None:
            return
        wait = self._left_at + self._pause - self._loop.time()
        if wait <= 0:
            self._flush()
        else:
            self._timer = self._loop.call_later(wait, self._flush)

    def _flush(self) -> None:
        self.close()
        events, self._events = self._events, []
        for frame in self._encoder.send(events):
            self._window.say(frame)
            self._left_at = self._loop.time()


def _offered(line: ModelLine) -> OfferedModel:
    return OfferedModel(
        id=line.id,
        name=line.title or line.id,
        family=line.id.rpartition("/")[2],
        version="1",
        max_input_tokens=_INPUT,
        max_output_tokens=_OUTPUT,
        can_call_tools=True,
        can_see_images=True,
    )
