"""One VS Code window from its hello to its goodbye: what it says is sorted, what is said to it is written, and it must stay alive."""

from __future__ import annotations

import asyncio
import os
import re
from itertools import count
from typing import Protocol

from msgspec import Struct

from .. import __version__
from ..backends.vscode.window import Window
from ..backends.vscode.wire.errors import refused
from ..backends.vscode.wire.frames import Bad, decode_window
from ..backends.vscode.wire.shapes import (
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
    Unknown,
    Welcome,
)
from ..errors import BadRequest, quote
from .body import Receive, Send
from .bridge_asks import Asks, Desk
from .websocket import Disconnected

STARTED_BY = "TOOLWIRE_STARTED_BY"  # set by the extension for a gateway that it starts
_STARTER = re.compile(r"[0-9a-f-]{36}")
_GOING = 1001
_POLICY = 1008
_BAD = 1007
_MUTE = 4000
_DEAF = 4001
_REPLACED = 4002
_MOST_NOTED = 20  # of a kind, in the log
_MOST_BAD = 1000  # frames that cannot be read, of one connection
# Also where the rest of a frame is no JSON: a window writes these first.
_WHOSE = re.compile(
    r'\s{0,9}\{\s{0,9}"type"\s{0,9}:\s{0,9}"(\w{1,20})"\s{0,9},\s{0,9}"id"\s{0,9}:\s{0,9}"([^"\\]{1,128})"'
)


class Pace(Struct, frozen=True, kw_only=True):
    """Seconds: for a hello, between pings, between two frames of an answer, and until the models are looked at again."""

    hello: float = 5.0
    ping: float = 15.0
    frame: float = 0.04
    offer: float = 60.0


class Place(Protocol):
    """Where windows are known."""

    def join(self, session: Session) -> None: ...

    def changed(self) -> None: ...

    def leave(self, session: Session) -> None: ...


class Closed(Exception):
    """The connection is over, or has to be; by_window: it was the other side who said so."""

    def __init__(self, code: int, reason: str, *, by_window: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.by_window = by_window


class Session:
    """One connection. Belongs to one event loop."""

    window: Window
    asks: Asks

    def __init__(self, place: Place, desk: Desk, owner: str, pace: Pace) -> None:
        self._place = place
        self._desk = desk
        self._owner = owner
        self._pace = pace
        self._heard_at = 0.0
        self._unknown: set[str] = set()
        self._bad = 0
        self._replaced = asyncio.Event()

    async def run(self, receive: Receive, send: Send, leaving: asyncio.Event) -> None:
        try:
            await self._welcome(receive)
        except Closed as fault:
            await self._part(fault, send)
            return
        end = Closed(_GOING, "the gateway ends; connect again.")
        try:
            end = await self._until_closed(receive, send, leaving)
        finally:  # also where the server has waited long enough and cancels this
            self.asks.close()
            self.window.close(end.reason)
            self._place.leave(self)
            await self._part(end, send)

    def replace(self) -> None:
        self._replaced.set()

    async def _welcome(self, receive: Receive) -> None:
        try:
            async with asyncio.timeout(self._pace.hello):
                text = await _text(receive)
        except TimeoutError:
            raise Closed(_POLICY, f"no hello came within {self._pace.hello:g} seconds.") from None
        try:
            frame = decode_window(text)
        except Bad as fault:
            raise Closed(_BAD, str(fault)) from None
        if not isinstance(frame, Hello):
            raise Closed(_POLICY, "the first frame is no hello.")
        if frame.v != VERSION:
            message = (
                f"the window speaks version {frame.v}, this gateway {VERSION}: install the extension of this gateway."
            )
            raise Closed(_POLICY, message)
        self.window = Window(frame)
        self.asks = Asks(self.window, self._desk, self._owner, self._pace.frame)
        try:
            self._place.join(self)
        except BadRequest as error:
            raise Closed(1013, error.message) from None
        mark = os.environ.get(STARTED_BY, "")
        is_started = _STARTER.fullmatch(mark) is not None
        pid, starter = (os.getpid(), mark) if is_started else (0, "")
        self.window.say(Welcome(v=VERSION, gateway=__version__, pid=pid, started_by=starter))
        self._log("info", f"connected: VS Code {quote(frame.vscode)}, extension {quote(frame.extension)}")

    async def _until_closed(self, receive: Receive, send: Send, leaving: asyncio.Event) -> Closed:
        """Until the first of these has a reason to end it."""
        work = (
            self._read(receive),
            self._write(send),
            self._watch(),
            self._ping(),
            self._offer(),
            self._leave(leaving),
            self._give_way(),
        )
        tasks = [asyncio.create_task(one) for one in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        fault = next(iter(done)).exception()
        if not isinstance(fault, Closed):
            raise fault or AssertionError("none of these returns")
        return fault

    async def _read(self, receive: Receive) -> None:
        clock = asyncio.get_running_loop()
        while True:
            text = await _text(receive)
            self._heard_at = clock.time()
            try:
                frame = decode_window(text)
            except Bad as fault:
                self._pass_over(text, fault)
                continue
            if isinstance(frame, Unknown):
                self._note_unknown(frame.type)
            else:
                self._take(frame, len(text))

    def _take(self, frame: FromWindow, size: int) -> None:
        match frame:
            case Parts() | End() | Failure() | Counted():
                self.window.hear(frame, size)
            case Models():
                self.window.list_models(frame)
                self._place.changed()
            case Focus():
                self.window.focus(frame.focused)
            case Ask():
                self.asks.ask(frame)
            case Stop():
                self.asks.stop(frame.id)
            case List():
                self.asks.list()
            case Pong():
                pass  # that it came is enough
            case Hello():
                raise Closed(_POLICY, "a second hello came.")

    def _pass_over(self, text: str, fault: Bad) -> None:
        """It costs the request that it is about, and no other one."""
        self._bad += 1
        if self._bad > _MOST_BAD:
            raise Closed(_BAD, f"{_MOST_BAD} frames could not be read, the last because {fault}")
        if self._bad <= _MOST_NOTED:
            self._log("warning", f"sent what cannot be read: {fault}")
        if (found := _WHOSE.match(text)) is None:
            return
        kind, request_id = found.groups()
        if kind == "ask":
            self.window.say(refused(request_id, BadRequest(f"the request cannot be read: {fault}")))
        else:
            self.window.spoil(request_id, str(fault))

    async def _write(self, send: Send) -> None:
        outbox = self.window.outbox
        try:
            while (text := await outbox.next()) is not None:
                await send({"type": "websocket.send", "text": text})
        except Disconnected:
            raise Closed(1006, "the connection was lost", by_window=True) from None
        raise Closed(_GOING, "the window is gone.")

    async def _watch(self) -> None:
        await self.window.outbox.full.wait()
        raise Closed(_DEAF, "the window does not read what it is sent.")

    async def _ping(self) -> None:
        """Anything that it says behind a ping is a sign of life."""
        clock, asked_at = asyncio.get_running_loop(), 0.0
        for number in count(1):
            await asyncio.sleep(self._pace.ping)
            if self._heard_at < asked_at:
                raise Closed(_MUTE, f"the window did not answer a ping within {self._pace.ping:g} seconds.")
            asked_at = clock.time()
            self.window.say(Ping(n=number))

    async def _offer(self) -> None:
        """What the gateway has may change; a window that wanted to know is told."""
        while True:
            await asyncio.sleep(self._pace.offer)
            self.asks.renew()

    async def _leave(self, leaving: asyncio.Event) -> None:
        """The gateway is to end: the window is asked nothing new, and what it works on is waited for."""
        await leaving.wait()
        self.window.is_leaving = True
        while not (self.window.is_idle and self.asks.is_idle):
            await asyncio.sleep(0.05)
        raise Closed(_GOING, "the gateway ends; connect again.")

    async def _give_way(self) -> None:
        await self._replaced.wait()
        raise Closed(_REPLACED, "the window has connected anew.")

    async def _part(self, end: Closed, send: Send) -> None:
        self._log("info" if end.by_window or end.code == _GOING else "warning", f"left: {end.reason}")
        if not end.by_window:
            await send({"type": "websocket.close", "code": end.code, "reason": end.reason})

    def _note_unknown(self, kind: str) -> None:
        if kind not in self._unknown and len(self._unknown) < _MOST_NOTED:
            self._unknown.add(kind)
            self._log("warning", f"sent a frame of the type {quote(kind)}, which this version does not know")

    def _log(self, level: str, words: str) -> None:
        window = getattr(self, "window", None)
        name = quote(window.id[:8]) if window is not None else "without a name"
        self._desk.log.say(level, f"a VS Code window ({name}) {words}")


async def _text(receive: Receive) -> str:
    message = await receive()
    if message["type"] == "websocket.disconnect":
        raise Closed(message.get("code", 1005), message.get("reason") or "it closed the connection", by_window=True)
    return str(message["text"])
