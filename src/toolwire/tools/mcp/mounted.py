"""An MCP server that runs as long as the gateway.

A task of its own starts it, reads its tools, and restarts it after a failure, so that requests do not wait for any of that: they get the last
known list. Only the first requests wait until the first attempt has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from ...errors import GatewayError
from .source import MCP, MCPTool

_log = logging.getLogger("toolwire.tools.mcp")
_INTERVAL = 5.0  # seconds between two checks; one of a healthy server sends nothing
_FIRST_SECONDS = 20.0  # for requests that arrive before the server has started


class MountedServer:
    """problem: why its tools cannot be used now, "" if they can. version: changes with the list of tools."""

    def __init__(self, source: MCP, *, interval: float = _INTERVAL, first_seconds: float = _FIRST_SECONDS) -> None:
        self._source = source
        self._interval = interval
        self._first_seconds = first_seconds
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._tools: Sequence[MCPTool] = ()
        self.problem = "it has not started yet"
        self.version = 0

    @property
    def name(self) -> str:
        return self._source.name

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"toolwire-mount-{self.name}")

    async def tools(self) -> Sequence[MCPTool]:
        """The last known tools; waits a while for a server that starts for the first time."""
        if not self._tried.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._tried.wait(), self._first_seconds)
        return self._tools

    async def close(self) -> None:
        """Returns when the server has exited."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self._source.close()

    async def _run(self) -> None:
        while True:
            await self._check()
            self._tried.set()
            await asyncio.sleep(self._interval)

    async def _check(self) -> None:
        try:
            tools = await self._source.tools()
            problem = self._source.problem
        except (GatewayError, OSError) as error:  # the SDK is missing, or no process can be started
            tools, problem = self._tools, str(error)
        if tools is not self._tools:
            self._tools = tools
            self.version += 1
        if problem and problem != self.problem:
            _log.warning("%s", problem)
        elif not problem and self.problem and self._tried.is_set():
            _log.warning("MCP server %s works again, with %d tools.", self.name, len(tools))
        self.problem = problem
