"""A process that serves MCP on its standard input and output, with a gateway of its own and no port."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from ...config.file import Config
from ...errors import ConfigError
from ..app import App
from .stdio import StdioServer

_CHUNK = 1 << 16


async def serve_stdio(config: Config) -> None:
    """Returns at the end of the input. Raises ConfigError where the gateway does not start."""
    output = os.dup(1)
    os.dup2(2, 1)  # what anything else prints must not reach the client
    headers = {"host": "localhost"}
    if config.server.keys:
        headers["authorization"] = f"Bearer {config.server.keys[0].reveal()}"
    lock = asyncio.Lock()

    async def write(line: bytes) -> None:
        async with lock:
            await asyncio.to_thread(_write_all, output, line)

    async with _running(_quiet(config)) as app:
        await StdioServer(app, headers, write).serve(_input())


def _quiet(config: Config) -> Config:
    """Without recording, as there is no inspector; and with warnings alone, because clients show what a server logs."""
    server = replace(config.server, log="warning") if config.server.log == "info" else config.server
    return replace(config, server=server, flows=replace(config.flows, enabled=False))


@asynccontextmanager
async def _running(config: Config) -> AsyncIterator[App]:
    app, wanted = App(config), asyncio.Queue[MutableMapping[str, Any]]()
    reported = asyncio.Queue[MutableMapping[str, Any]]()
    wanted.put_nowait({"type": "lifespan.startup"})
    task = asyncio.create_task(app({"type": "lifespan"}, wanted.get, reported.put))
    started = await reported.get()
    if started["type"] == "lifespan.startup.failed":
        await task
        app.close_log()
        raise ConfigError(started["message"])
    try:
        yield app
    finally:
        wanted.put_nowait({"type": "lifespan.shutdown"})
        await task


async def _input() -> AsyncIterator[bytes]:
    """Read by a daemon thread: a pipe, a file and a terminal work in the same way, and a blocked read does not hold up the exit."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes](maxsize=8)

    def read() -> None:
        while True:
            try:
                chunk = os.read(0, _CHUNK)
            except OSError:
                chunk = b""
            try:
                asyncio.run_coroutine_threadsafe(queue.put(chunk), loop).result()
            except RuntimeError:  # the loop is closed
                return
            if not chunk:
                return

    threading.Thread(target=read, name="toolwire-mcp-input", daemon=True).start()
    while chunk := await queue.get():
        yield chunk


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
