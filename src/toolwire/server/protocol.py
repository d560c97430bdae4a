"""Uvicorn's protocol with two changes: one write a response, and VS Code's windows get a WebSocket.

Uvicorn writes a response's head and the start of its body apart, which costs a system call and a packet each.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..dialects.vscode.frames import MAX_FRAME
from .bridge_socket import BridgeSocket

BRIDGE = "/bridge"  # the only path that can become a WebSocket
_PATH = BRIDGE.encode()
_BRIDGED = b"GET " + _PATH
_UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class HeadKeeper:
    """A transport that holds a response's head until the first bytes of its body, or its end, come.

    From then on until the next response write is the transport's own, so that a stream pays nothing for this.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.bare = self._transport = transport
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
    _is_in_head = False  # a piece of a request's head has come, and not yet all of it

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr] # None until the first request
            data = data if self._is_for_bridge(data) else without_upgrade(data)
        super().data_received(data)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn names the same
        self._keeper = HeadKeeper(transport)
        super().connection_made(self._keeper)  # type: ignore[arg-type] # it offers all that is used of a transport

    def on_response_complete(self) -> None:
        self._keeper.release()
        super().on_response_complete()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def _is_for_bridge(self, data: bytes) -> bool:
        if not self._is_in_head:
            return data.startswith(_BRIDGED)
        return len(self.url) > 1 and (self.url.startswith(_PATH) or _PATH.startswith(self.url))

    def _should_upgrade(self) -> bool:
        return self._get_upgrade() == b"websocket" and self.url.partition(b"?")[0] == _PATH

    def handle_websocket_upgrade(self) -> None:
        """From here on the connection belongs to a socket, and this protocol hears no more of it."""
        if self.cycle is not None and not self.cycle.response_complete:  # type: ignore[redundant-expr] # as above
            self.transport.close()  # it asks for one while it waits for an answer
            return
        self.connections.discard(self)
        scope = {**self.scope, "path": BRIDGE, "raw_path": _PATH}
        socket = BridgeSocket(self.app, scope, self.connections, MAX_FRAME)
        socket.connection_made(self._keeper.bare)
        self._keeper.bare.set_protocol(socket)
        task = self.loop.create_task(socket.run())
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)


def without_upgrade(data: bytes) -> bytes:
    """Java's own client asks every plain server for HTTP/2; the parser would take the body for that and drop it."""
    end = data.find(b"\r\n\r\n")
    if end < 0 or _UPGRADE.search(data, 0, end) is None:
        return data
    return _UPGRADE.sub(b"\r\nx-upgrade:", data[:end]) + data[end:]
