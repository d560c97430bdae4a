"""Servers by streamable HTTP, of the official SDK and hand-written ones that break the rules."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.tools.mcp.sdk_server import BADLY_HEADED, HEADED, Everything
from tests.tools.mcp.servers import over_http, run, text_of
from toolwire.errors import ConfigError
from toolwire.tools.mcp import MCP, http

pytestmark = pytest.mark.slow

Answer = Callable[[dict[str, Any], dict[str, str]], tuple[int, dict[str, str], bytes]]


def older(answer: Answer) -> Any:
    """An application of the older handshake, where `answer` says what becomes of requests after it."""
    sessions: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        body = b""
        while scope["method"] == "POST":
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, told, answered = _greet(scope["method"], body, headers, sessions, answer)
        start = [(key.encode(), value.encode()) for key, value in told.items()]
        await send({"type": "http.response.start", "status": status, "headers": start})
        await send({"type": "http.response.body", "body": answered})

    return application


def _greet(
    method: str, body: bytes, headers: dict[str, str], sessions: list[str], answer: Answer
) -> tuple[int, dict[str, str], bytes]:
    if method != "POST":
        return 405, {}, b""
    message = json.loads(body)
    if message["method"] == "initialize":
        sessions.append(f"session-{len(sessions)}")
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "older", "version": "1"},
        }
        return said(message, result, {"mcp-session-id": sessions[-1]})
    if message["method"] == "server/discover":
        return 400, {"content-type": "text/plain"}, b"what?"
    if "id" not in message:
        return 202, {}, b""
    if message["method"] == "tools/list":
        return said(message, {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]})
    return answer(message, headers)


def said(message: dict[str, Any], result: Any, more: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return 200, {"content-type": "application/json", **(more or {})}, body


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def using(application: Any, test: Callable[[MCP], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with over_http(application) as url, MCP(url, **{"timeout": 5.0, **options}) as opened:
            await test(opened)

    asyncio.run(main())


@pytest.mark.parametrize("is_plain", [False, True])
def test_a_server_of_the_sdk(is_plain: bool) -> None:
    everything = Everything()
    application = everything.server.streamable_http_app(json_response=is_plain, stateless_http=is_plain)

    async def test(opened: MCP) -> None:
        assert len(await opened.tools()) == 10
        assert text_of(await run(opened, "add", {"a": 1, "b": 2})) == "3"
        failed = await run(opened, "fails")
        assert (failed.is_error, text_of(failed)) == (True, "ran fails")
        assert len((await run(opened, "parts")).parts) == 6
        await run(opened, "grow")
        for _ in range(50):
            if len(await opened.tools()) == 11:
                break
            await asyncio.sleep(0.01)
        assert len(await opened.tools()) == 11

    using(application, test)


def noting(application: Any, seen: list[dict[str, str]]) -> Any:
    """The same application; seen gets the headers of each POST."""

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            seen.append({key.decode(): value.decode() for key, value in scope["headers"]})
        await application(scope, receive, send)

    return noted


@pytest.mark.parametrize("is_restarted", [False, True])
def test_arguments_are_repeated_in_headers_where_the_tool_says_so(is_restarted: bool) -> None:
    everything = Everything()
    everything.names = ["headed", "badly headed", "plain"]
    everything.schemas = {"headed": HEADED, "badly headed": BADLY_HEADED}
    seen: list[dict[str, str]] = []

    async def test(opened: MCP) -> None:
        tools = {each.tool.name.partition("__")[2]: each for each in await opened.tools()}
        assert tools.keys() == {"headed", "plain"}
        assert len(opened.warnings) == 1
        assert '"badly headed" is left out: ' in opened.warnings[0]
        assert "x-mcp-header" in opened.warnings[0]
        if is_restarted:  # as after the end of a session: the list is not read again for a call
            await opened.close()
        seen.clear()
        output = await tools["headed"].run({"region": "\u00fc", "deep": {"count": 7}})
        assert text_of(output) == "ran headed"
        [call] = [headers for headers in seen if headers.get("mcp-method") == "tools/call"]
        assert call["mcp-param-count"] == "7"
        assert call["mcp-param-region"].startswith("=?base64?")
        await tools["plain"].run({"region": "x"})
        assert not any(name.startswith("mcp-param") for name in seen[-1])

    using(noting(everything.server.streamable_http_app(), seen), test)


def test_cancelling_reaches_the_server() -> None:
    everything = Everything()

    async def test(opened: MCP) -> None:
        call = asyncio.create_task(run(opened, "slow"))
        await asyncio.sleep(0.2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        for _ in range(100):
            if everything.cancelled:
                break
            await asyncio.sleep(0.01)
        assert everything.cancelled == 1
        assert text_of(await run(opened, "add", {"a": 1})) == "1"

    using(everything.server.streamable_http_app(), test)


def test_an_unreachable_server_is_reported_and_reconnected() -> None:
    async def main() -> None:
        async with over_http(Everything().server.streamable_http_app()) as url:
            opened = MCP(url, timeout=2)
            await opened.open()
        lost = await opened.call("add", {})
        assert lost.is_error
        assert "All connection attempts failed" in text_of(lost)
        assert len(await opened.tools()) == 10
        await opened.close()

    asyncio.run(main())


def test_headers_are_sent_and_an_ended_session_is_replaced() -> None:
    seen: list[tuple[str, str]] = []

    def answer(message: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        seen.append((headers["authorization"], headers["mcp-session-id"]))
        return (404, {}, b"") if len(seen) == 1 else said(message, text("done"))

    async def test(opened: MCP) -> None:
        first = await run(opened, "do")
        assert first.is_error
        assert "HTTP 404" in text_of(first)
        assert text_of(await run(opened, "do")) == "done"
        assert seen == [("Bearer very-secret", "session-0"), ("Bearer very-secret", "session-1")]

    using(older(answer), test, headers={"Authorization": "Bearer very-secret"})


@pytest.mark.parametrize(
    ("answered", "words"),
    [
        ((500, {"content-type": "text/plain"}, b"oops"), "HTTP 500"),
        ((401, {}, b""), "HTTP 401"),
        ((200, {"content-type": "text/html"}, b"<html>"), "Unexpected content type"),
        ((200, {"content-type": "application/json"}, b"{broken"), "Failed to parse JSON response"),
        ((200, {"content-type": "application/json"}, b" " * 200_000), "over 100000 bytes"),
        (
            (200, {"content-type": "application/json", "content-encoding": "gzip"}, gzip.compress(b" " * 9)),
            "compressed",
        ),
        ((200, {"content-type": "text/event-stream"}, b"data: " + b"x" * 200_000 + b"\n\n"), "SSE stream failed"),
        ((200, {"content-type": "text/event-stream"}, b"data: {}\n\n"), "Failed to parse SSE message"),
        ((200, {"content-type": "text/event-stream"}, b": nothing\n\n"), "ended without a response"),
        ((202, {}, b""), "202 Accepted"),
        ((302, {"location": "http://127.0.0.1:9/else"}, b""), "not followed"),
    ],
)
def test_wrong_answers_are_errors_of_the_one_call(
    answered: tuple[int, dict[str, str], bytes], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LARGEST", 100_000)
    wrong = [True, False]

    def answer(message: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return answered if wrong.pop(0) else said(message, text("right"))

    async def test(opened: MCP) -> None:
        output = await run(opened, "do")
        assert output.is_error
        assert words in text_of(output)
        assert text_of(await run(opened, "do")) == "right"

    using(older(answer), test)


def test_a_server_that_requires_a_key_is_reported_as_such() -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def main() -> None:
        async with over_http(application) as url:
            with pytest.raises(ConfigError, match="HTTP 401"):
                await MCP(url).open()

    asyncio.run(main())
