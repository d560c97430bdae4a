"""One model request: read it, run it, answer it; the client may leave at any moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from ..dialects import Dialect
from ..dialects.base import Context
from ..errors import GatewayError
from ..events import Failed
from ..runtime import Runtime, Step, mint
from ..telemetry import Record
from ..types import Loss, Request
from .body import ClientGone, Receive, Send
from .outlet import Outlet

HeaderList = list[tuple[bytes, bytes]]
_MAX_LOSS_HEADER = 1000


class Exchange:
    """Between the routing of a request and its last byte."""

    def __init__(self, runtime: Runtime, dialect: Dialect, record: Record, interval: float) -> None:
        self._runtime = runtime
        self._dialect = dialect
        self._record = record
        self._interval = interval

    async def run(self, request: Request, receive: Receive, send: Send, headers: HeaderList) -> None:
        """Raises GatewayError while nothing has been sent, ClientGone when the client has left."""
        task = asyncio.current_task()
        assert task is not None
        watcher = asyncio.ensure_future(receive())
        gone = False

        def leave(_: object) -> None:
            nonlocal gone
            gone = True
            task.cancel()

        watcher.add_done_callback(leave)
        try:
            if request.stream:
                await self._stream(request, send, headers)
            else:
                await self._whole(request, send, headers)
        except asyncio.CancelledError:
            if not gone:
                raise
            task.uncancel()
            raise ClientGone from None
        finally:
            watcher.remove_done_callback(leave)
            watcher.cancel()

    async def _whole(self, request: Request, send: Send, headers: HeaderList) -> None:
        step = await self._runtime.step(request, self._record)
        try:
            body = b"".join([wire async for wire in step.chunks()])
        finally:
            await step.release()
        if step.error is not None:
            raise step.error
        self._record.status = 200
        self._record.first_byte = time.monotonic()
        head = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *headers,
            *seen_headers(step.headers),
            *loss_header(step.losses),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, request: Request, send: Send, headers: HeaderList) -> None:
        outlet = Outlet(send, list(headers), self._dialect.heartbeat(), self._interval)
        step: Step | None = None
        try:
            step = await self._runtime.step(request, self._record)
            outlet.add_headers(seen_headers(step.headers) + loss_header(step.losses))
            await self._pump(step, outlet)
        except GatewayError as error:
            if not outlet.is_started:
                raise
            self._record.outcome, self._record.error = "error", error.code
            context = Context(request=request, mint=mint, now=int(time.time()))
            await outlet.write(self._dialect.encoder(context).send(Failed(error=error)), is_last=True)
        finally:
            outlet.close()
            if step is not None:
                await step.release()

    async def _pump(self, step: Step, outlet: Outlet) -> None:
        is_first = True
        async for wire in step.chunks():
            if is_first:
                if step.error is not None and not step.has_content and not outlet.is_started:
                    raise step.error
                is_first = False
                self._record.status = 200
                self._record.first_byte = time.monotonic()
            await outlet.write(wire, is_last=step.is_over)
            if step.is_over:
                return
        await outlet.write(b"", is_last=True)


def seen_headers(headers: Mapping[str, str]) -> HeaderList:
    """The back end's headers that a client may want; its request id keeps apart from ours."""
    return [
        (
            f"x-upstream-{name}".encode() if name.endswith("request-id") else name.encode(),
            value.encode("latin-1", "replace"),
        )
        for name, value in headers.items()
    ]


def loss_header(losses: list[Loss]) -> HeaderList:
    """What could not be carried over, counted by feature and bounded."""
    if not losses:
        return []
    counts: dict[str, int] = {}
    for loss in losses:
        counts[loss.feature] = counts.get(loss.feature, 0) + 1
    words = ", ".join(f"{feature};n={count}" if count > 1 else feature for feature, count in counts.items())
    return [(b"x-toolwire-loss", words.encode("ascii", "replace")[:_MAX_LOSS_HEADER])]
