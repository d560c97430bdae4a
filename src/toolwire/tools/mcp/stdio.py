"""Transport for a server that is a child process: one JSON message per line on its standard input and output.

Unlike the SDK's own, it is safe against hostile or broken servers: lines and garbage are bounded, the end of standard error is available for
error messages, and no process of the group outlives the session.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import anyio
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from ...errors import quote
from ...subprocesses import close_pipes, kill_group, start, stop
from .target import Target

LONGEST_LINE = 32 << 20  # an image in base64 is one line
MOST_GARBAGE = 1 << 20  # bytes since the last valid message
_MAX_STDERR = 8192
_GRACE = 1.0  # seconds to exit after the end of input
_CHUNK = 1 << 16


class StdioTransport:
    """Enter and exit it in one task. ended is set when the server sends nothing more; fault is the reason, if known."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.ended = asyncio.Event()
        self.fault = ""
        self._stderr = b""
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def stderr(self) -> str:
        """The end of what it wrote to standard error."""
        return self._stderr.decode("utf-8", "replace")

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process is not None else None

    async def __aenter__(self) -> tuple[Any, Any]:
        environment = get_default_environment() | self._target.env
        self._process = process = await start(*self._target.command, environment=environment)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._to_session, self._incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._outgoing, self._from_session = anyio.create_memory_object_stream[SessionMessage](0)
        self._tasks = [
            asyncio.create_task(self._read(process.stdout)),
            asyncio.create_task(self._write(process.stdin)),
            asyncio.create_task(self._read_errors(process.stderr)),
        ]
        return self._incoming, self._outgoing

    async def __aexit__(self, *error: Any) -> None:
        with anyio.CancelScope(shield=True):
            await self._stop()

    def abandon(self) -> None:
        """Kills the server when its event loop is closed."""
        if self._process is not None:
            kill_group(self._process)

    async def _read(self, stdout: asyncio.StreamReader) -> None:
        lines = _Lines()
        try:
            while chunk := await stdout.read(_CHUNK):
                for line in lines.feed(chunk):
                    await self._receive(line, lines)
                if len(lines.rest) > LONGEST_LINE:
                    self.fault = f"it wrote a line of over {LONGEST_LINE} bytes"
                if self.fault:
                    break
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the pipe broke or the session is closed
        finally:
            self.ended.set()
            self._to_session.close()
        # A server that blocks on its output cannot read the end of its input.
        while not self.fault and await stdout.read(_CHUNK):
            pass

    async def _receive(self, line: bytes, lines: _Lines) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            lines.garbage += len(line) + 1
        else:
            lines.garbage = 0
            await self._to_session.send(SessionMessage(message))
        if lines.garbage > MOST_GARBAGE:
            self.fault = f"it writes something that is not MCP to its standard output, such as {quote(line[:80].decode('utf-8', 'replace'))}"

    async def _write(self, stdin: asyncio.StreamWriter) -> None:
        try:
            async for message in self._from_session:
                stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()
        except (OSError, ValueError):
            self.ended.set()
            self._to_session.close()
        finally:
            self._from_session.close()

    async def _read_errors(self, stderr: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while chunk := await stderr.read(_CHUNK):
                self._stderr = (self._stderr + chunk)[-_MAX_STDERR:]

    async def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        if self.fault:
            kill_group(process)
        await stop(process, _GRACE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in (self._to_session, self._incoming, self._outgoing, self._from_session):
            stream.close()
        close_pipes(process)
        self.ended.set()


class _Lines:
    """Splits bytes into lines, in linear time; the caller checks the size of rest and garbage."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self.garbage = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        *whole, rest = chunk.split(b"\n")
        if not whole:
            self.rest += rest
            return []
        whole[0] = bytes(self.rest) + whole[0]
        self.rest = bytearray(rest)
        return [line for line in whole if line.strip()]
