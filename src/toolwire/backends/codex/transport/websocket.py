"""A running app-server, reached as a client of its WebSocket (`codex app-server --listen ws://127.0.0.1:PORT`)."""

from __future__ import annotations

import asyncio
import base64
import secrets
import ssl
from contextlib import suppress
from urllib.parse import SplitResult, urlsplit

from ....errors import UpstreamError, quote
from ....wire.websocket import BINARY, CLOSE, PING, PONG, TEXT, BadFrame, FrameReader, accept_of, frame
from ...sessions import SessionLost

_CONNECT_SECONDS = 10.0
_CHUNK = 1 << 18
_CLOSE_SECONDS = 1.0


def is_address(command: tuple[str, ...]) -> bool:
    return len(command) == 1 and command[0].startswith(("ws://", "wss://"))


async def connect(address: str, token: str = "") -> WebSocket:
    """Raises UpstreamError if there is no WebSocket server at the address."""
    shown = "the address"
    try:
        parts = urlsplit(address)
        shown = f"{parts.scheme}://{parts.hostname}:{_port(parts)}"  # the rest may hold a secret
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                parts.hostname,
                _port(parts),
                ssl=ssl.create_default_context() if parts.scheme == "wss" else None,
            )
            try:
                await _shake_hands(reader, writer, parts, token)
            except BaseException:
                writer.transport.abort()
                raise
    except (OSError, TimeoutError, EOFError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else "there is no response"
        raise UpstreamError(
            f"no app-server was reached at {quote(shown)}: {why}.",
            code="codex_not_started",
            hint="Start `codex app-server --listen ws://127.0.0.1:PORT` there, or correct the address in command.",
        ) from None
    return WebSocket(reader, writer, shown)


class WebSocket:
    """An AppServerChannel to a process that was started by the user."""

    pid = 0

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, shown: str) -> None:
        self._reader = reader
        self._writer = writer
        self._shown = shown
        self._frames = FrameReader()
        self._fault = ""

    async def send(self, line: bytes) -> None:
        await self._write(TEXT, line.rstrip(b"\n"))

    async def receive(self) -> bytes:
        """At least one whole message, each a line."""
        lines: list[bytes] = []
        while not lines and not self._fault:
            try:
                data = await self._reader.read(_CHUNK)
                if not data:
                    return b""
                for incoming in self._frames.feed(data):
                    if incoming.kind in (TEXT, BINARY):
                        # Between the members of JSON a line break is the same as a space.
                        lines.append(incoming.data.replace(b"\n", b" ") + b"\n")
                    elif incoming.kind == PING:
                        await self._write(PONG, incoming.data)
                    elif incoming.kind == CLOSE:
                        reason = incoming.data[2:].decode("utf-8", "replace")
                        self._fault = f"it said {quote(reason)}" if reason else "it sent a close frame"
            except (OSError, SessionLost):
                break
            except BadFrame as error:
                self._fault = str(error)
        return b"".join(lines)

    def exit_reason(self) -> str:
        return f"the app-server at {quote(self._shown)} has closed the connection" + (
            f": {self._fault}." if self._fault else "."
        )

    def skipped_tools(self) -> frozenset[str]:
        return frozenset()

    def last_output(self) -> str:
        return ""

    async def close(self) -> None:
        with suppress(SessionLost, OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._write(CLOSE, (1000).to_bytes(2, "big"))
                self._writer.close()
                await self._writer.wait_closed()
        self._writer.transport.abort()

    async def _write(self, kind: int, data: bytes) -> None:
        if self._writer.is_closing():
            raise SessionLost(self.exit_reason())
        try:
            self._writer.write(frame(kind, data, secrets.token_bytes(4)))
            await self._writer.drain()
        except OSError:
            raise SessionLost(self.exit_reason()) from None


async def _shake_hands(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parts: SplitResult, token: str
) -> None:
    key = base64.b64encode(secrets.token_bytes(16)).decode()
    lines = [
        f"GET {parts.path or '/'}{'?' + parts.query if parts.query else ''} HTTP/1.1",
        f"Host: {parts.hostname}:{_port(parts)}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    await writer.drain()
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise ValueError("its answer is no HTTP") from None
    status, *fields = head.decode("latin-1").split("\r\n")
    if status.split(" ")[1:2] != ["101"]:
        raise ValueError(f"it answered {quote(status)}")
    headers = {name.strip().lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    if headers.get("sec-websocket-accept") != accept_of(key):
        raise ValueError("it is no WebSocket")


def _port(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "wss" else 80)
