"""Calls of several rounds, with a server of the specification and with one of the official SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import types
from mcp.server.lowlevel import Server

from tests.tools.mcp.servers import over_http, run, text_of
from tests.tools.mcp.stateless_server import StatelessServer, question, text
from toolwire.tools.mcp import MCP
from toolwire.tools.mcp.input_rounds import MOST_ROUNDS
from toolwire.types import JsonObject

pytestmark = pytest.mark.slow


def using(application: Any, test: Callable[[MCP], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with over_http(application) as url, MCP(url, timeout=5.0, **options) as opened:
            await test(opened)

    asyncio.run(main())


async def answers(message: str, schema: JsonObject) -> JsonObject | None:
    assert schema["properties"] == {"name": {"type": "string"}}
    return {"name": f"Ada, asked {message}"}


async def declines(message: str, schema: JsonObject) -> JsonObject | None:
    return None


async def fails(message: str, schema: JsonObject) -> JsonObject | None:
    raise OSError("the terminal is gone")


def greet(params: dict[str, Any]) -> dict[str, Any]:
    """Asks for a name, and greets it."""
    if "inputResponses" not in params:
        return question("who is it?")
    assert params["requestState"] == "s1"
    answer = params["inputResponses"]["who"]
    return text(f"{answer['action']}: {answer.get('content', {}).get('name')}")


@pytest.mark.parametrize(
    ("elicit", "said"), [(answers, "accept: Ada, asked who is it?"), (declines, "decline: None")], ids=["yes", "no"]
)
def test_a_question_is_answered_in_a_second_request(elicit: Any, said: str) -> None:
    server = StatelessServer(greet)

    async def test(opened: MCP) -> None:
        assert text_of(await run(opened, "do", {"a": 1})) == said
        first, second = server.received["tools/call"]
        assert first["arguments"] == second["arguments"] == {"a": 1}
        assert "elicitation" in first["_meta"]["io.modelcontextprotocol/clientCapabilities"]

    using(server, test, elicit=elicit)


@pytest.mark.parametrize(
    ("elicit", "reason"), [(None, "who is it?"), (fails, "the client failed to answer")], ids=["nothing", "error"]
)
def test_a_question_without_an_answer_is_a_failed_call(elicit: Any, reason: str) -> None:
    server = StatelessServer(greet)

    async def test(opened: MCP) -> None:
        output = await run(opened, "do")
        assert output.is_error
        assert reason in text_of(output)
        capabilities = server.received["tools/call"][0]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert ("elicitation" in capabilities) == (elicit is not None)
        server.call = lambda params: text("well")
        assert text_of(await run(opened, "do")) == "well"  # the connection is still good

    using(server, test, elicit=elicit)


def test_a_call_is_repeated_with_its_state() -> None:
    def call(params: dict[str, Any]) -> dict[str, Any]:
        count = int(params.get("requestState", "0"))
        return text("done") if count == 3 else {"resultType": "input_required", "requestState": str(count + 1)}

    server = StatelessServer(call)

    async def test(opened: MCP) -> None:
        assert text_of(await run(opened, "do")) == "done"
        assert [params.get("requestState") for params in server.received["tools/call"]] == [None, "1", "2", "3"]

    using(server, test)


def test_endless_questions_end() -> None:
    server = StatelessServer(lambda params: question("again?"))

    async def test(opened: MCP) -> None:
        output = await run(opened, "do")
        assert output.is_error
        assert f"more than {MOST_ROUNDS} times" in text_of(output)
        assert len(server.received["tools/call"]) == MOST_ROUNDS + 1

    using(server, test, elicit=answers)


@pytest.mark.parametrize("is_stateless", [True, False])
def test_a_server_of_the_sdk_asks(is_stateless: bool) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="do", input_schema={"type": "object"})])

    async def call_tool(context: Any, params: Any) -> Any:
        if not params.input_responses:
            asked = types.ElicitRequest(params=types.ElicitRequestFormParams(message="who?", requested_schema=schema))
            return types.InputRequiredResult(input_requests={"who": asked}, request_state="x")
        answer = params.input_responses["who"]
        return types.CallToolResult(content=[types.TextContent(text=f"hello {answer.content['name']}")])

    server: Server[Any] = Server("asks", on_list_tools=list_tools, on_call_tool=call_tool)
    application = server.streamable_http_app(json_response=is_stateless, stateless_http=is_stateless)

    async def test(opened: MCP) -> None:
        assert text_of(await run(opened, "do")) == "hello Ada, asked who?"

    using(application, test, elicit=answers)
