"""A WebSocket client on a real socket, without a library, so that tests see every message."""

from __future__ import annotations

import json
import socket
from typing import Any

from tests.server.harness import LONG, connected, read_until
from toolwire.wire.websocket import CLOSE, TEXT, FrameReader, Incoming, close_payload, frame, parse_close

MASK = b"abcd"
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


class SocketClient:
    """Connected to a gateway on this port."""

    def __init__(self, port: int, path: str = "/v1/responses", **headers: str) -> None:
        given = {
            "host": "localhost",
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": "MDEyMzQ1Njc4OWFiY2RlZg==",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        self.connection: socket.socket = connected(port)
        self.connection.sendall("\r\n".join(lines).encode())
        self.head = read_until(self.connection, b"\r\n\r\n").decode()
        self.frames = FrameReader()
        self.frames.is_deflating = "permessage-deflate" in self.head
        self._incoming: list[Incoming] = []
        self.wire = 0  # bytes received

    def create(self, model: str = "", **members: Any) -> None:
        self.send({"type": "response.create", **({"model": model} if model else {}), **members})

    def send(self, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.connection.sendall(frame(TEXT, text.encode(), MASK))

    def next(self) -> Incoming:
        while not self._incoming:
            data = self.connection.recv(1 << 16)
            assert data, "the gateway closed the connection"
            self.wire += len(data)
            self._incoming += self.frames.feed(data)
        return self._incoming.pop(0)

    def event(self) -> dict[str, Any]:
        found = self.next()
        assert found.kind == TEXT, found
        value: dict[str, Any] = json.loads(found.data)
        return value

    def turn(self) -> list[dict[str, Any]]:
        """The events up to the end of one answer."""
        events = [self.event()]
        while events[-1]["type"] not in ENDS:
            events.append(self.event())
        return events

    def answer(self, model: str = "", **members: Any) -> dict[str, Any]:
        """The last event of a new answer."""
        self.create(model, **members)
        return self.turn()[-1]

    def closed(self) -> int:
        """The code with which the gateway closes the connection next."""
        found = self.next()
        assert found.kind == CLOSE, found
        self.connection.sendall(frame(CLOSE, close_payload(1000), MASK))
        return parse_close(found.data)[0]

    def leave(self) -> None:
        self.connection.close()

    def __enter__(self) -> SocketClient:
        self.connection.settimeout(LONG)
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()
