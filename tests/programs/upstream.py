"""An upstream for the tests: the scripted model, where one path of one dialect responds and every other one is 404.

Each kind of upstream is a prefix, as in /openai-chat/v1/chat/completions. It stores nothing between requests, so it rejects
references to earlier ones, and some kinds support only function tools. Run as a program: CONFIG is toolwire's own configuration, JOURNAL gets one JSON line per request.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias

from toolwire.config.file import load
from toolwire.server.app import App
from toolwire.server.launch import Server, options

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "openai-responses-functions": "/v1/responses",
    "anthropic-functions": "/v1/messages",
}
_ONLY_FUNCTIONS = ("openai-chat", "openai-responses-functions", "anthropic-functions")
_STATE = ("previous_response_id", "conversation", "thread", "background")
_SPECIAL = ("additional_tools", "custom_tool_call", "tool_search_call", "tool_reference", "tool_addition", "namespace")


class OneDialect:
    """The application behind the prefixes."""

    def __init__(self, app: App, journal: Path) -> None:
        self._app = app
        self._journal = journal

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        kind, _, rest = scope["path"].removeprefix("/").partition("/")
        status, why = _refusal(kind, f"/{rest}", scope["method"], body)
        if status:
            await _refuse(send, status, why)
        else:
            inner = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
            status = await self._answer(inner, body, receive, send)
        with self._journal.open("a", encoding="utf-8") as journal:
            line = {"kind": kind, "path": f"/{rest}", "status": status, "refused": why, "body": _value(body)}
            journal.write(json.dumps(line, ensure_ascii=False) + "\n")

    async def _answer(self, scope: Message, body: bytes, receive: Receive, send: Send) -> int:
        bodies = [body]
        status = 0

        async def replay() -> Message:
            if bodies:
                return {"type": "http.request", "body": bodies.pop(), "more_body": False}
            return await receive()

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._app(scope, replay, watch)
        return status


def _refusal(kind: str, path: str, method: str, body: bytes) -> tuple[int, str]:
    if method != "POST" or PATHS.get(kind) != path:
        return 404, f"found {method} {path}; this upstream knows only POST {PATHS.get(kind)}."
    value = _value(body)
    if not isinstance(value, dict):
        return 400, "the body is no JSON object."
    leaning = [name for name in _STATE if value.get(name)] + _types_in(value, ("item_reference",))
    if leaning:
        return 400, f"found {', '.join(leaning)}; this upstream keeps nothing."
    special = _special(kind, value) if kind in _ONLY_FUNCTIONS else []
    return (400, f"found {', '.join(special)}; this upstream knows only functions.") if special else (0, "")


def _special(kind: str, request: dict[str, Any]) -> list[str]:
    """Tools, calls and results that are no plain functions."""
    tools = request.get("tools") or []
    plain = (None, "custom") if kind.startswith("anthropic") else ("function",)
    found = [str(tool.get("type")) for tool in tools if tool.get("type") not in plain]
    found += [f"{tool.get('name')} deferred" for tool in tools if tool.get("defer_loading")]
    return found + _types_in(request, _SPECIAL)


def _types_in(value: Any, types: tuple[str, ...]) -> list[str]:
    """The types of these that occur in the messages or items."""
    if isinstance(value, list):
        return [found for item in value for found in _types_in(item, types)]
    if not isinstance(value, dict):
        return []
    own = [value["type"]] if value.get("type") in types else []
    return own + [found for name in ("input", "messages", "content") for found in _types_in(value.get(name), types)]


def _value(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


async def _body(receive: Receive) -> bytes:
    body, is_whole = b"", False
    while not is_whole:
        message = await receive()
        body += message.get("body", b"")
        is_whole = not message.get("more_body", False)
    return body


async def _refuse(send: Send, status: int, why: str) -> None:
    body = json.dumps({"error": {"message": why, "type": "invalid_request_error"}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main(config: Path, journal: Path) -> None:
    settled = load(config, {})
    app: Any = OneDialect(App(settled), journal)
    Server(options(settled, app)).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
