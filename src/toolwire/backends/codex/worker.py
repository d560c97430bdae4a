"""One app-server: matches responses to our requests by id, and passes all other messages to their threads.

Its own requests use a separate id space. When it ends, every open request fails and every thread ends with a SessionLost.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol, TypeAlias

from msgspec import Struct

from ...telemetry import wire_trace
from ...types import Json, JsonObject
from ...wire import json_rpc as rpc
from ..sessions import BackgroundTasks, Inbox, SessionLost
from .wire.approvals import TOOL_CALL, decline


class AppServerChannel(Protocol):
    """Messages are JSON texts, one a line in both directions."""

    @property
    def pid(self) -> int:
        """Of the process whose memory counts; 0 where it is not ours."""

    async def send(self, line: bytes) -> None:
        """Raises SessionLost when the process no longer reads."""

    async def receive(self) -> bytes:
        """The bytes received so far, in pieces of any size; b"" at the end."""

    def exit_reason(self) -> str:
        """Why it ended, as a message for every client: without secrets, and without content of other requests."""

    def skipped_tools(self) -> frozenset[str]:
        """Tools of clients that it did not offer to the model, according to its log; empty if there is no log to read."""

    def last_output(self) -> str:
        """The end of its log, for the owner only; "" if there is none."""

    async def close(self) -> None:
        """Stops the process, which has exited when this returns. Safe to call twice."""


class Declined(Struct, frozen=True):
    """A request of the app-server that was declined, because no person can answer it."""

    method: str
    params: JsonObject


ThreadMessage: TypeAlias = rpc.RpcNotification | rpc.RpcRequest | Declined

RESPONSE_SECONDS = 60.0
_MAX_BYTES = 256 << 20  # of unread messages of one thread
_MAX_RESPONSES = 1000  # of ours that it has not read
_MAX_BAD_LINES = 1000  # in a row: then it is another program
_MAX_REASON = 1000  # characters
_REPEATED = "codex/event/"  # 0.89 repeats every message in an older format


class RequestRefused(Exception):
    """The app-server answered a request with an error; the text is its own."""

    def __init__(self, method: str, error: JsonObject) -> None:
        message = error.get("message")
        super().__init__(message[:_MAX_REASON] if message and isinstance(message, str) else "no reason given")
        self.method = method
        self.error = error


class Thread(Inbox[ThreadMessage]):
    """One conversation in Codex, with its unread messages. path: the file that Codex writes of it, "" if there is none.

    is_reusable: it can be reverted, and serve the next request. count: items that were injected into it. uses: requests so far.
    has_key: it has the client's own cache key.
    """

    def __init__(self, result: Json) -> None:
        thread = result.get("thread") if isinstance(result, dict) else None
        found = [thread.get(key) if isinstance(thread, dict) else None for key in ("id", "path")]
        id, self.path = (value if isinstance(value, str) else "" for value in found)
        super().__init__(id, _MAX_BYTES)
        self.is_reusable = self.has_key = False
        self.count = self.uses = 0


class _Pending(Struct, eq=False):
    method: str
    future: asyncio.Future[Json]
    opens: bool = False
    request_id: str = ""


class AppServerWorker:
    """Made with an open channel; introduce() comes first. name: of the back end, for the trace."""

    def __init__(self, channel: AppServerChannel, name: str = "codex") -> None:
        self.channel = channel
        self._name = name
        self.about: JsonObject = {}  # the result of initialize
        self.limits: JsonObject = {}  # the last rate limits of the account
        self.fault: SessionLost | None = None
        self.opened = 0  # threads so far
        self.can_store = True  # threads that can be reverted, until it has refused one
        self.can_set_session = True  # of a thread, until it has lost one by that
        self._pending: dict[rpc.Id, _Pending] = {}
        self._threads: dict[str, Thread] = {}
        self._last_id = 0
        self._bad_lines = 0  # since the last message
        self._responding = BackgroundTasks()
        self._reading = asyncio.create_task(self._read())

    @property
    def is_alive(self) -> bool:
        return self.fault is None

    async def introduce(self, params: JsonObject, seconds: float) -> None:
        """Raises SessionLost, RequestRefused or TimeoutError."""
        about = await self.ask("initialize", params, seconds)
        self.about = about if isinstance(about, dict) else {}
        await self._send(rpc.notification("initialized"))

    async def ask(self, method: str, params: JsonObject, seconds: float = RESPONSE_SECONDS) -> Json:
        """Raises SessionLost, RequestRefused or TimeoutError."""
        return await self._ask(method, params, seconds, opens=False)

    async def open(self, method: str, params: JsonObject, seconds: float = RESPONSE_SECONDS) -> Thread:
        """A request whose response is a thread, which gets all further messages about it."""
        thread: Thread = await self._ask(method, params, seconds, opens=True)
        return thread

    async def reply(self, id: rpc.Id, value: Json, seconds: float = RESPONSE_SECONDS) -> None:
        """Raises SessionLost or TimeoutError."""
        async with asyncio.timeout(seconds):
            await self._send(rpc.result(id, value))

    def respond(self, message: JsonObject) -> None:
        """Sends a response in the background."""
        if len(self._responding) >= _MAX_RESPONSES:
            self._end(SessionLost("it sends requests without reading the responses."))
        else:
            self._responding.start(self._respond(message))

    def drop(self, thread: Thread) -> None:
        """Ignores further messages of this thread."""
        self._threads.pop(thread.id, None)

    async def close(self) -> None:
        await self.channel.close()
        self._reading.cancel()
        await asyncio.gather(self._reading, self._responding.cancel(), return_exceptions=True)
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
            if pending.future.done() and not pending.future.cancelled():
                pending.future.exception()  # marks it as retrieved, so that asyncio does not log it

    async def _send(self, message: JsonObject) -> None:
        line = rpc.encode(message)
        if wire_trace.active:
            wire_trace.sent(self._name, str(message.get("method") or "an answer"), message, size=len(line))
        await self.channel.send(line)

    async def _respond(self, message: JsonObject) -> None:
        with suppress(SessionLost):
            await self._send(message)

    async def _read(self) -> None:
        """Until it ends or sends invalid data; the pool then closes a process that still runs."""
        lines = rpc.LineReader()
        while data := await self.channel.receive():
            for message in lines.feed(data):
                if wire_trace.active:
                    self._trace(message, lines.size)
                self._dispatch(message, lines.size)
                if not self.is_alive:
                    return
        self._end(SessionLost(self.channel.exit_reason()))

    def _trace(self, message: rpc.Incoming, size: int) -> None:
        match message:
            case rpc.RpcResponse():
                pending = self._pending.get(message.id)
                kind = f"an answer to {pending.method}" if pending is not None else "an answer"
                request = pending.request_id if pending is not None else ""
                found: JsonObject = {"id": message.id, "error": message.error, "result": message.result}
            case rpc.RpcNotification() | rpc.RpcRequest():
                if message.method.startswith(_REPEATED):
                    return
                thread = self._thread(message.params)
                kind, request = message.method, thread.request_id if thread is not None else ""
                found = message.params
            case rpc.BadLine():
                kind, request, found = "something that is no message", "", {"why": message.why}
        wire_trace.received(self._name, kind, found, size=size, request=request)

    def _dispatch(self, message: rpc.Incoming, size: int) -> None:
        self._bad_lines = self._bad_lines + 1 if isinstance(message, rpc.BadLine) else 0
        match message:
            case rpc.RpcResponse():
                self._take_response(message)
            case rpc.RpcNotification():
                self._take_notification(message, size)
            case rpc.RpcRequest():
                self._take_request(message, size)
            case rpc.BadLine() if message.is_lost or self._bad_lines > _MAX_BAD_LINES:
                self._end(SessionLost(f"it does not write what an app-server does: {message.why}."))
            case rpc.BadLine():
                pass  # a line that some library of theirs has printed

    def _take_response(self, response: rpc.RpcResponse) -> None:
        pending = self._pending.pop(response.id, None)
        if pending is None or pending.future.done():
            return
        if response.error is not None:
            pending.future.set_exception(RequestRefused(pending.method, response.error))
        elif not pending.opens:
            pending.future.set_result(response.result)
        else:
            self._open(pending, Thread(response.result))

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

    def _take_notification(self, message: rpc.RpcNotification, size: int) -> None:
        if message.method.startswith(_REPEATED):
            return
        if (thread := self._thread(message.params)) is not None:
            thread.put(message, size)
        elif message.method == "account/rateLimits/updated":
            self.limits = message.params

    def _take_request(self, request: rpc.RpcRequest, size: int) -> None:
        """Passes a tool call to its thread and responds to every other request at once."""
        thread = self._thread(request.params)
        if request.method == TOOL_CALL and thread is not None:
            thread.put(request, size)
            return
        self.respond(decline(request))
        if thread is not None:
            thread.put(Declined(request.method, request.params), size)

    def _end(self, fault: SessionLost) -> None:
        if self.fault is not None:
            return
        self.fault = fault
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(SessionLost(str(fault)))
        for thread in self._threads.values():
            thread.end(SessionLost(str(fault)))
        self._threads.clear()
