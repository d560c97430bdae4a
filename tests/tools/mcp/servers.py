"""MCP servers for the tests: commands that start one, and one over HTTP in the running event loop."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolwire.tools.base import Output
from toolwire.tools.mcp import MCP

HERE = Path(__file__).parent


def bare(*habits: str) -> list[str]:
    """The command of the server that misbehaves."""
    return [sys.executable, "-S", str(HERE / "bare_server.py"), *habits]


def with_sdk() -> list[str]:
    """The command of the server that is made with the official SDK."""
    return [sys.executable, str(HERE / "sdk_server.py")]


@asynccontextmanager
async def over_http(application: Any) -> AsyncIterator[str]:
    """The address of an ASGI application that is served on a free port."""
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_level="critical", timeout_graceful_shutdown=1, ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await task
        listening.close()


async def run(source: MCP, name: str, arguments: dict[str, Any] | None = None) -> Output:
    """Runs the tool of this name, without the server's."""
    tools = {tool.tool.name.partition("__")[2]: tool for tool in await source.tools()}
    return await tools[name].run(arguments or {})


def text_of(output: Output) -> str:
    return "".join(getattr(part, "text", "") for part in output.parts)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # One that has ended and waits for its parent counts as ended.
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (ProcessLookupError, FileNotFoundError):
        return False
