"""RunSSE and BidiAppend: a run in two halves over plain HTTP/1.1, for networks that carry nothing else.

The reply of RunSSE is the one half: it stays open for the whole run. The other is a short request for every message, numbered from 0
without a hole, heartbeats included; one at a time, so that they arrive in order. A message of which nobody knows whether it arrived
is the end of the run: neither leaving out nor repeating a number is safe. But a run that has just ended refuses what was on its
way to it, so a message that fails does not cut the reply short: what it still says comes first, and for a moment it is waited for.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ....errors import UpstreamError
from ....wire.connect import BadConnectStream, ConnectDecoder, ConnectEnd, ConnectFrame, frame
from ...http.connection import TransportError
from ...http.transport import Response, Timeouts, Transport
from ..wire import agent
from .channel import Gone, RunChannel
from .run_http2 import ended
from .target import APPEND, RUN_SSE, Attempt, ServiceTarget, check, garbage, headers_of, judged, unary

# Seconds that the first message gives RunSSE to arrive, where the server is silent until there is news.
_HEAD_START = 0.25
_LAST_WORDS = 1.0  # seconds that the reply has to end by itself where a message has failed
_OVER = 404  # the status of a message to a run that is no more
_APPENDING = 60.0  # seconds, and one more for each of
_SLOWEST = 128 * 1024  # bytes
_HEARTBEAT = ConnectFrame(b"\x0a\x02\x6a\x00")  # which comes on and on, also where no message arrives any more


class SseChannel:
    """A RunChannel in two halves; made by open_sse()."""

    how = "sse"

    def __init__(self, transport: Transport, target: ServiceTarget, attempt: Attempt) -> None:
        self._transport = transport
        self._target = target
        self._attempt = attempt
        self._decoder = ConnectDecoder()
        self._number = 0
        self._sending = asyncio.Lock()
        self._error: UpstreamError | None = None
        self._response: Response | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._appending: asyncio.Task[None] | None = None
        self._waited = 0.0  # seconds since a message failed, without a word of the server's but heartbeats
        self._failed: asyncio.Future[UpstreamError] = asyncio.get_running_loop().create_future()
        # Whoever waits for it may be cancelled, it is not: a read that is cancelled takes the connection with it.
        self._reading: asyncio.Task[bytes] = asyncio.create_task(self._begin(headers_of(target, attempt, "stream")))

    async def start(self, first: bytes) -> None:
        signs: list[asyncio.Future[Any]] = [self._reading, self._opened]
        await asyncio.wait(signs, timeout=_HEAD_START, return_when=asyncio.FIRST_COMPLETED)
        if self._response is None and self._reading.done():
            self._fail(_failure_of(self._reading))
        await self.send(first)

    async def send(self, message: bytes) -> None:
        """One that is cancelled is delivered all the same, before the next. One that fails is told by receive()."""
        async with self._sending:
            await self._delivered()
            if self._error is None and not self._failed.done():
                self._appending = asyncio.create_task(self._append(message, self._number))
                self._number += 1
                await self._delivered()
        if self._error is not None:
            raise Gone(self._error)

    async def receive(self) -> list[ConnectFrame | ConnectEnd]:
        while True:
            if self._decoder.is_ended:
                raise Gone(ended())
            data = await self._read()
            if not data and (reason := self._reason) is not None:
                self._fail(reason)
                raise Gone(reason)
            try:
                items: list[ConnectFrame | ConnectEnd] = self._decoder.feed(data) if data else [*self._decoder.close()]
            except BadConnectStream as broken:
                self._fail(garbage(broken))
                raise Gone(garbage(broken)) from None
            if any(item != _HEARTBEAT for item in items):
                self._waited = 0.0
            if items:
                return items

    def abort(self) -> None:
        self._fail(UpstreamError("the run was given up on this side.", status=502, code="upstream_cut"))

    async def close(self) -> None:
        self.abort()
        tasks = [task for task in (self._reading, self._appending) if task is not None and not task.done()]
        if tasks:
            await asyncio.wait(tasks)

    async def _read(self) -> bytes:
        signs: list[asyncio.Future[Any]] = [self._reading, self._failed]
        await asyncio.wait(signs, return_when=asyncio.FIRST_COMPLETED)
        if not self._reading.done():
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.wait([self._reading], timeout=max(0.0, _LAST_WORDS - self._waited))
            self._waited += loop.time() - began
        if not self._reading.done():
            self._fail(self._failed.result())
        if self._error is not None:
            raise Gone(self._error)
        if self._reading.cancelled() or self._reading.exception() is not None:
            error = self._reason or _failure_of(self._reading)
            self._fail(error)
            raise Gone(error)
        data = self._reading.result()
        if data and self._response is not None:
            self._reading = asyncio.create_task(self._response.read())
        return data

    @property
    def _reason(self) -> UpstreamError | None:
        """Why a message failed, where that is more than the news that the run is over."""
        error = self._failed.result() if self._failed.done() else None
        return error if error is not None and error.status != _OVER else None

    async def _begin(self, headers: dict[str, str]) -> bytes:
        """RunSSE up to the first bytes of its reply."""
        body = frame(agent.BidiRequestId(request_id=self._attempt.request_id).SerializeToString())
        target = self._target
        timeouts = Timeouts(
            connect=target.connect_timeout, first_byte=target.first_byte_timeout, idle=target.idle_timeout
        )
        response = await self._transport.send("POST", target.url(RUN_SSE), headers, body, timeouts=timeouts)
        await check(response)
        self._response = response
        self._opened.set_result(None)
        return await response.read()

    async def _append(self, message: bytes, number: int) -> None:
        request = agent.BidiAppendRequest(
            data=message.hex(),
            request_id=agent.BidiRequestId(request_id=self._attempt.request_id),
            append_seqno=number,
        )
        body = request.SerializeToString()
        seconds = _APPENDING + len(body) / _SLOWEST
        try:
            await unary(self._transport, self._target, self._attempt, APPEND, body, seconds=seconds)
        except UpstreamError as error:
            self._failed.set_result(error)

    async def _delivered(self) -> None:
        """The message that is on its way has arrived, or the run has failed."""
        if self._appending is not None:
            await asyncio.wait([self._appending])
            if not self._appending.cancelled():
                self._appending.result()

    def _fail(self, error: UpstreamError) -> None:
        """The first reason counts; both halves end."""
        if self._error is not None:
            return
        self._error = error
        for task in (self._reading, self._appending):
            if task is None or task is asyncio.current_task():
                continue
            task.cancel()
            task.add_done_callback(_look_at)
        if self._response is not None:
            self._response.abort()


async def open_sse(transport: Transport, target: ServiceTarget, attempt: Attempt, first: bytes) -> RunChannel:
    """The run, with its first message delivered. Raises Gone; what the server says against it may also come with receive()."""
    channel = SseChannel(transport, target, attempt)
    try:
        await channel.start(first)
    except BaseException:
        await channel.close()
        raise
    return channel


def _failure_of(task: asyncio.Task[bytes]) -> UpstreamError:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, TransportError):
        return judged(error)
    if isinstance(error, UpstreamError):
        return error
    if error is not None:
        raise error
    return ended()


def _look_at(task: asyncio.Task[Any]) -> None:
    """A failure that nobody waits for any more is not to be complained about."""
    if not task.cancelled():
        task.exception()
