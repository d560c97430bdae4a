"""The server's protocols without sockets: a transport that remembers, and a connection that is fed piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import h11

from toolwire.config.file import Config
from toolwire.server.connections import Connections
from toolwire.server.launch import options
from toolwire.server.protocol import Protocol

SETTLED = 12  # turns of the loop in which an application without I/O comes to its end
Application = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]


class Wire(asyncio.Transport):
    """A transport that only remembers."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.writes = 0
        self.unsent = 0
        self.is_paused = False
        self.has_eof = False
        self.ended = ""

    def write(self, data: Any) -> None:
        assert not self.has_eof
        self.written += bytes(data)
        self.writes += 1

    def write_eof(self) -> None:
        self.has_eof = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return bool(self.ended)

    def close(self) -> None:
        self.ended = self.ended or "closed"

    def abort(self) -> None:
        self.ended = self.ended or "aborted"

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


class Line:
    """One connection to an application."""

    def __init__(
        self, application: Application, config: Config | None = None, connections: Connections | None = None
    ) -> None:
        self.wire = Wire()
        self.now = 0.0
        config = config or Config()
        self.connections = connections or Connections(config.server, clock=lambda: self.now)
        chosen = options(config, application)  # type: ignore[arg-type] # any application will do
        chosen.load()
        self.protocol = Protocol(chosen, self.connections, {})
        self.protocol.connection_made(self.wire)

    async def hear(self, *pieces: bytes) -> None:
        """The loop turns after each piece, so that the application may answer before the next one comes."""
        for piece in pieces:
            self.protocol.data_received(piece)
            await self.settle()

    async def settle(self) -> None:
        for _ in range(SETTLED):
            await asyncio.sleep(0)

    async def hang_up(self) -> None:
        self.protocol.connection_lost(None)
        await self.settle()

    @property
    def is_over(self) -> bool:
        return self.wire.has_eof or self.wire.is_closing()


def requests_by_h11(data: bytes) -> list[tuple[str, str, bytes]]:
    """Method, target and body of each whole request in data, as an independent implementation sees them."""
    found: list[tuple[str, str, bytes]] = []
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    try:
        while True:
            request = connection.next_event()
            if not isinstance(request, h11.Request):
                return found
            body = b""
            while isinstance(event := connection.next_event(), h11.Data):
                body += bytes(event.data)
            if not isinstance(event, h11.EndOfMessage):
                return found
            found.append((request.method.decode(), request.target.decode(), body))
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is not h11.DONE:
                return found
            connection.start_next_cycle()
    except h11.RemoteProtocolError:
        return found


class Response:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def is_last(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


def responses_by_h11(data: bytes, methods: Iterable[str]) -> list[Response]:
    """What a client reads that has sent requests of these methods; all of data must be responses to them."""
    found: list[Response] = []
    for method in methods:
        connection = h11.Connection(h11.CLIENT)
        connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        connection.send(h11.EndOfMessage())
        connection.receive_data(data)
        event = connection.next_event()
        while isinstance(event, h11.InformationalResponse):
            event = connection.next_event()
        assert isinstance(event, h11.Response), (event, data[:300])
        body = b""
        while isinstance(more := connection.next_event(), h11.Data):
            body += bytes(more.data)
        assert isinstance(more, h11.EndOfMessage), more
        headers = {name.decode(): value.decode() for name, value in event.headers}
        found.append(Response(event.status_code, headers, body))
        data = connection.trailing_data[0]
    assert not data, data[:300]
    return found
