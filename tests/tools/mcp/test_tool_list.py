"""Lists as servers give them: wrong tools are left out one by one, and large lists are cut before they are read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, JSONRPCResponse

from tests.tools.mcp.bare_server import SPOILED
from tests.tools.mcp.servers import bare, run, text_of
from toolwire.tools.mcp import MCP
from toolwire.tools.mcp.tool_list import MOST_TOOLS, ToolList

VERSION = "2025-11-25"


def page(*tools: Any, **more: Any) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": list(tools), **more})


def tool(name: str, schema: Any = None) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"} if schema is None else schema}


def filtered(listed: ToolList, message: JSONRPCResponse, *, is_asked: bool = True) -> list[Any]:
    if is_asked:
        listed.note_request(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))
    asyncio.run(listed.filter(message, VERSION))
    found: list[Any] = message.result["tools"]
    return found


def test_one_invalid_tool_does_not_affect_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with MCP(bare("spoiled"), name="x") as opened:
            names = {each.tool.name for each in await opened.tools()}
            assert {"x__echo", "x__die", "x__spawn"} <= names
            assert text_of(await run(opened, "echo", {"a": 1})) == '{"a": 1}'
            left_out = [at for at in range(len(SPOILED)) if f"x__bad{at}" not in names]
            assert set(left_out) >= {0, 1, 2, 3, 4, 5, 6, 9}
            for at in left_out:
                assert any(f'its tool "bad{at}" is left out: ' in warning for warning in opened.warnings)
            opened._mark_stale()
            assert {each.tool.name for each in await opened.tools()} == names

    asyncio.run(main())
    warned = [record.getMessage() for record in caplog.records if record.name == "toolwire.tools.mcp"]
    assert len(warned) == len(set(warned)) >= 10


@pytest.mark.slow
def test_a_list_that_is_too_long_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with MCP(bare("crowd"), name="x") as opened:
            assert len(await opened.tools()) == MOST_TOOLS
            assert ["longer than 2,000 tools" in warning for warning in opened.warnings] == [True]

    asyncio.run(main())
    assert len(caplog.records) == 1


def test_pages_share_the_room() -> None:
    listed = ToolList()
    listed.start()
    listed.take([f"t{at}" for at in range(MOST_TOOLS - 2)])
    assert len(filtered(listed, page(*(tool(f"u{at}") for at in range(5))))) == 2
    assert listed.is_cut
    listed.take(["u0", "u1"])
    assert listed.is_full
    listed.start()
    assert not listed.is_cut
    assert len(filtered(listed, page(*(tool(f"u{at}") for at in range(5))))) == 5


def test_only_answers_to_requests_for_a_list_are_touched() -> None:
    listed = ToolList()
    listed.start()
    listed.is_checked = True
    assert filtered(listed, page("no tool"), is_asked=False) == ["no tool"]
    listed.note_request(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call"))
    assert filtered(listed, page("no tool"), is_asked=False) == ["no tool"]
    assert filtered(listed, page("no tool")) == []
    assert filtered(listed, page("no tool"), is_asked=False) == ["no tool"]


def test_an_invalid_list_is_left_to_the_sdk() -> None:
    listed = ToolList()
    for result in ({}, {"tools": None}, {"tools": {"a": 1}}):
        listed.note_request(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))
        message = JSONRPCResponse(jsonrpc="2.0", id=1, result=dict(result))
        asyncio.run(listed.filter(message, VERSION))
        assert message.result == result


def test_validation_yields_to_other_tasks() -> None:
    async def main() -> None:
        listed = ToolList()
        listed.start()
        listed.is_checked = True
        listed.note_request(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list"))
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await listed.filter(page(*(tool(f"t{at}") for at in range(1000))), VERSION)
        counting.cancel()
        assert turns >= 10

    asyncio.run(main())


def test_tools_that_the_sdk_drops_are_reported_with_the_reason() -> None:
    listed = ToolList()
    listed.start()
    wrong = {"type": "object", "properties": {"a": {"type": "object", "x-mcp-header": "A"}}}
    filtered(listed, page(tool("right"), tool("wrong", wrong)))
    listed.take(["right"])
    assert list(listed.dropped) == ["wrong"]
    assert "x-mcp-header" in listed.dropped["wrong"]


def test_names_of_many_wrong_tools_are_bounded() -> None:
    listed = ToolList()
    listed.start()
    listed.is_checked = True
    assert filtered(listed, page(*({"name": f"t{at}"} for at in range(500)))) == []
    assert 0 < len(listed.dropped) <= 50


def test_messages_of_other_kinds_pass() -> None:
    listed = ToolList()
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
    listed.note_request(request)
    asyncio.run(listed.filter(SessionMessage(request).message, VERSION))
