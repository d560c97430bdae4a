"""A WebSocket server for the tests: each connection is one app-server of its own, whose lines it passes on as frames."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.backends.codex.starting import FAKE
from tests.wire.server_frames import served
from toolwire.wire.websocket import CLOSE, PING, PONG, TEXT, accept_of


class Listener:
    """heads are the requests that came, pongs what came back for our pings; token is the only one that is let in, if any."""

    def __init__(self, options: tuple[str, ...], token: str) -> None:
        self.heads: list[str] = []
        self.pongs: list[bytes] = []
        self.address = ""
        self.running: set[asyncio.Task[None]] = set()
        self._options = options
        self._token = token

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        if self._token and fields.get("Authorization") != f"Bearer {self._token}":
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        accept = accept_of(fields["Sec-WebSocket-Key"])
        upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        writer.write(f"{upgrade}Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-E", str(FAKE), *self._options, stdin=-1, stdout=-1, limit=1 << 24
        )
        assert process.stdin is not None
        assert process.stdout is not None
        passing = asyncio.create_task(self._pass_on(process.stdout, writer))
        with suppress(EOFError, OSError):
            await self._take(reader, process.stdin)
        process.stdin.close()
        with suppress(OSError):
            await passing
        await process.wait()
        writer.close()

    async def _pass_on(self, lines: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Each line in two pieces around a ping."""
        while line := (await lines.readline()).strip():
            middle = len(line) // 2
            pieces = served(TEXT, line[:middle], is_last=False) + served(PING, b"?") + served(0, line[middle:])
            writer.write(pieces)
            await writer.drain()
        writer.write(served(CLOSE, (1001).to_bytes(2, "big") + b"it has ended"))

    async def _take(self, reader: asyncio.StreamReader, stdin: asyncio.StreamWriter) -> None:
        while True:
            head, size = await reader.readexactly(2)
            size &= 0x7F
            if size > 125:
                size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
            mask, data = await reader.readexactly(4), await reader.readexactly(size)
            text = bytes(letter ^ mask[place % 4] for place, letter in enumerate(data))
            if head & 0x0F == CLOSE:
                return
            if head & 0x0F == PONG:
                self.pongs.append(text)
            else:
                stdin.write(text + b"\n")


@asynccontextmanager
async def listening(*options: str, token: str = "") -> AsyncIterator[Listener]:
    listener = Listener(options, token)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(listener.handle(reader, writer))
        listener.running.add(task)
        await task

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    listener.address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield listener
    finally:
        server.close()
        if listener.running:
            await asyncio.wait(listener.running, timeout=5)
