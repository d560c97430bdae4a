"""One model request, from its decoded form to its last byte. The client may disconnect at any moment, which cancels the back end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ..dialects.base import AnswerContext
from ..errors import BadRequest, GatewayError, InternalError
from ..events import Failed
from ..ids import new_id
from ..pipeline.answer import Answer
from ..runtime import Runtime
from ..telemetry import Record
from ..types import Request
from .body import ClientGone, Receive
from .reply import EventStream, Reply, debug_header, loss_header, passed_headers

T = TypeVar("T")
_LAST_WORDS = 1.0  # seconds


class Exchange:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, runtime: Runtime, record: Record, interval: float, owner: str = ""
    ) -> None:
        self._owner = owner
        self._loop = loop  # a parameter, because asyncio.get_running_loop() makes a system call in Python 3.11
        self._runtime = runtime
        self._record = record
        self._interval = interval
        self._answer: Answer | None = None
        self._is_ending = False

    async def run(self, request: Request, receive: Receive, reply: Reply) -> None:
        """Raises GatewayError until the first byte is sent, ClientGone when the client disconnects."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        watcher: asyncio.Future[object] = self._loop.create_task(_next(receive))
        is_gone = False

        def disconnect(_: object) -> None:
            nonlocal is_gone
            if not self._is_ending:  # else the server reports the end of the response
                is_gone = True
                task.cancel()

        watcher.add_done_callback(disconnect)
        try:
            if request.stream:
                await self._stream(request, reply)
            else:
                await self._whole(request, reply)
        except asyncio.CancelledError:
            task.uncancel()
            if is_gone:
                raise ClientGone from None
            await self._stop(request, reply)
        finally:
            watcher.remove_done_callback(disconnect)
            watcher.cancel()
            if self._answer is not None:
                await self._answer.release()

    async def _whole(self, request: Request, reply: Reply) -> None:
        answer = self._answer = await self._runtime.step(request, self._record, self._owner)
        pieces: list[bytes] = []

        async def gather(wire: bytes) -> None:
            pieces.append(wire)

        await answer.run(gather)
        if answer.error is not None:
            raise answer.error.fresh()
        self._note_first_byte()
        self._is_ending = True
        extra = passed_headers(answer.headers) + loss_header(answer.losses)
        if self._record.is_debugged:
            extra.append(debug_header(answer.report()))
        await reply.whole(200, b"".join(pieces), "application/json", extra)

    async def _stream(self, request: Request, reply: Reply) -> None:
        stream = EventStream(self._loop, reply, self._interval)
        try:
            answer = self._answer = await self._runtime.step(request, self._record, self._owner)
            stream.headers += passed_headers(answer.headers) + loss_header(answer.losses)
            # In a task, so that each piece wakes a short chain of coroutines and not the whole stack of the server.
            await self._loop.create_task(self._pump(answer, stream))
        except GatewayError as error:
            if not reply.is_started or (self._answer is not None and self._answer.is_over):
                raise
            await self._fail(error, request, reply)
        finally:
            stream.close()

    async def _stop(self, request: Request, reply: Reply) -> None:
        """The server shuts down and does not wait for this answer any longer."""
        error = _stopped()
        if not reply.is_started:
            raise error
        await self._fail(error, request, reply)

    async def _fail(self, error: GatewayError, request: Request, reply: Reply) -> None:
        """The head was sent, so the error is the last event."""
        self._record.status, self._record.outcome, self._record.error = 200, "error", error.code
        if self._answer is not None:
            wire = self._answer.fail(error)
        else:
            context = AnswerContext(request=request, mint=new_id, now=int(time.time()))
            wire = reply.dialect.encoder(context).send(Failed(error=error))
        await reply.send({"type": "http.response.body", "body": wire, "more_body": False})

    async def _pump(self, answer: Answer, stream: EventStream) -> None:
        async def write(wire: bytes) -> None:
            if not self._record.first_byte:
                if answer.error is not None and not answer.has_content and not stream.is_started:
                    raise answer.error.fresh()
                self._note_first_byte()
            self._is_ending = answer.is_over
            await stream.write(wire, is_last=answer.is_over)

        await answer.run(write)
        if not answer.is_over:
            await stream.write(b"", is_last=True)
        elif isinstance(answer.error, InternalError):
            raise answer.error.fresh()

    def _note_first_byte(self) -> None:
        self._record.status = 200
        self._record.first_byte = time.monotonic()


async def while_here(receive: Receive, work: Coroutine[Any, Any, T], stop: Callable[[], None] | None = None) -> T:
    """The result of work. When the client disconnects first, the work is cancelled and ClientGone raised after it has ended. When the
    server shuts down, stop() is called, and the work gets a moment to end by itself."""
    working, disconnecting = asyncio.ensure_future(work), asyncio.ensure_future(_next(receive))
    try:
        try:
            await asyncio.wait({working, disconnecting}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _end(working, stop)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        disconnecting.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working}, timeout=_LAST_WORDS)


async def _end(working: asyncio.Future[T], stop: Callable[[], None] | None) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
    if stop is not None:
        stop()
        await asyncio.wait({working}, timeout=_LAST_WORDS)
    if not working.done():
        raise _stopped() from None


def _stopped() -> BadRequest:
    return BadRequest("the gateway was stopped before the answer was complete.", status=503, code="not_ready")


async def _next(receive: Receive) -> object:
    return await receive()
