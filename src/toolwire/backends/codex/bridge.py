"""The gateway's end of the bridge: one socket for all threads, and for each thread a lane that is known by its token.

Codex starts `bridge_stdio.py` for a thread, which connects here; from then on this is an MCP server with the tools of one request
(`bridge_talk.py`). Closing a lane hangs up, and the program that Codex started leaves by itself.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import UpstreamError
from ...types import JsonObject, Tool, ToolCall, ToolResult
from . import bridge_stdio
from .bridge_talk import Talk

SERVER = "gw"
PREFIX = f"mcp__{SERVER}__"  # before the name of each tool, as the model sees it
LONGEST_NAME = 64 - len(PREFIX)  # Codex writes a hash into what is longer
LONGEST_LINE = 32 << 20  # arguments are one line
_LONGEST_PATH = 100  # bytes of a socket's path: 104 on some systems, 108 on others, with the zero at its end
_TOKEN = 32  # letters
_INTRODUCTION = 10.0  # seconds in which the token must come
_STARTING = 30.0  # seconds Codex gives the program to start


class Lane:
    """One thread's way to the tools of a request."""

    def __init__(self, bridge: Bridge, tools: Sequence[Tool]) -> None:
        self.token = secrets.token_hex(_TOKEN // 2)
        self._bridge = bridge
        self._talk = Talk(tools)
        self._writer: asyncio.StreamWriter | None = None
        self._moved = asyncio.Event()  # set when there is something new to know for who waits
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Calls that Codex waits for."""
        return self._talk.waiting

    @property
    def is_connected(self) -> bool:
        return self._writer is not None

    def config(self, seconds: float) -> JsonObject:
        """Members for the config of a thread, which then starts the bridge; seconds: so long may a call wait for its result."""
        start = f"mcp_servers.{SERVER}"
        return {
            f"{start}.command": sys.executable,
            f"{start}.args": ["-I", bridge_stdio.__file__, self._bridge.path, self.token],
            f"{start}.startup_timeout_sec": _STARTING,
            f"{start}.tool_timeout_sec": seconds,
        }

    async def ready(self, seconds: float = _STARTING) -> None:
        """Returns when Codex knows the tools. Raises UpstreamError where it does not come to that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self._talk.is_listed and not self._is_closed:
                    self._moved.clear()
                    await self._moved.wait()
        if not self._talk.is_listed or self._is_closed:
            raise UpstreamError(
                "Codex has not asked for the tools that it was offered.",
                code="codex_bridge_failed",
                hint='Set tier = "sentinel" for this back end, or install a newer version of Codex.',
                retryable=True,
            )

    def give(self, call: ToolCall, result: ToolResult) -> None:
        """At once or as soon as Codex asks for it."""
        self._write(self._talk.give(call, result))

    def close(self) -> None:
        """Hangs up. Safe to call twice."""
        self._is_closed = True
        self._moved.set()
        self._bridge.lanes.pop(self.token, None)
        if self._writer is not None:
            self._writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until one side hangs up, or says something that is too long."""
        self._writer = writer
        try:
            while line := await reader.readline():
                self._write(self._talk.feed(line))
                await writer.drain()
                self._moved.set()
        except (OSError, ValueError):  # ValueError: the line is too long
            pass
        finally:
            self._writer = None
            self.close()

    def _write(self, data: bytes) -> None:
        if data and self._writer is not None:
            self._writer.write(data)


class Bridge:
    """Listens from the first lane on. folder is where the socket is best kept; it is in one of ours alone anyway."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = ""
        self.folder = folder
        self.lanes: dict[str, Lane] = {}
        self._own = ""
        self._starting = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def connections(self) -> int:
        return len(self._connections)

    async def lane(self, tools: Sequence[Tool]) -> Lane:
        """Raises UpstreamError where no socket can be made."""
        async with self._starting:
            if self._server is not None and not os.path.exists(self.path):  # whoever cleans up has thought it old
                self._server.close()
                self._server = None
            if self._server is None:
                await self._listen()
        lane = Lane(self, tools)
        self.lanes[lane.token] = lane
        return lane

    async def close(self) -> None:
        """Everything hangs up, and the socket is gone when this returns. Safe to call twice."""
        for lane in list(self.lanes.values()):
            lane.close()
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._connections.values():
            writer.transport.abort()
        await asyncio.gather(*self._connections, return_exceptions=True)
        shutil.rmtree(self._own, ignore_errors=True)

    async def _listen(self) -> None:
        try:
            self._own = _short_folder(self.folder)
            self.path = os.path.join(self._own, "s")
            self._server = await asyncio.start_unix_server(self._connected, self.path, limit=LONGEST_LINE)
            os.chmod(self.path, 0o600)
        except (OSError, AttributeError, NotImplementedError) as error:  # the last two: there are none on this system
            shutil.rmtree(self._own, ignore_errors=True)
            why = getattr(error, "strerror", None) or "there are none on this system"
            raise UpstreamError(
                f"no socket for the bridge to Codex could be made: {why}.",
                code="codex_bridge_failed",
                hint='Set tier = "sentinel" for this back end, or TMPDIR to a folder with a short name.',
            ) from None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            lane = await self._introduced(reader)
            if lane is not None:
                await lane.serve(reader, writer)
        finally:
            writer.transport.abort()
            del self._connections[task]

    async def _introduced(self, reader: asyncio.StreamReader) -> Lane | None:
        """The lane of the token that comes first; nobody gets one that has its connection already."""
        try:
            async with asyncio.timeout(_INTRODUCTION):
                token = await reader.readexactly(_TOKEN + 1)
        except (OSError, EOFError, TimeoutError):
            return None
        lane = self.lanes.get(token.decode("ascii", "replace").strip())
        return None if lane is None or lane.is_connected else lane


def _short_folder(parent: Path | None) -> str:
    """A new folder of ours alone, in the first place whose path leaves room for the name of a socket."""
    room = _LONGEST_PATH - len("/tw-xxxxxxxx/s")
    places = [*([str(parent)] if parent is not None else []), tempfile.gettempdir(), "/tmp"]
    where = next((place for place in places if len(os.fsencode(place)) <= room), None)
    return tempfile.mkdtemp(prefix="tw-", dir=where)
