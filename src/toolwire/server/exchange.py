"""One model request, from its decoded form to its last byte. The client may disconnect at any moment, which cancels the back end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from ..backends.mounts import Receive
from ..dialects.base import AnswerContext
from ..errors import BadRequest, GatewayError, InternalError, quote
from ..events import Failed
from ..ids import new_id
from ..memory.connection import History
from ..pipeline.answer import Answer
from ..runtime import Runtime
from ..telemetry import Record
from ..types import Request
from ..wire.exact_json import encode
from .http_request import HttpRequest
from .reply import EventStream, Reply, answer_headers, debug_header

T = TypeVar("T")
_LAST_WORDS = 1.0  # seconds
# What HTTP clients send when the program sets no content type.
_DEFAULT_TYPES = ("application/x-www-form-urlencoded", "text/plain")


class ClientGone(Exception):
    """The client closed its connection."""


class Exchange:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        runtime: Runtime,
        record: Record,
        interval: float,
        owner: str = "",
        history: History | None = None,
    ) -> None:
        self._owner = owner
        self._history = history
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
        is_gone = False

        def disconnect() -> None:
            nonlocal is_gone
            if not self._is_ending:  # else the server reports the end of the response
                is_gone = True
                task.cancel()

        unwatch = _watch(receive, disconnect, self._loop)
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
            unwatch()
            if self._answer is not None:
                await self._answer.release()

    async def _whole(self, request: Request, reply: Reply) -> None:
        answer = self._answer = await self._runtime.step(request, self._record, self._owner, self._history)
        pieces: list[bytes] = []

        async def gather(wire: bytes) -> None:
            pieces.append(wire)

        await answer.run(gather)
        if answer.error is not None:
            raise answer.error.fresh()
        self._note_first_byte()
        self._is_ending = True
        extra = answer_headers(answer.headers, answer.losses)
        if self._record.is_debugged:
            extra.append(debug_header(answer.report()))
        await reply.whole(200, b"".join(pieces), "application/json", extra)

    async def _stream(self, request: Request, reply: Reply) -> None:
        stream = EventStream(self._loop, reply, self._interval)
        try:
            answer = self._answer = await self._runtime.step(request, self._record, self._owner, self._history)
            stream.headers += answer_headers(answer.headers, answer.losses)
            await self._pump(answer, stream)
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
        self._record.status = 200
        self._record.fail(error)
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


def _watch(receive: Receive, disconnect: Callable[[], None], loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Call disconnect() when the client has disconnected, until the function that is returned is called."""
    if isinstance(receive, HttpRequest):
        return receive.watch(disconnect)
    end = asyncio.ensure_future(receive(), loop=loop)
    end.add_done_callback(lambda done: None if done.cancelled() else disconnect())
    return end.cancel  # type: ignore[return-value] # what it returns does not matter


async def while_here(receive: Receive, work: Coroutine[Any, Any, T], stop: Callable[[], None] | None = None) -> T:
    """The result of work. When the client disconnects first, the work is cancelled and ClientGone raised after it has ended. When the
    server shuts down, stop() is called, and the work gets a moment to end by itself."""
    working, disconnecting = asyncio.ensure_future(work), asyncio.ensure_future(receive())
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


def check_type(headers: Mapping[str, str]) -> None:
    """Requires JSON. A program may also send the content types of `curl -d`. A web page may not: browsers send those without a
    CORS preflight."""
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    is_json = not kind or kind == "application/json" or kind.endswith("+json")
    if not is_json and not (kind in _DEFAULT_TYPES and not _is_of_page(headers)):
        raise BadRequest(
            f"the content type is {quote(kind)}; expected application/json.",
            status=415,
            code="unsupported_media_type",
            where="content-type",
        )
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise BadRequest(
            f"the body is encoded as {quote(coding)}; expected plain JSON.",
            status=415,
            code="unsupported_media_type",
            where="content-encoding",
        )


def _is_of_page(headers: Mapping[str, str]) -> bool:
    """Browsers send one of these with every request that a page makes to this machine."""
    return any(name in ("origin", "referer") or name.startswith("sec-fetch-") for name in headers)


def with_model(body: bytes, model: str) -> bytes:
    """The body of a request without a model, with this model as its first member."""
    rest = body.lstrip()[1:].lstrip()
    return b'{"model":' + encode(model) + (b"" if rest.startswith(b"}") else b",") + rest


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    limit: int,
    seconds: float,
    loop: asyncio.AbstractEventLoop | None = None,
) -> bytes:
    length = headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    if isinstance(receive, HttpRequest) and (body := receive.take_body()) is not None:
        if len(body) > limit:
            raise _too_large(limit)
        return body
    running = loop or asyncio.get_running_loop()
    task = asyncio.current_task(running)
    assert task is not None
    is_late = False

    def stop() -> None:
        nonlocal is_late
        is_late = True
        task.cancel()

    timer = running.call_later(seconds, stop)  # lighter than asyncio.timeout, and every request passes here
    pieces: list[bytes] = []
    size = 0
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(piece)
            if not message.get("more_body"):
                return b"".join(pieces) if len(pieces) > 1 else piece
    except asyncio.CancelledError:
        if not is_late:
            raise
        task.uncancel()
        raise BadRequest(
            f"the body did not arrive within {seconds:g} seconds.", status=408, code="request_timeout"
        ) from None
    finally:
        timer.cancel()


def _too_large(limit: int) -> BadRequest:
    return BadRequest(
        f"the body is larger than {limit // (1 << 20)} MB.",
        status=413,
        code="request_too_large",
        hint="[server] max_body_mb sets the limit.",
    )
