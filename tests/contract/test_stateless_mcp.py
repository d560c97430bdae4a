"""Servers of protocol 2026-07-28: discovery, requests without a session, and how long their lists are fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.tools.mcp.servers import over_http, run, text_of
from tests.tools.mcp.stateless_server import StatelessServer, text
from toolwire.tools.mcp import MCP

pytestmark = pytest.mark.slow


def using(application: Any, test: Callable[[MCP], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with over_http(application) as url, MCP(url, timeout=5.0, **options) as opened:
            await test(opened)

    asyncio.run(main())


def test_a_server_is_discovered_and_has_no_session() -> None:
    server = StatelessServer(lambda params: text(f"did {params['arguments']['a']}"))

    async def test(opened: MCP) -> None:
        assert text_of(await run(opened, "do", {"a": 7})) == "did 7"
        assert server.methods[0] == "server/discover"
        assert not {"initialize", "ping"} & set(server.methods)

    using(server, test)


@pytest.mark.parametrize(("ttl_ms", "age"), [(60_000, 60.0), (0, 5.0), (100, 5.0)])
def test_a_list_is_read_again_when_it_is_no_longer_fresh(ttl_ms: int, age: float) -> None:
    server = StatelessServer(lambda params: text("x"), ttl_ms=ttl_ms)
    now = 1000.0

    async def test(opened: MCP) -> None:
        nonlocal now
        server.names.append("more")
        now += age - 0.1
        assert len(await opened.tools()) == 1
        now += 0.2
        assert len(await opened.tools()) == 2
        assert len(server.received["tools/list"]) == 2

    using(server, test, clock=lambda: now)


def test_a_changed_header_is_learned_from_the_list() -> None:
    server = StatelessServer(lambda params: text("done"), ttl_ms=600_000)

    async def test(opened: MCP) -> None:
        await opened.tools()
        server.schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
        assert text_of(await run(opened, "do", {"region": "eu"})) == "done"
        assert len(server.received["tools/call"]) == 2

    using(server, test)


def test_a_server_that_changes_its_version_is_discovered_again() -> None:
    server = StatelessServer(lambda params: text("done"))

    async def test(opened: MCP) -> None:
        server.version = "2099-01-01"
        output = await run(opened, "do")
        assert output.is_error
        server.version = "2026-07-28"
        assert text_of(await run(opened, "do")) == "done"
        assert server.methods.count("server/discover") >= 2

    using(server, test)
