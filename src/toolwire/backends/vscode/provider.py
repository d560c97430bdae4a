"""The gateway's models inside VS Code: requests of a window run like any other, and the answers are sent as frames.

VS Code's own models are never offered to it: requests would loop.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from ...dialects.base import ModelLine
from ...errors import BadRequest, GatewayError, InternalError, quote
from ...events import Event, Failed, Finished
from ...ids import new_id
from ...telemetry import Record, wire_trace
from ...types import Request
from ..mounts import GatewayAccess
from .window import Window
from .wire.answer_out import PartsEncoder
from .wire.errors import refused
from .wire.frames import BadWindowFrame
from .wire.request_in import request_of
from .wire.shapes import NAME, Ask, End, Offer, OfferedModel

MAX_REQUESTS = 32  # of one window at a time
OWNER = "vscode"  # of requests that windows send
# Model lists do not state limits. VS Code drops the part of a conversation that is beyond the first of these.
_INPUT, _OUTPUT = 200_000, 32_000


class ModelProvider:
    """Requests of one window. is_own_model: whether a model is VS Code's own. pause: seconds between two frames of an answer.

    Belongs to one event loop.
    """

    def __init__(
        self, window: Window, gateway: GatewayAccess, is_own_model: Callable[[str], Awaitable[bool]], pause: float
    ) -> None:
        self._window = window
        self._gateway = gateway
        self._is_own_model = is_own_model
        self._pause = pause
        self._running: dict[str, asyncio.Task[None]] = {}
        self._listing: asyncio.Task[None] | None = None
        self._offered: Offer | None = None
        self._is_listing = False  # the window has requested the list

    @property
    def is_idle(self) -> bool:
        return not self._running

    def ask(self, frame: Ask) -> None:
        if frame.id in self._running:
            self._refuse(frame.id, BadRequest(f"the id {quote(frame.id)} is in use by another ask.", code="id_in_use"))
        elif self._window.is_leaving:
            self._refuse(frame.id, BadRequest("the gateway is stopping.", status=503, code="not_ready"))
        elif len(self._running) >= MAX_REQUESTS:
            why = f"{MAX_REQUESTS} requests of this window are open, the most at once."
            self._refuse(frame.id, BadRequest(why, status=429, code="too_many_requests"))
        else:
            task = self._running[frame.id] = asyncio.create_task(self._answer(frame))
            task.add_done_callback(lambda _: self._running.pop(frame.id, None))

    def stop(self, ask_id: str) -> None:
        if (task := self._running.get(ask_id)) is not None:
            task.cancel()

    def list(self) -> None:
        """Sends the list of models, now and whenever it has changed."""
        self._is_listing, self._offered = True, None
        self.refresh()

    def refresh(self) -> None:
        if self._is_listing and (self._listing is None or self._listing.done()):
            self._listing = asyncio.create_task(self._offer())

    def close(self) -> None:
        for task in [*self._running.values(), *([self._listing] if self._listing is not None else [])]:
            task.cancel()

    async def _offer(self) -> None:
        try:
            lines = await self._gateway.models()
            offer = Offer(
                models=tuple([_offered_model(line) for line in lines if not await self._is_own_model(line.id)])
            )
        except GatewayError as error:
            self._gateway.log("warning", f"no models could be offered to VS Code: {error.message}")
            return
        if offer != self._offered:
            self._offered = offer
            self._window.send(offer)

    async def _answer(self, frame: Ask) -> None:
        record = Record(
            request_id=new_id("req_"), dialect=NAME, model=frame.model[:100], is_stream=True, started=time.monotonic()
        )
        if wire_trace.active:
            wire_trace.enter(record.request_id)
        try:
            self._gateway.opened(record)
        except BadRequest as error:
            self._refuse(frame.id, error)
            return
        encoder = PartsEncoder(frame.id)
        sender = _PacedSender(self._window, encoder, self._pause)
        try:
            await self._send(request_from(frame), record, sender)
        except asyncio.CancelledError:
            record.outcome, record.status = "client_gone", 499
            if not encoder.is_over:
                self._window.send(End(id=frame.id, cancelled=True))
            raise
        except GatewayError as error:
            self._fail(error, record, encoder)
        except Exception as fault:
            self._gateway.log("error", "".join(traceback.format_exception(fault)), record.request_id)
            message = f"something went wrong inside the gateway; the log has it under {record.request_id}."
            self._fail(InternalError(message), record, encoder)
        finally:
            sender.close()
            self._gateway.closed(record)

    async def _send(self, request: Request, record: Record, sender: _PacedSender) -> None:
        """Reads on after the last event: the request is accounted for only at the end of the generator."""
        async with aclosing(self._gateway.answer(request, record)) as batches:
            async for events in batches:
                if not record.first_byte:
                    record.first_byte, record.status = time.monotonic(), 200
                await sender.send(events)

    def _fail(self, error: GatewayError, record: Record, encoder: PartsEncoder) -> None:
        record.outcome, record.error, record.status = "error", error.code, record.status or error.status
        for frame in encoder.fail(error):
            self._window.send(frame)

    def _refuse(self, ask_id: str, error: BadRequest) -> None:
        self._window.send(refused(ask_id, error))


class _PacedSender:
    """Joins events within a pause to one frame: VS Code buffers what arrives faster than every 30 ms."""

    def __init__(self, window: Window, encoder: PartsEncoder, pause: float) -> None:
        self._window = window
        self._encoder = encoder
        self._pause = pause
        self._loop = asyncio.get_running_loop()
        self._events: list[Event] = []
        self._sent_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, events: list[Event]) -> None:
        self._events += events
        wait = self._sent_at + self._pause - self._loop.time()
        if wait <= 0 or any(isinstance(event, Finished | Failed) for event in events):
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(wait, self._flush)
        if not self._encoder.is_over:
            await self._window.outbox.room()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush(self) -> None:
        self.close()
        events, self._events = self._events, []
        for frame in self._encoder.send(events):
            self._window.send(frame)
            self._sent_at = self._loop.time()


def request_from(frame: Ask) -> Request:
    try:
        return request_of(frame, OWNER)
    except BadWindowFrame as fault:
        raise BadRequest(str(fault)) from None


def _offered_model(line: ModelLine) -> OfferedModel:
    return OfferedModel(
        id=line.id,
        name=line.title or line.id,
        family=line.id.rpartition("/")[2],
        version="1",
        max_input_tokens=line.context or _INPUT,
        max_output_tokens=_OUTPUT,
        can_call_tools=True,
        can_see_images=True,
    )
