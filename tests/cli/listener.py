"""A server on a free port of this machine that gives every request the same bytes, or none and no end."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator


class Listener:
    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer
        self._is_over = asyncio.Event()
        self.port = 0
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            if length := re.search(rb"(?i)content-length: (\d+)", head):
                await reader.readexactly(int(length[1]))  # closed with it unread, the answer would be lost too
            if self._answer is None:
                await self._is_over.wait()
            for start in range(0, len(self._answer or b""), 7):
                writer.write((self._answer or b"")[start : start + 7])
        finally:
            writer.close()

    def stop(self) -> None:
        self._is_over.set()


@contextlib.asynccontextmanager
async def listening(answer: bytes | None) -> AsyncIterator[Listener]:
    listener = Listener(answer)
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        listener.stop()
        server.close()
        await server.wait_closed()


def http(body: bytes, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
