"""HTTP/2 as the simulator serves it: many requests on one connection, without TLS."""

from __future__ import annotations

import asyncio
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from .http1 import Handler, HttpExchange, HungUp, flush, hang_up

_CANCEL = 8
_READ = 65536


class Http2Exchange(HttpExchange):
    version = "2"

    def __init__(self, connection: _Connection, stream: int, headers: dict[str, str]) -> None:
        fields = {name: value for name, value in headers.items() if not name.startswith(":")}
        super().__init__(headers.get(":method", ""), headers.get(":path", ""), fields)
        self._connection = connection
        self._stream = stream
        self._is_finished = False

    async def start(self, status: int, headers: dict[str, str], *, is_last: bool = False) -> None:
        self.status = status
        self._is_finished = is_last
        listed = [(":status", str(status)), *headers.items()]
        self._connection.guard(self._connection.http.send_headers, self._stream, listed, end_stream=is_last)
        await self._connection.flush()

    async def write(self, data: bytes) -> None:
        while data:
            size = await self._connection.room(self._stream)
            self._connection.guard(self._connection.http.send_data, self._stream, data[:size])
            data = data[size:]
            await self._connection.flush()

    async def finish(self) -> None:
        if not self._is_finished:
            self._is_finished = True
            self._connection.guard(self._connection.http.end_stream, self._stream)
            await self._connection.flush()

    async def cut(self, how: str) -> None:
        self._is_finished = True
        if how == "reset":
            self._connection.guard(self._connection.http.reset_stream, self._stream, _CANCEL)
            await self._connection.flush()
        elif how == "goaway":
            self._connection.guard(self._connection.http.close_connection)
            await self._connection.flush()
            self._connection.writer.close()
        else:
            self._connection.writer.transport.abort()


class _Connection:
    """The connection of the exchanges."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
        configuration = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.http = h2.connection.H2Connection(configuration)
        self.reader = reader
        self.writer = writer
        self._handler = handler
        self._exchanges: dict[int, Http2Exchange] = {}
        self._window = asyncio.Event()

    async def serve(self, data: bytes) -> None:
        self.http.initiate_connection()
        try:
            while data:
                for event in self.http.receive_data(data):
                    self._take(event)
                await self.flush()
                data = await self.reader.read(_READ)
        except (h2.exceptions.ProtocolError, HungUp, ConnectionError):
            pass
        finally:
            await hang_up(self._exchanges.values())

    def guard(self, act: Any, *arguments: Any, **named: Any) -> None:
        """A protocol error while sending means that the client has disconnected."""
        try:
            act(*arguments, **named)
        except h2.exceptions.ProtocolError:
            raise HungUp from None

    async def flush(self) -> None:
        await flush(self.writer, self.http.data_to_send())

    async def room(self, stream: int) -> int:
        """How many bytes may be sent now, waiting for at least one."""
        while True:
            try:
                size = min(self.http.local_flow_control_window(stream), self.http.max_outbound_frame_size)
            except h2.exceptions.ProtocolError:
                raise HungUp from None
            if size > 0:
                return size
            self._window.clear()
            await self._window.wait()

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._open(event)
            case h2.events.DataReceived(stream_id=int() as stream, data=data):
                self.http.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                if data and stream in self._exchanges:
                    self._exchanges[stream].feed(bytes(data))
            case h2.events.StreamEnded(stream_id=int() as stream):
                if stream in self._exchanges:
                    self._exchanges[stream].feed(b"")
            case h2.events.StreamReset(stream_id=int() as stream):
                if stream in self._exchanges:
                    self._exchanges[stream].hang_up()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self._window.set()

    def _open(self, event: h2.events.RequestReceived) -> None:
        stream = event.stream_id or 0
        headers = {_text(name): _text(value) for name, value in event.headers or []}
        exchange = self._exchanges[stream] = Http2Exchange(self, stream, headers)
        exchange.task = asyncio.create_task(self._handle(stream, self._handler(exchange)))

    async def _handle(self, stream: int, handling: Any) -> None:
        try:
            await handling
        except HungUp:
            pass
        finally:
            self._exchanges.pop(stream, None)


async def serve_http2(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, ahead: bytes
) -> None:
    """Serves until the connection and all its exchanges end. ahead: bytes that were already read."""
    await _Connection(reader, writer, handler).serve(ahead)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")
