"""One app-server: matches responses to our requests by id, and passes all other messages to their threads.

Its own requests use a separate id space. When it ends, every open request fails and every thread gets a SessionLost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeAlias

from msgspec import Struct

from ...telemetry import wire_trace
from ...types import Json, JsonObject
from ...wire import json_rpc as rpc
from ..sessions import SessionLost


class AppServerChannel(Protocol):
    """Messages are JSON texts, one a line in both directions."""

    @property
    def pid(self) -> int:
        """Of the process whose memory counts; 0 where it is not ours."""

    async def send(self, line: bytes) -> None:
        """Raises SessionLost when the process no longer reads."""

    async def receive(self) -> bytes:
        """The bytes received so far, in pieces of any size; b"" at the end."""

    def story(self) -> str:
        """Why it ended, as a message for every client: without secrets, and without content of other requests."""

    def skipped_tools(self) -> frozenset[str]:
        """CodexToolNames of clients' tools that its log says it did not offer to the model; empty where there is no log to read."""

    def last_words(self) -> str:
        """The end of its log, for the owner's log only; "" where there is none."""

    async def close(self) -> None:
        """Stops the process, which has exited when this returns. Safe to call twice."""


class Declined(Struct, frozen=True):
    """A request of the app-server that was declined, because no person can answer it."""

    method: str
    params: JsonObject


Heard: TypeAlias = rpc.RpcNotification | rpc.RpcRequest | Declined | SessionLost
Answerer: TypeAlias = Callable[[rpc.RpcRequest], JsonObject]  # the whole message that answers a request

ANSWER_SECONDS = 60.0
_MOST_WAITING = 200_000  # unread messages of one thread
_MOST_BYTES = 256 << 20  # size of these messages
_MOST_ANSWERS = 1000  # replies of ours that it has not read
_MOST_GARBLED = 1000  # lines in a row: then it is some other program
_LONGEST_REASON = 1000  # letters
_TOOL_CALL = "item/tool/call"
_NOISE = "codex/event/"  # 0.89 repeats every message in an older format


class RequestRefused(Exception):
    """The app-server answered a request with an error; the text is its own."""

    def __init__(self, method: str, error: JsonObject) -> None:
        message = error.get("message")
        super().__init__(message[:_LONGEST_REASON] if message and isinstance(message, str) else "no reason given")
        self.method = method
        self.error = error


class Thread:
    """One conversation there: what is said of it, in order. After a SessionLost nothing comes."""

    def __init__(self, result: JsonObject) -> None:
        found = result.get("thread")
        self.about: JsonObject = found if isinstance(found, dict) else {}
        id = self.about.get("id")
        self.id = id if isinstance(id, str) else ""
        self._heard: asyncio.Queue[Heard] = asyncio.Queue()
        self._bytes = 0  # of what waits, as it was on the wire
        self._is_full = False
        self.request_id = ""  # of the current request, for the trace

    async def next(self) -> Heard:
        """For one at a time."""
        message = await self._heard.get()
        if self._heard.empty():
            self._bytes = 0
        return message

    def ready(self) -> list[Heard]:
        """All messages so far, without waiting."""
        found = []
        with suppress(asyncio.QueueEmpty):
            while True:
                found.append(self._heard.get_nowait())
        self._bytes = 0
        return found

    def hear(self, message: Heard, size: int = 0) -> None:
        if self._is_full:
            return
        self._bytes += size
        self._is_full = self._heard.qsize() >= _MOST_WAITING or self._bytes > _MOST_BYTES
        if self._is_full:
            message = SessionLost("the answer came faster than it was read, and there was no more room for it.")
        self._heard.put_nowait(message)


class _Pending(Struct, eq=False):
    method: str
    future: asyncio.Future[Json]
    opens: bool = False
    request_id: str = ""


class AppServerWorker:
    """Made with a channel that is open; introduce() comes first. name: of the back end, for the trace."""

    def __init__(self, channel: AppServerChannel, answerer: Answerer, name: str = "codex") -> None:
        self.channel = channel
        self._name = name
        self.about: JsonObject = {}  # what it said of itself
        self.limits: JsonObject = {}  # what the account may still use, as it was told last
        self.fault: SessionLost | None = None
        self.opened = 0  # threads so far
        self.can_keep = True  # threads that can be taken back, until it has refused one
        self._answerer = answerer
        self._pending: dict[rpc.Id, _Pending] = {}
        self._threads: dict[str, Thread] = {}
        self._last_id = 0
        self._garbled = 0  # lines since the last message
        self._answering: set[asyncio.Task[None]] = set()
        self._reading = asyncio.create_task(self._read())

    @property
    def is_alive(self) -> bool:
        return self.fault is None

    async def introduce(self, params: JsonObject, seconds: float) -> None:
        """Raises SessionLost, RequestRefused or TimeoutError."""
        about = await self.ask("initialize", params, seconds)
        self.about = about if isinstance(about, dict) else {}
        await self._send(rpc.notification("initialized"))

    async def ask(self, method: str, params: JsonObject, seconds: float = ANSWER_SECONDS) -> Json:
        """Raises SessionLost, RequestRefused or TimeoutError."""
        return await self._ask(method, params, seconds, opens=False)

    async def open(self, method: str, params: JsonObject, seconds: float = ANSWER_SECONDS) -> Thread:
        """A request whose response is a thread, which gets all further messages about it."""
        thread: Thread = await self._ask(method, params, seconds, opens=True)
        return thread

    async def reply(self, id: rpc.Id, value: Json, seconds: float = ANSWER_SECONDS) -> None:
        """Raises SessionLost or TimeoutError."""
        async with asyncio.timeout(seconds):
            await self._send(rpc.result(id, value))

    def drop(self, thread: Thread) -> None:
        """Ignores further messages of this thread."""
        self._threads.pop(thread.id, None)

    async def close(self) -> None:
        await self.channel.close()
        for task in (self._reading, *self._answering):
            task.cancel()
        await asyncio.gather(self._reading, *self._answering, return_exceptions=True)
        self._end(SessionLost("the gateway stopped this app-server."))

    async def _ask(self, method: str, params: JsonObject, seconds: float, *, opens: bool) -> Json:
        if self.fault is not None:
            raise SessionLost(str(self.fault))
        self._last_id += 1
        pending = _Pending(method, asyncio.get_running_loop().create_future(), opens, wire_trace.request_id())
        self._pending[id := self._last_id] = pending
        try:
            async with asyncio.timeout(seconds):
                await self._send(rpc.request(id, method, params))
                return await pending.future
        finally:
            self._pending.pop(id, None)
            _look_at(pending.future)

    async def _send(self, message: JsonObject) -> None:
        line = rpc.encode(message)
        if wire_trace.active:
            kind = str(message.get("method") or "an answer")
            wire_trace.sent(self._name, kind, message, size=len(line))
        await self.channel.send(line)

    async def _read(self) -> None:
        """Until it ends or sends invalid data; the pool then closes a process that still runs."""
        lines = rpc.LineReader()
        while data := await self.channel.receive():
            for message in lines.feed(data):
                if not self._took(message, lines.size):
                    return
        self._end(SessionLost(self.channel.story()))

    def _took(self, message: rpc.Incoming, size: int) -> bool:
        if wire_trace.active:
            self._trace(message, size)
        self._take(message, size)
        return self.is_alive

    def _trace(self, message: rpc.Incoming, size: int) -> None:
        match message:
            case rpc.RpcResponse():
                pending = self._pending.get(message.id)
                kind = f"an answer to {pending.method}" if pending is not None else "an answer"
                request = pending.request_id if pending is not None else ""
                found: JsonObject = {"id": message.id, "error": message.error, "result": message.result}
            case rpc.RpcNotification() | rpc.RpcRequest():
                if message.method.startswith(_NOISE):
                    return
                thread = self._thread(message.params)
                kind, request = message.method, thread.request_id if thread is not None else ""
                found = message.params
            case rpc.BadLine():
                kind, request, found = "something that is no message", "", {"why": message.why}
        wire_trace.received(self._name, kind, found, size=size, request=request)

    def _take(self, message: rpc.Incoming, size: int) -> None:
        self._garbled = self._garbled + 1 if isinstance(message, rpc.BadLine) else 0
        match message:
            case rpc.RpcResponse():
                self._settle(message)
            case rpc.RpcNotification():
                self._tell(message, size)
            case rpc.RpcRequest():
                self._hear_request(message, size)
            case rpc.BadLine() if message.is_lost or self._garbled > _MOST_GARBLED:
                self._end(SessionLost(f"it does not write what an app-server does: {message.why}."))
            case rpc.BadLine():
                pass  # a line that some library of theirs has printed

    def _settle(self, answer: rpc.RpcResponse) -> None:
        pending = self._pending.pop(answer.id, None)
        if pending is None or pending.future.done():
            return
        if answer.error is not None:
            pending.future.set_exception(RequestRefused(pending.method, answer.error))
        elif not pending.opens:
            pending.future.set_result(answer.result)
        else:
            self._open(pending, Thread(answer.result if isinstance(answer.result, dict) else {}))

    def _open(self, pending: _Pending, thread: Thread) -> None:
        self.opened += 1
        if not thread.id or thread.id in self._threads:
            error = {"message": "the answer names no thread, or one that is open already."}
            pending.future.set_exception(RequestRefused(pending.method, error))
            return
        self._threads[thread.id] = thread
        thread.request_id = pending.request_id
        pending.future.set_result(thread)

    def _thread(self, params: JsonObject) -> Thread | None:
        id = params.get("threadId")
        return self._threads.get(id) if isinstance(id, str) else None

    def _tell(self, told: rpc.RpcNotification, size: int) -> None:
        if told.method.startswith(_NOISE):
            return
        if (thread := self._thread(told.params)) is not None:
            thread.hear(told, size)
        elif told.method == "account/rateLimits/updated":
            self.limits = told.params

    def _hear_request(self, asked: rpc.RpcRequest, size: int) -> None:
        """Passes a tool call to its thread and answers every other request at once."""
        thread = self._thread(asked.params)
        if asked.method == _TOOL_CALL and thread is not None:
            thread.hear(asked, size)
            return
        self.answer(self._answerer(asked))
        if thread is not None:
            thread.hear(Declined(asked.method, asked.params), size)

    def answer(self, message: JsonObject) -> None:
        """Sends it in the background."""
        if len(self._answering) >= _MOST_ANSWERS:
            self._end(SessionLost("it asks without reading what it is answered."))
            return
        task = asyncio.create_task(self._answer(message))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, message: JsonObject) -> None:
        with suppress(SessionLost):
            await self._send(message)

    def _end(self, fault: SessionLost) -> None:
        if self.fault is not None:
            return
        self.fault = fault
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(SessionLost(str(fault)))
        for thread in self._threads.values():
            thread.hear(fault)
        self._threads.clear()


def _look_at(future: asyncio.Future[Json]) -> None:
    """Marks an exception as retrieved, so that asyncio does not log it."""
    if future.done() and not future.cancelled():
        future.exception()
