"""The program that Codex starts for a thread, as a process of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from toolwire.backends.codex import bridge_stdio
from toolwire.backends.codex.bridge import Bridge, Lane
from toolwire.types import Media, Text, Tool, ToolCall, ToolResult

pytestmark = pytest.mark.slow

LOOK = Tool(name="look", description="Looks.", schema={"type": "object", "properties": {"at": {"type": "string"}}})
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def run(test: Callable[[Bridge, Lane], Awaitable[None]]) -> None:
    async def main() -> None:
        bridge = Bridge()
        try:
            async with asyncio.timeout(20):
                await test(bridge, await bridge.lane((LOOK,)))
        finally:
            await bridge.close()

    asyncio.run(main())


async def started(lane: Lane) -> asyncio.subprocess.Process:
    """As Codex starts it, with nothing in its environment."""
    config = lane.config(60)
    command = [config["mcp_servers.gw.command"], *config["mcp_servers.gw.args"]]
    return await asyncio.create_subprocess_exec(*command, env={}, **PIPES)


async def ask(process: asyncio.subprocess.Process, **message: Any) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    return json.loads(await process.stdout.readline())


def test_it_carries_a_conversation_and_leaves_with_codex() -> None:
    async def test(bridge: Bridge, lane: Lane) -> None:
        process = await started(lane)
        assert process.stdin is not None
        assert process.stdout is not None
        assert (await ask(process, id=0, method="initialize", params={}))["result"]["capabilities"] == {"tools": {}}
        assert (await ask(process, id=1, method="tools/list"))["result"]["tools"][0]["name"] == "look"
        big = "é" * 300_000
        process.stdin.write(
            json.dumps({"id": 2, "method": "tools/call", "params": {"name": "look", "arguments": {"at": big}}}).encode()
            + b"\n"
        )
        call = ToolCall(id="c", name="look", raw=json.dumps({"at": big}))
        lane.give(call, ToolResult(call_id="c", parts=(Text(text="ß" * 300_000),)))
        found = b""
        while not found.endswith(b"\n"):
            found += await process.stdout.read(1 << 16)
        assert json.loads(found)["result"]["content"][0]["text"] == "ß" * 300_000
        process.stdin.close()
        assert await process.wait() == 0
        assert process.stderr is not None
        assert await process.stderr.read() == b""

    run(test)


def test_it_leaves_when_the_gateway_hangs_up() -> None:
    async def test(bridge: Bridge, lane: Lane) -> None:
        process = await started(lane)
        await ask(process, id=1, method="ping")
        lane.close()
        assert await process.wait() == 0
        assert process.stdin is not None
        process.stdin.close()

    run(test)


def test_a_wrong_token_ends_it() -> None:
    async def test(bridge: Bridge, lane: Lane) -> None:
        lane.token = "0" * 32
        process = await started(lane)
        assert await process.wait() == 0
        assert process.stdin is not None
        process.stdin.close()

    run(test)


def test_without_a_gateway_it_says_so(tmp_path: Path) -> None:
    def outcome(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-I", bridge_stdio.__file__, *arguments],
            capture_output=True,
            text=True,
            env={},
            timeout=20,
        )
        return done.returncode, done.stderr

    code, said = outcome(str(tmp_path / "s"), "token")
    assert (code, said) == (1, "the gateway is not reached: No such file or directory.\n")
    code, said = outcome()
    assert code == 2
    assert "expected two arguments" in said


def test_the_official_client_understands_it() -> None:
    async def test(bridge: Bridge, lane: Lane) -> None:
        config = lane.config(60)
        parameters = StdioServerParameters(
            command=config["mcp_servers.gw.command"], args=config["mcp_servers.gw.args"], env={}
        )
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert [(tool.name, tool.description, tool.input_schema) for tool in tools] == [
                ("look", "Looks.", LOOK.schema)
            ]
            await lane.ready(1)
            calls = [asyncio.create_task(session.call_tool("look", {"at": at})) for at in ("a", "b")]
            while lane.waiting < 2:
                await asyncio.sleep(0.01)
            picture = Media(kind="image", mime="image/png", data="AAAA")
            results = (
                ToolResult(call_id="b", parts=(Text(text="B"), picture)),
                ToolResult(call_id="a", parts=(Text(text="A"),), is_error=True),
            )
            for one in results:
                lane.give(ToolCall(id=one.call_id, name="look", raw=json.dumps({"at": one.call_id})), one)
            first, second = await asyncio.gather(*calls)
            assert first.is_error
            assert first.content[0].text.endswith("A")
            assert not second.is_error
            assert [part.type for part in second.content] == ["text", "image"]

    run(test)
