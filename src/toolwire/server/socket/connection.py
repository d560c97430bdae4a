"""One connection of Responses over WebSocket.

Requests of one lane (stream_id, or none) are answered one after the other, lanes at the same time. Closing the connection cancels
what is being answered. A connection that is too old, or whose server shuts down, ends when its last answer is complete.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec import Struct

from ...backends.mounts import Receive, Send
from ...dialects.base import AnswerContext, Decode
from ...dialects.responses import DIALECT
from ...errors import BadRequest, GatewayError
from ...events import Finished, Started
from ...ids import new_id
from ...memory.answers import AnswerMemory
from ...memory.connection import ConnectionMemory, History, LaneMemory
from ...offload import LARGE, offload
from ...telemetry import Record
from ...types import Choice, Request, Usage
from ..exchange import ClientGone
from .create import Create, Steer, decode_create, read_message, request_headers
from .reply import SocketReply
from .requests import PATHS

GOING_AWAY = 1001  # clients reconnect
_NORMAL = 1000
_MAX_ACTIVE = 16
_MAX_NAMED = 32
_LAST_SECONDS = 1.0  # in which the answers of a closed connection are cancelled
_NO_OUTPUT = Finished(choices=(Choice(reason="stop"),), usage=Usage())

Respond: TypeAlias = Callable[[Decode, Mapping[str, str], Receive, SocketReply, Record, History], Awaitable[None]]


class SocketSettings(Struct, frozen=True, kw_only=True):
    """respond answers one request, and sends its errors to the reply. decode reads a body, with the default model."""

    respond: Respond
    decode: Callable[[Decode, bytes, Mapping[str, str]], Awaitable[Request]]
    answers: AnswerMemory
    max_bytes: int  # of the requests that wait, and of the histories that are remembered
    max_seconds: float = 3600.0
    ping_seconds: float = 30.0


class ResponsesConnection:
    def __init__(self, settings: SocketSettings, headers: Mapping[str, str], receive: Receive, send: Send) -> None:
        self._settings = settings
        self._headers = request_headers(headers)
        self._receive = receive
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._memory = ConnectionMemory(settings.answers, settings.max_bytes)
        self._waiting: dict[str, deque[Create]] = {}  # by lane; a lane that answers has an entry
        self._lanes: dict[str, LaneMemory] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._held = 0  # bytes of waiting requests
        self._closed = asyncio.Event()
        self._last: BadRequest | None = None  # why no more requests are accepted
        self._is_leaving = False

    async def run(self, leaving: asyncio.Event) -> None:
        """leaving is set when the server shuts down."""
        timers = [
            self._loop.create_task(self._expire()),
            self._loop.create_task(self._leave(leaving)),
            self._loop.create_task(self._ping()),
        ]
        try:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                await self._hear(message["text"])
        finally:
            self._closed.set()
            for timer in timers:
                timer.cancel()
            if self._tasks:  # the answers notice it by themselves
                await asyncio.wait(set(self._tasks), timeout=_LAST_SECONDS)
            for task in self._tasks:
                task.cancel()

    async def _hear(self, text: str) -> None:
        try:
            message = await offload(read_message, text) if len(text) > LARGE else read_message(text)
            if isinstance(message, Steer):
                await SocketReply(self._send, new_id("req_"), message.stream_id).event(_not_steered(message))
            else:
                self._submit(message)
        except BadRequest as error:
            await self._tell(error)
        except ClientGone:
            pass

    def _submit(self, create: Create) -> None:
        """Raises BadRequest for one request too many."""
        if self._last is not None:
            raise self._last.fresh()
        lane = create.stream_id
        if lane and lane not in self._lanes and sum(1 for name in self._lanes if name) >= _MAX_NAMED:
            raise _too_many(f"{_MAX_NAMED} lanes", "invalid_stream_id", lane)
        if lane in self._waiting:
            if self._held + len(create.body) > self._settings.max_bytes:
                raise _too_many("that many requests to wait", "too_many_requests", lane)
            self._held += len(create.body)
            self._waiting[lane].append(create)
            return
        if len(self._waiting) >= _MAX_ACTIVE:
            raise _too_many(f"{_MAX_ACTIVE} lanes to answer at the same time", "too_many_requests", lane)
        self._lanes.setdefault(lane, LaneMemory(self._memory, lane))
        self._waiting[lane] = deque()
        task = self._loop.create_task(self._work(create))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, create: Create) -> None:
        """Answer the requests of a lane until none waits."""
        waiting = self._waiting[create.stream_id]
        try:
            await self._answer(create)
            while waiting and not self._closed.is_set():
                following = waiting.popleft()
                self._held -= len(following.body)
                await self._answer(following)
        except ClientGone:
            self._closed.set()
        finally:
            del self._waiting[create.stream_id]
            if self._last is not None or self._is_leaving:
                await self._end_idle()

    async def _answer(self, create: Create) -> None:
        lane = self._lanes[create.stream_id]
        record = Record(request_id=new_id("req_"), path=PATHS[0], dialect=DIALECT.name, started=time.monotonic())
        reply = SocketReply(self._send, record.request_id, create.stream_id)
        if create.is_warm_up:
            await self._warm_up(create, lane, reply)
            return
        bodies = [create.body]

        async def receive() -> MutableMapping[str, Any]:
            if bodies:
                return {"type": "http.request", "body": bodies.pop(), "more_body": False}
            await self._closed.wait()
            return {"type": "http.disconnect"}

        await self._settings.respond(decode_create, self._headers, receive, reply, record, lane)
        if record.outcome == "error" and create.previous:
            lane.failed(create.previous)

    async def _warm_up(self, create: Create, lane: LaneMemory, reply: SocketReply) -> None:
        """The request is read and remembered; no back end is involved."""
        try:
            request = await self._settings.decode(decode_create, create.body, self._headers)
            answer_id = new_id("resp_")
            lane.prepare(request, answer_id)
        except GatewayError as error:
            lane.failed(create.previous)
            await reply.error(error)
            return
        now = int(time.time())
        context = AnswerContext(request=request, mint=new_id, now=now, is_kept=True, answer_id=answer_id)
        encoder = DIALECT.stream_encoder(context)
        wire = encoder.send(Started(id=answer_id, model=request.model)) + encoder.send(_NO_OUTPUT)
        await reply.send({"type": "http.response.body", "body": wire})

    async def _expire(self) -> None:
        await asyncio.sleep(self._settings.max_seconds)
        self._last = BadRequest(
            f"this connection is {self._settings.max_seconds / 60:g} minutes old, the most that it may be.",
            code="websocket_connection_limit_reached",
            hint="Open another one and send the whole input.",
            details={"type": "invalid_request_error"},
        )
        await self._end_idle()

    async def _leave(self, leaving: asyncio.Event) -> None:
        await leaving.wait()
        self._is_leaving = True
        await self._end_idle()

    async def _ping(self) -> None:
        """Routers forget connections on which nothing moves."""
        while True:
            await asyncio.sleep(self._settings.ping_seconds)
            await self._send({"type": "websocket.ping"})

    async def _tell(self, error: BadRequest) -> None:
        lane = str(error.details.pop("stream_id", ""))
        with suppress(ClientGone):
            await SocketReply(self._send, new_id("req_"), lane).error(error)

    async def _end_idle(self) -> None:
        """Close the connection if nothing is being answered; else the end of the last answer does."""
        if self._waiting or self._closed.is_set():
            return
        if self._last is not None:
            await self._tell(self._last.fresh())
        await self._send({"type": "websocket.close", "code": GOING_AWAY if self._is_leaving else _NORMAL})


def _not_steered(steer: Steer) -> dict[str, Any]:
    return {
        "type": "response.steer.failed",
        "error": {"code": "steering_not_supported", "message": "this gateway does not steer running responses."},
        "steer": {"input": steer.input},
    }


def _too_many(what: str, code: str, lane: str) -> BadRequest:
    return BadRequest(
        f"this connection does not allow more than {what}.",
        status=429 if code == "too_many_requests" else 400,
        code=code,
        details={"stream_id": lane} if lane else None,
    )
