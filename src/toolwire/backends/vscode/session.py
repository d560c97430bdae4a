"""One connection of a VS Code window, from hello to close: dispatches its frames, writes ours, and checks that it is alive."""

from __future__ import annotations

import asyncio
import os
import re
from itertools import count
from typing import TYPE_CHECKING

from msgspec import Struct

from ... import __version__
from ...errors import BadRequest, quote
from ..mounts import GatewayAccess, Receive, Send
from .provider import ModelProvider
from .window import Window
from .wire.errors import refused
from .wire.frames import BadWindowFrame, decode_window
from .wire.shapes import (
    VERSION,
    Ask,
    Counted,
    End,
    Failure,
    Focus,
    FromWindow,
    Hello,
    List,
    Models,
    Parts,
    Ping,
    Pong,
    Stop,
    UnknownFrame,
    Welcome,
)

if TYPE_CHECKING:
    from .bridge import Bridge

STARTED_BY = "TOOLWIRE_STARTED_BY"  # set by the extension for a gateway that it starts
_STARTER = re.compile(r"[0-9a-f-]{36}")
# Codes of WebSocket close frames; from 4000 on they are ours.
_GOING_AWAY, _BAD_DATA, _POLICY, _TRY_LATER = 1001, 1007, 1008, 1013
_NO_PONG, _NOT_READING, _REPLACED = 4000, 4001, 4002
_MAX_LOGGED = 20  # messages of a kind
_MAX_BAD = 1000  # frames of one connection that cannot be decoded
# A window writes these members first, so they are found even if the rest of a frame is no JSON.
_REQUEST_ID = re.compile(
    r'\s{0,9}\{\s{0,9}"type"\s{0,9}:\s{0,9}"(\w{1,20})"\s{0,9},\s{0,9}"id"\s{0,9}:\s{0,9}"([^"\\]{1,128})"'
)


class Pace(Struct, frozen=True, kw_only=True):
    """Seconds: until a hello, between pings, between two frames of an answer, and between two checks of the models."""

    hello: float = 5.0
    ping: float = 15.0
    frame: float = 0.04
    offer: float = 60.0


class SessionClosed(Exception):
    """The connection ends. by_window: the window has closed it."""

    def __init__(self, code: int, reason: str, *, by_window: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.by_window = by_window


class WindowSession:
    """One connection. Belongs to one event loop."""

    window: Window
    provider: ModelProvider

    def __init__(self, bridge: Bridge, gateway: GatewayAccess, pace: Pace) -> None:
        self._bridge = bridge
        self._gateway = gateway
        self._pace = pace
        self._received_at = 0.0
        self._unknown: set[str] = set()
        self._bad = 0
        self._replaced = asyncio.Event()

    async def run(self, receive: Receive, send: Send, shutdown: asyncio.Event) -> None:
        try:
            await self._welcome(receive)
        except SessionClosed as fault:
            await self._close(fault, send)
            return
        end = SessionClosed(_GOING_AWAY, "the gateway is stopping; connect again.")
        try:
            end = await self._until_closed(receive, send, shutdown)
        finally:  # also when the server cancels this at the end of its shutdown
            self.provider.close()
            self.window.close(end.reason)
            self._bridge.leave(self)
            await self._close(end, send)

    def replace(self) -> None:
        self._replaced.set()

    async def _welcome(self, receive: Receive) -> None:
        try:
            async with asyncio.timeout(self._pace.hello):
                text = await _text(receive)
        except TimeoutError:
            raise SessionClosed(_POLICY, f"no hello came within {self._pace.hello:g} seconds.") from None
        try:
            frame = decode_window(text)
        except BadWindowFrame as fault:
            raise SessionClosed(_BAD_DATA, str(fault)) from None
        if not isinstance(frame, Hello):
            raise SessionClosed(_POLICY, "the first frame is not a hello.")
        if frame.v != VERSION:
            why = f"the window speaks version {frame.v}, this gateway {VERSION}: install the extension of this gateway."
            raise SessionClosed(_POLICY, why)
        self.window = Window(frame)
        self.provider = ModelProvider(self.window, self._gateway, self._bridge.is_own_model, self._pace.frame)
        try:
            self._bridge.join(self)
        except BadRequest as error:
            raise SessionClosed(_TRY_LATER, error.message) from None
        starter = os.environ.get(STARTED_BY, "")
        if not _STARTER.fullmatch(starter):
            starter = ""
        pid = os.getpid() if starter else 0
        self.window.send(Welcome(v=VERSION, gateway=__version__, pid=pid, started_by=starter))
        self._log("info", f"connected: VS Code {quote(frame.vscode)}, extension {quote(frame.extension)}")

    async def _until_closed(self, receive: Receive, send: Send, shutdown: asyncio.Event) -> SessionClosed:
        """Runs until one of these tasks raises SessionClosed."""
        work = (
            self._read(receive),
            self._write(send),
            self._ping(),
            self._offer(),
            self._leave(shutdown),
            _closed_by(self.window.outbox.full, _NOT_READING, "the window does not read what it is sent."),
            _closed_by(self._replaced, _REPLACED, "the window has connected again."),
        )
        tasks = [asyncio.create_task(one) for one in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        fault = next(iter(done)).exception()
        if not isinstance(fault, SessionClosed):
            raise fault or AssertionError("none of these returns")
        return fault

    async def _read(self, receive: Receive) -> None:
        clock = asyncio.get_running_loop()
        while True:
            text = await _text(receive)
            self._received_at = clock.time()
            try:
                frame = decode_window(text)
            except BadWindowFrame as fault:
                self._skip_bad(text, fault)
                continue
            if not isinstance(frame, UnknownFrame):
                self._take(frame, len(text))
            elif frame.type not in self._unknown and len(self._unknown) < _MAX_LOGGED:
                self._unknown.add(frame.type)
                self._log("warning", f"sent a frame of the type {quote(frame.type)}, which this version does not know")

    def _take(self, frame: FromWindow, size: int) -> None:
        match frame:
            case Parts() | End() | Failure() | Counted():
                self.window.take(frame, size)
            case Models():
                self.window.list_models(frame)
                self._bridge.models_changed()
            case Focus():
                self.window.focus(frame.focused)
            case Ask():
                self.provider.ask(frame)
            case Stop():
                self.provider.stop(frame.id)
            case List():
                self.provider.list()
            case Pong():
                pass  # any frame counts as a reply to a ping
            case Hello():
                raise SessionClosed(_POLICY, "a second hello came.")

    def _skip_bad(self, text: str, fault: BadWindowFrame) -> None:
        """Fails the request that the frame is about, and no other one."""
        self._bad += 1
        if self._bad > _MAX_BAD:
            raise SessionClosed(_BAD_DATA, f"{_MAX_BAD} frames could not be decoded, the last because {fault}")
        if self._bad <= _MAX_LOGGED:
            self._log("warning", f"sent a frame that cannot be decoded: {fault}")
        if (found := _REQUEST_ID.match(text)) is None:
            return
        kind, request_id = found.groups()
        if kind == "ask":
            self.window.send(refused(request_id, BadRequest(f"the request cannot be decoded: {fault}")))
        else:
            self.window.fail(request_id, str(fault))

    async def _write(self, send: Send) -> None:
        outbox = self.window.outbox
        try:
            while (text := await outbox.next()) is not None:
                await send({"type": "websocket.send", "text": text})
        except OSError:
            raise SessionClosed(1006, "the connection was lost", by_window=True) from None
        raise SessionClosed(_GOING_AWAY, "the window is gone.")

    async def _ping(self) -> None:
        """Any frame after a ping counts as its answer."""
        clock, pinged_at = asyncio.get_running_loop(), 0.0
        for number in count(1):
            await asyncio.sleep(self._pace.ping)
            if self._received_at < pinged_at:
                raise SessionClosed(_NO_PONG, f"the window did not answer a ping within {self._pace.ping:g} seconds.")
            pinged_at = clock.time()
            self.window.send(Ping(n=number))

    async def _offer(self) -> None:
        """Sends the gateway's models again where they have changed."""
        while True:
            await asyncio.sleep(self._pace.offer)
            self.provider.refresh()

    async def _leave(self, shutdown: asyncio.Event) -> None:
        """At shutdown the window gets no new requests, and open ones are waited for."""
        await shutdown.wait()
        self.window.is_leaving = True
        while not (self.window.is_idle and self.provider.is_idle):
            await asyncio.sleep(0.05)
        raise SessionClosed(_GOING_AWAY, "the gateway is stopping; connect again.")

    async def _close(self, end: SessionClosed, send: Send) -> None:
        self._log("info" if end.by_window or end.code == _GOING_AWAY else "warning", f"disconnected: {end.reason}")
        if not end.by_window:
            await send({"type": "websocket.close", "code": end.code, "reason": end.reason})

    def _log(self, level: str, text: str) -> None:
        window = getattr(self, "window", None)
        name = quote(window.id[:8]) if window is not None else "unnamed"
        self._gateway.log(level, f"a VS Code window ({name}) {text}")


async def _closed_by(event: asyncio.Event, code: int, reason: str) -> None:
    await event.wait()
    raise SessionClosed(code, reason)


async def _text(receive: Receive) -> str:
    message = await receive()
    if message["type"] == "websocket.disconnect":
        raise SessionClosed(
            message.get("code", 1005), message.get("reason") or "it closed the connection", by_window=True
        )
    return str(message["text"])
