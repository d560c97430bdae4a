"""A connection that becomes a WebSocket, byte by byte, with a small application behind it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, MutableMapping
from typing import Any

import pytest

from tests.server.wire import Wire
from tests.virtual_clock import run_virtually
from toolwire.backends.mounts import SHUTDOWN, Receive, Send
from toolwire.server.websocket import WebSocketConnection
from toolwire.wire.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    Incoming,
    accept_of,
    close_payload,
    frame,
    parse_close,
)

KEY = base64.b64encode(b"0123456789abcdef").decode()
MASK = b"abcd"


class Echo:
    """Says back what it hears; "close" makes it leave, "wait" makes it stop listening until it is released."""

    def __init__(self) -> None:
        self.messages: list[MutableMapping[str, Any]] = []
        self.released = asyncio.Event()
        self.scope: MutableMapping[str, Any] = {}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self.scope = scope
        self.messages.append(await receive())
        await send({"type": "websocket.accept"})
        while True:
            message = await receive()
            self.messages.append(message)
            if message["type"] == "websocket.disconnect":
                return
            if message["text"] == "close":
                await send({"type": "websocket.close", "code": 4001, "reason": "as you wish"})
                return
            if message["text"] == "wait":
                await self.released.wait()
            elif message["text"] == "leave":
                return
            else:
                await send({"type": "websocket.send", "text": message["text"]})


class Stage:
    def __init__(self, application: Any, headers: dict[str, str], longest: int) -> None:
        given = {"sec-websocket-version": "13", "sec-websocket-key": KEY} | headers
        scope = {"type": "http", "path": "/bridge", "headers": [(k.encode(), v.encode()) for k, v in given.items()]}
        self.connections: set[Any] = set()
        self.wire = Wire()
        self.socket = WebSocketConnection(application, scope, self.connections, longest)
        self.socket.connection_made(self.wire)
        self.running = asyncio.create_task(self.socket.run())

    async def hear(self, *data: bytes) -> None:
        for piece in data:
            self.socket.data_received(piece)
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self.socket.connection_lost(None)
        await asyncio.wait_for(self.running, 1)


def frames_in(wire: Wire) -> list[Incoming]:
    return list(FrameReader().feed(wire.written.partition(b"\r\n\r\n")[2]))


def text_frame(text: str) -> bytes:
    return frame(TEXT, text.encode(), MASK)


def run_connection(
    play: Callable[[Stage, Any], Any], headers: dict[str, str] | None = None, longest: int = 1 << 20
) -> None:
    async def main() -> None:
        echo = Echo()
        stage = Stage(echo, headers or {}, longest)
        await stage.hear()
        await play(stage, echo)
        await stage.end()

    asyncio.run(main())


def test_a_handshake_and_text_both_ways() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        assert stage.wire.written.startswith(b"HTTP/1.1 101 ")
        assert accept_of(KEY).encode() in stage.wire.written
        await stage.hear(text_frame("one"), text_frame("zwölf"))
        assert frames_in(stage.wire) == [Incoming(TEXT, b"one"), Incoming(TEXT, "zwölf".encode())]
        assert echo.scope["type"] == "websocket"
        assert stage.connections == {stage.socket}
        await stage.end()
        assert stage.connections == set()
        assert echo.messages[-1]["type"] == "websocket.disconnect"

    run_connection(play)


@pytest.mark.parametrize("headers", [{"sec-websocket-version": "8"}, {"sec-websocket-key": "short"}])
def test_what_is_no_handshake_is_refused(headers: dict[str, str]) -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        assert stage.wire.written.startswith(b"HTTP/1.1 426 ")
        assert stage.wire.ended == "closed"
        assert len(echo.messages) == 1  # who may come in was looked at before

    run_connection(play, headers)


def test_an_application_may_refuse_with_a_status() -> None:
    async def refuse(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        await send({"type": "websocket.http.response.start", "status": 403, "headers": [(b"a", b"b")]})
        await send({"type": "websocket.http.response.body", "body": b"no"})

    async def main() -> None:
        stage = Stage(refuse, {}, 100)
        await stage.hear()
        assert (
            stage.wire.written == b"HTTP/1.1 403 Forbidden\r\na: b\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"
        )
        assert stage.wire.ended == "closed"
        await stage.end()

    asyncio.run(main())


def test_pings_are_answered_unless_the_client_stops_reading() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        await stage.hear(frame(PING, b"x", MASK))
        stage.socket.pause_writing()
        await stage.hear(frame(PING, b"y", MASK) * 1000)
        stage.socket.resume_writing()
        await stage.hear(frame(PONG, b"z", MASK))
        assert frames_in(stage.wire) == [Incoming(PONG, b"x")]

    run_connection(play)


def test_both_sides_send_a_close_frame() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        await stage.hear(text_frame("close"), text_frame("too late"))
        assert parse_close(frames_in(stage.wire)[0].data) == (4001, "as you wish")
        assert not stage.wire.ended
        await stage.hear(frame(CLOSE, close_payload(4001), MASK))
        assert stage.wire.ended == "closed"
        assert len(frames_in(stage.wire)) == 1

    run_connection(play)


def test_a_close_frame_is_answered() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        await stage.hear(frame(CLOSE, close_payload(1000, "bye"), MASK))
        assert parse_close(frames_in(stage.wire)[0].data) == (1000, "")
        assert stage.wire.ended == "closed"
        assert echo.messages[-1] == {"type": "websocket.disconnect", "code": 1000, "reason": "bye"}

    run_connection(play)


@pytest.mark.parametrize(
    ("data", "code", "why"),
    [
        (frame(TEXT, b"plain"), 1002, "not masked"),
        (frame(TEXT, b"a" * 2000, MASK)[:20], 1009, "longer than"),
        (frame(BINARY, b"a", MASK), 1003, "binary"),
        (frame(TEXT, b"\xff", MASK), 1007, "UTF-8"),
    ],
)
def test_a_protocol_error_closes_the_connection_with_a_reason(data: bytes, code: int, why: str) -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        await stage.hear(data)
        found, reason = parse_close(frames_in(stage.wire)[0].data)
        assert (found, why in reason) == (code, True)
        assert echo.messages[-1]["code"] == code
        await stage.hear(text_frame("more"), data)
        assert len(frames_in(stage.wire)) == 1

    run_connection(play, longest=1000)


def test_what_the_application_does_not_take_is_not_read() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        await stage.hear(text_frame("wait"), *[text_frame("x" * 1_000_000)] * 5)
        assert stage.wire.is_paused
        echo.released.set()
        await stage.hear()
        assert not stage.wire.is_paused
        assert len(frames_in(stage.wire)) == 5

    run_connection(play)


def test_who_does_not_read_holds_up_the_application_only() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        stage.socket.pause_writing()
        await stage.hear(text_frame("one"), text_frame("two"))
        assert frames_in(stage.wire) == [Incoming(TEXT, b"one")]
        stage.socket.resume_writing()
        await stage.hear()
        assert len(frames_in(stage.wire)) == 2

    run_connection(play)


def test_an_application_that_returns_closes() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        await stage.hear(text_frame("leave"))
        assert parse_close(frames_in(stage.wire)[0].data)[0] == 1011

    run_connection(play)


def test_the_application_hears_when_the_server_is_to_end() -> None:
    async def play(stage: Stage, echo: Echo) -> None:
        event = echo.scope["extensions"][SHUTDOWN]["event"]
        assert not event.is_set()
        stage.socket.shutdown()
        assert event.is_set()

    run_connection(play)


def test_a_client_that_reads_nothing_for_minutes_is_disconnected() -> None:
    async def main() -> None:
        stage = Stage(Echo(), {}, 1000)
        await stage.hear()
        stage.socket.pause_writing()
        await asyncio.sleep(200)
        stage.socket.resume_writing()
        await asyncio.sleep(200)
        assert stage.wire.ended == ""
        stage.socket.pause_writing()
        await asyncio.sleep(301)
        assert stage.wire.ended == "aborted"
        await stage.end()

    run_virtually(main())


def test_compression_is_agreed_on_where_the_application_wants_it() -> None:
    async def accept(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept", "compression": True})
        await send({"type": "websocket.send", "text": "a" * 5000})
        await send({"type": "websocket.ping"})
        await receive()
        await receive()

    async def main() -> None:
        stage = Stage(accept, {"sec-websocket-extensions": "permessage-deflate"}, 10_000)
        await stage.hear()
        assert b"sec-websocket-extensions: permessage-deflate" in stage.wire.written
        assert len(stage.wire.written) < 1000
        reader = FrameReader()
        reader.is_deflating = True
        found = list(reader.feed(stage.wire.written.partition(b"\r\n\r\n")[2]))
        assert found == [Incoming(TEXT, b"a" * 5000), Incoming(PING, b"")]
        await stage.end()

    asyncio.run(main())
