"""A small HTTP/2 server on loopback whose every step is the test's: what it reads, when it answers, how it breaks."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import h2.connection
import h2.events
from h2.config import H2Configuration
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from toolwire.backends.cursor.transport.target import Attempt
from toolwire.config.file import BackendConfig
from toolwire.config.secret import Secret
from toolwire.wire.connect import ConnectDecoder, ConnectFrame

Handler = Callable[["Call"], Awaitable[None]]


class Call:
    """One stream, as the server sees it."""

    def __init__(self, peer: Peer, number: int, headers: list[tuple[str, str]]) -> None:
        self.peer = peer
        self.number = number
        self.headers = dict(headers)
        self.sent = 0
        self.is_ended = False  # the client has ended its side
        self.reset_code: int | None = None
        self.items: asyncio.Queue[bytes] = asyncio.Queue()
        self._decoder = ConnectDecoder()

    async def message(self) -> bytes:
        """The next message of the client."""
        return await self.items.get()

    def take(self, data: bytes) -> None:
        for item in self._decoder.feed(data):
            assert isinstance(item, ConnectFrame)
            self.items.put_nowait(item.data)

    def head(self, status: int | None = 200, kind: str = "application/connect+proto", *, is_last: bool = False) -> None:
        fields = [(":status", str(status))] if status is not None else []
        self.peer.engine.send_headers(self.number, [*fields, ("content-type", kind)], end_stream=is_last)
        self.peer.flush()

    async def send(self, data: bytes, size: int = 16384) -> None:
        """As the client takes it, in pieces of this size at most."""
        while data:
            window = self.peer.engine.local_flow_control_window(self.number)
            room = min(window, size, self.peer.engine.max_outbound_frame_size)
            if room <= 0:
                self.peer.moved.clear()
                await self.peer.moved.wait()
                continue
            self.peer.engine.send_data(self.number, data[:room])
            self.sent += room
            data = data[room:]
            self.peer.flush()
            await self.peer.writer.drain()

    def end(self) -> None:
        self.peer.engine.end_stream(self.number)
        self.peer.flush()

    def reset(self, code: ErrorCodes) -> None:
        self.peer.engine.reset_stream(self.number, code)
        self.peer.flush()


class Peer:
    """One connection."""

    def __init__(self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader, self.writer = reader, writer
        self.engine = h2.connection.H2Connection(
            H2Configuration(client_side=False, header_encoding="utf-8", validate_outbound_headers=False)
        )
        self.calls: dict[int, Call] = {}
        self.moved = asyncio.Event()
        self.pings = 0

    def flush(self) -> None:
        self.writer.write(self.engine.data_to_send())

    def goodbye(self, last: int, code: int = 0, words: bytes = b"") -> None:
        """By hand: the engine would take no more frames after its own."""
        payload = last.to_bytes(4, "big") + code.to_bytes(4, "big") + words
        self.writer.write(len(payload).to_bytes(3, "big") + b"\x07\x00" + bytes(4) + payload)

    async def serve(self) -> None:
        self.engine.local_settings = Settings(client=False, initial_values=self.server.settings)
        self.engine.initiate_connection()
        self.flush()
        while data := await self.reader.read(65536):
            try:
                events = self.engine.receive_data(data)
            except ProtocolError:
                self.flush()
                return
            for event in events:
                self._handle(event)
            self.flush()
            self.moved.set()
            await self.server.listening.wait()

    def _handle(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            call = self.calls[event.stream_id] = Call(self, event.stream_id, list(event.headers))
            self.server.calls.append(call)
            self.server.start(self.server.handler(call))
        elif isinstance(event, h2.events.DataReceived):
            if self.server.opens_windows:
                with suppress(ProtocolError):
                    self.engine.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            self.calls[event.stream_id].take(event.data)
        elif isinstance(event, h2.events.StreamEnded):
            self.calls[event.stream_id].is_ended = True
        elif isinstance(event, h2.events.StreamReset):
            self.calls[event.stream_id].reset_code = event.error_code
        elif isinstance(event, h2.events.PingReceived):
            self.pings += 1


class Server:
    """listening is cleared to make it deaf: it then reads nothing, and so answers no ping."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.calls: list[Call] = []
        self.peers: list[Peer] = []
        self.settings: dict[SettingCodes, int] = {}
        self.opens_windows = True
        self.listening = asyncio.Event()
        self.listening.set()
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def target(self) -> BackendConfig:
        return config(base_url=f"http://127.0.0.1:{self.port}", client_type="cli", connect_timeout=20.0)

    def start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(self, reader, writer)
        self.peers.append(peer)
        with suppress(OSError, asyncio.CancelledError):
            await peer.serve()
        writer.transport.abort()

    async def close(self) -> None:
        self.listening.set()
        for peer in self.peers:
            peer.writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def serving(handler: Handler, *, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(handler)
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=context)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        await server.close()
        await asyncio.sleep(0)


def config(base_url: str, **more: Any) -> BackendConfig:
    return BackendConfig(name="cursor", kind="cursor", base_url=base_url, **more)


def attempt(token: str = "ey.a.b") -> Attempt:
    return Attempt(token=Secret(token), request_id="request-1", original_id="original-1")


def sockets() -> int:
    """How many this process has open."""
    return sum(
        os.path.realpath(f"/proc/self/fd/{number}").find("socket:") >= 0 for number in os.listdir("/proc/self/fd")
    )
