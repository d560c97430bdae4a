"""One model request: read it, run it, answer it; the client may leave at any moment."""

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
from .outlet import Outlet
from .reply import Reply, debug_header, loss_header, passed_headers

T = TypeVar("T")
_LAST_WORDS = 1.0  # seconds


class Exchange:
    """Between the routing of a request and its last byte."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, runtime: Runtime, record: Record, interval: float, owner: str = ""
    ) -> None:
        self._owner = owner
        self._loop = loop  # handed in: finding the running loop costs a system call in Python 3.11
        self._runtime = runtime
        self._record = record
        self._interval = interval
        self._step: Answer | None = None
        self._is_ending = False

    async def run(self, request: Request, receive: Receive, reply: Reply) -> None:
        """Raises GatewayError while nothing has been sent, ClientGone when the client has left."""
        task = asyncio.current_task(self._loop)
        assert task is not None
        watcher: asyncio.Future[object] = self._loop.create_task(_next(receive))
        is_gone = False

        def leave(_: object) -> None:
            nonlocal is_gone
            if not self._is_ending:  # else it is only the server saying that the answer is complete
                is_gone = True
                task.cancel()

        watcher.add_done_callback(leave)
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
            watcher.remove_done_callback(leave)
            watcher.cancel()
            if self._step is not None:
                await self._step.release()

    async def _whole(self, request: Request, reply: Reply) -> None:
        step = self._step = await self._runtime.step(request, self._record, self._owner)
        pieces: list[bytes] = []

        async def gather(wire: bytes) -> None:
            pieces.append(wire)

        await step.run(gather)
        if step.error is not None:
            raise step.error.fresh()
        self._note_first_byte()
        self._is_ending = True
        extra = passed_headers(step.headers) + loss_header(step.losses)
        if self._record.is_debugged:
            extra.append(debug_header(step.report()))
        await reply.whole(200, b"".join(pieces), "application/json", extra)

    async def _stream(self, request: Request, reply: Reply) -> None:
        outlet = Outlet(self._loop, reply, self._interval)
        try:
            step = self._step = await self._runtime.step(request, self._record, self._owner)
            outlet.headers += passed_headers(step.headers) + loss_header(step.losses)
            # A task of its own: each piece then wakes a short chain of coroutines, not the server's whole stack.
            await self._loop.create_task(self._pump(step, outlet))
        except GatewayError as error:
            if not reply.is_started or (self._step is not None and self._step.is_over):
                raise
            await self._fail(error, request, reply)
        finally:
            outlet.close()

    async def _stop(self, request: Request, reply: Reply) -> None:
        """The server has waited long enough for this answer and ends."""
        error = _stopped()
        if not reply.is_started:
            raise error
        await self._fail(error, request, reply)

    async def _fail(self, error: GatewayError, request: Request, reply: Reply) -> None:
        """The head has left, so the error comes as the last event."""
        self._record.status, self._record.outcome, self._record.error = 200, "error", error.code
        if self._step is not None:
            wire = self._step.fail(error)
        else:
            context = AnswerContext(request=request, mint=new_id, now=int(time.time()))
            wire = reply.dialect.encoder(context).send(Failed(error=error))
        await reply.send({"type": "http.response.body", "body": wire, "more_body": False})

    async def _pump(self, step: Answer, outlet: Outlet) -> None:
        async def write(wire: bytes) -> None:
            if not self._record.first_byte:
                if step.error is not None and not step.has_content and not outlet.is_started:
                    raise step.error.fresh()
                self._note_first_byte()
            self._is_ending = step.is_over
            await outlet.write(wire, is_last=step.is_over)

        await step.run(write)
        if not step.is_over:
            await outlet.write(b"", is_last=True)
        elif isinstance(step.error, InternalError):
            raise step.error.fresh()

    def _note_first_byte(self) -> None:
        self._record.status = 200
        self._record.first_byte = time.monotonic()


async def while_here(receive: Receive, work: Coroutine[Any, Any, T], stop: Callable[[], None] | None = None) -> T:
    """The result of work. Raises ClientGone when the client disconnects before; then the work is cancelled, and has released what
    it held when this returns. When the server ends, stop is called, if there is one, and the work has a moment to end itself."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_next(receive))
    try:
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _end(working, stop)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        leaving.cancel()
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
