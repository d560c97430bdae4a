"""A server that runs as long as the gateway: listed beside the requests, restarted after a failure."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable

import pytest

from tests.tools.mcp.servers import bare, is_running, text_of
from toolwire.tools.mcp import MCP
from toolwire.tools.mcp.mounted import MountedServer

pytestmark = pytest.mark.slow  # processes


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


async def pid_of(server: MountedServer) -> int:
    where = next(tool for tool in await server.tools() if tool.remote == "where")
    text = text_of(await where.run({}))
    return int(text.partition('"pid": ')[2].partition(",")[0])


def test_it_is_started_listed_and_stopped() -> None:
    async def run() -> int:
        server = MountedServer(MCP(bare(), name="box"))
        server.start()
        assert "box__echo" in [tool.tool.name for tool in await server.tools()]
        assert (server.problem, server.version) == ("", 1)
        pid = await pid_of(server)
        await server.close()
        return pid

    assert not is_running(asyncio.run(run()))


def test_it_is_restarted_without_a_request(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        server = MountedServer(MCP(bare(), name="box"), interval=0.02)
        server.start()
        pid = await pid_of(server)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not is_running(pid))
        await until(lambda: server.version == 2)
        assert await pid_of(server) != pid
        await server.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())


def test_a_server_that_does_not_start_has_a_problem_and_no_tools(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        server = MountedServer(MCP(bare("quits"), name="box"))
        server.start()
        assert await server.tools() == ()
        assert "cannot find my settings" in server.problem
        await server.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "cannot find my settings" in caplog.text


def test_a_request_waits_only_a_moment_for_the_first_start() -> None:
    async def run() -> None:
        server = MountedServer(MCP(bare("mute"), name="slow"), first_seconds=0.05)
        server.start()
        assert await server.tools() == ()
        assert server.problem == "it has not started yet"
        await server.close()

    asyncio.run(run())


def test_a_changed_list_is_read_again() -> None:
    async def run() -> None:
        server = MountedServer(MCP(bare(), name="box"), interval=0.02)
        server.start()
        grow = next(tool for tool in await server.tools() if tool.remote == "grow")
        await grow.run({})
        await until(lambda: server.version == 2)
        assert "box__grown" in [tool.tool.name for tool in await server.tools()]
        await server.close()

    asyncio.run(run())
