"""One write a response: uvicorn writes a response's head and the start of its body apart, which costs a system call and a packet each."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class HeadKeeper:
    """A transport that holds a response's head until the first bytes of its body, or its end, come.

    From then on until the next response write is the transport's own, so that a stream pays nothing for this.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self.write: Callable[[bytes], None] = self._write_first

    def _write_first(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
            self.write = self._transport.write
        elif data[:7] == b"HTTP/1." and data[8:12] != b" 100":
            self._head = data
            return
        self._transport.write(data)

    def release(self) -> None:
        """The response is complete."""
        if self._head:
            self._write_first(b"")
        self.write = self._write_first

    def close(self) -> None:
        self.release()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr] # None until the first request
            data = without_upgrade(data)
        super().data_received(data)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn names the same
        self._keeper = HeadKeeper(transport)
        super().connection_made(self._keeper)  # type: ignore[arg-type] # it offers all that is used of a transport

    def on_response_complete(self) -> None:
        self._keeper.release()
        super().on_response_complete()


def without_upgrade(data: bytes) -> bytes:
    """Java's own client asks every plain server for HTTP/2; the parser would take the body for that and drop it."""
    end = data.find(b"\r\n\r\n")
    if end < 0 or _UPGRADE.search(data, 0, end) is None:
        return data
    return _UPGRADE.sub(b"\r\nx-upgrade:", data[:end]) + data[end:]
