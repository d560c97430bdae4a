"""The sse transport: a run in two halves over HTTP/1.1 (RunSSE and BidiAppend), for networks without HTTP/2.

The reply of RunSSE stays open for the whole run. Each message to the server is a request of its own, numbered from 0 without gaps,
heartbeats included, and sent one at a time to keep the order. If it is unknown whether a message arrived, the run ends: neither
skipping nor repeating a number is safe. But a run that has just ended refuses messages that were on the way, so a failed message does
not cut the reply: for a moment the reply may still send its last messages.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ....config.file import BackendConfig
from ....errors import UpstreamError
from ....wire.connect import ConnectEnd, ConnectFrame, frame
from ...http.connection import TransportError
from ...http.transport import Response, Timeouts, Transport
from ..wire import agent
from .channel import RunChannel, run_ended
from .target import APPEND, RUN_SSE, Attempt, check_response, headers_of, ignore_failure, unary, url_of, with_retryable

# Seconds that the first message waits for RunSSE, in case the server sends no header until there is data.
_HEAD_START = 0.25
_REPLY_SECONDS = 1.0  # for the reply to end by itself after a message failed
_ENDED = 404  # the status for a message to a run that has ended
_APPEND_SECONDS = 60.0  # and one more for each
_BYTES_PER_SECOND = 128 * 1024
_HEARTBEAT = ConnectFrame(b"\x0a\x02\x6a\x00")  # sent even if no message arrives any more


class SseChannel(RunChannel):
    """A run in two halves; created by open_sse()."""

    how = "sse"

    def __init__(self, transport: Transport, config: BackendConfig, attempt: Attempt) -> None:
        super().__init__(config.name)
        self._transport = transport
        self._config = config
        self._attempt = attempt
        self._number = 0
        self._sending = asyncio.Lock()
        self._error: UpstreamError | None = None
        self._response: Response | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._appending: asyncio.Task[None] | None = None
        self._waited = 0.0  # seconds since a message failed in which only heartbeats came
        self._failed: asyncio.Future[UpstreamError] = asyncio.get_running_loop().create_future()
        # A task of its own, because cancelling a read closes the connection.
        self._reading: asyncio.Task[bytes] = asyncio.create_task(self._begin(headers_of(config, attempt, "stream")))

    async def start(self, first: bytes) -> None:
        signs: list[asyncio.Future[Any]] = [self._reading, self._opened]
        await asyncio.wait(signs, timeout=_HEAD_START, return_when=asyncio.FIRST_COMPLETED)
        if self._response is None and self._reading.done():
            self.fail(_failure_of(self._reading) or run_ended())
        await self.send(first)

    async def write(self, message: bytes) -> None:
        """A cancelled message is still delivered, before the next one. receive() reports a failed one."""
        async with self._sending:
            await self._delivered()
            if self._error is None and not self._failed.done():
                self._appending = asyncio.create_task(self._append(message, self._number))
                self._number += 1
                await self._delivered()
        if self._error is not None:
            raise self._error.fresh()

    async def receive(self) -> list[ConnectFrame | ConnectEnd]:
        items = await super().receive()
        if any(item != _HEARTBEAT for item in items):
            self._waited = 0.0
        return items

    async def close(self) -> None:
        self.abort()
        tasks = [task for task in (self._reading, self._appending) if task is not None and not task.done()]
        if tasks:
            await asyncio.wait(tasks)

    async def read(self) -> bytes:
        signs: list[asyncio.Future[Any]] = [self._reading, self._failed]
        await asyncio.wait(signs, return_when=asyncio.FIRST_COMPLETED)
        if not self._reading.done():
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.wait([self._reading], timeout=max(0.0, _REPLY_SECONDS - self._waited))
            self._waited += loop.time() - began
        if not self._reading.done():
            self.fail(self._failed.result())
        if self._error is not None:
            raise self._error.fresh()
        data = b"" if self._reading.cancelled() or self._reading.exception() else self._reading.result()
        if not data and (error := self._reason or _failure_of(self._reading)):
            self.fail(error)
            raise error.fresh()
        if data and self._response is not None:
            self._reading = asyncio.create_task(self._response.read())
        return data

    @property
    def _reason(self) -> UpstreamError | None:
        """Why a message failed, unless the run had just ended."""
        error = self._failed.result() if self._failed.done() else None
        return error if error is not None and error.status != _ENDED else None

    async def _begin(self, headers: dict[str, str]) -> bytes:
        """Open RunSSE, up to the first bytes of its reply."""
        body = frame(agent.BidiRequestId(request_id=self._attempt.request_id).SerializeToString())
        config = self._config
        timeouts = Timeouts(
            connect=config.connect_timeout, first_byte=config.first_byte_timeout, idle=config.idle_timeout
        )
        response = await self._transport.send("POST", url_of(config, RUN_SSE), headers, body, timeouts=timeouts)
        await check_response(response)
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
        seconds = _APPEND_SECONDS + len(body) / _BYTES_PER_SECOND
        try:
            await unary(self._transport, self._config, self._attempt, APPEND, body, seconds=seconds)
        except UpstreamError as error:
            self._failed.set_result(error)

    async def _delivered(self) -> None:
        """Wait until the current message has arrived or failed."""
        if self._appending is not None:
            await asyncio.wait([self._appending])
            if not self._appending.cancelled():
                self._appending.result()

    def fail(self, error: UpstreamError) -> None:
        if self._error is not None:
            return
        self._error = error
        for task in (self._reading, self._appending):
            if task is None or task is asyncio.current_task():
                continue
            task.cancel()
            task.add_done_callback(ignore_failure)
        if self._response is not None:
            self._response.abort()


async def open_sse(transport: Transport, config: BackendConfig, attempt: Attempt, first: bytes) -> RunChannel:
    """The run, with its first message delivered. Raises UpstreamError; a refusal may also come with receive()."""
    channel = SseChannel(transport, config, attempt)
    try:
        await channel.start(first)
    except BaseException:
        await channel.close()
        raise
    return channel


def _failure_of(task: asyncio.Task[bytes]) -> UpstreamError | None:
    if task.cancelled():
        return run_ended()
    error = task.exception()
    if error is not None and not isinstance(error, UpstreamError):
        raise error
    return with_retryable(error) if isinstance(error, TransportError) else error
