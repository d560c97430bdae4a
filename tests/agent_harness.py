"""Tasks for the tool loop: scripts as prompts, tools that record their calls, and providers that check every request before they play a script."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from tests.clients.gateway import scripted
from tests.contract.strict.refusals import Refused, anthropic_body, openai_body
from tests.contract.strict.upstream import CHECKS
from tests.server.harness import LONG, ask, server_config, wait_until
from toolwire.agent.events import LoopEvent, ReasoningEvent, StatusEvent, TextEvent
from toolwire.agent.host import Host
from toolwire.agent.loop import Loop, Terms
from toolwire.config.file import BASE_URLS, BackendConfig, Config, StoreConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.server import App
from toolwire.server.launch import Server, options
from toolwire.tools import Runnable
from toolwire.tools.functions import function_tool
from toolwire.types import Message, Request, Text, ToolCall, ToolResult

KINDS = tuple(kind for kind in BASE_URLS if kind != "cursor")  # that one is in test_loop_runs
_DIALECTS = {"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages"}
IN_PROCESS = with_backends(Config(), (BackendConfig(name="s", kind="scripted"),))
MODEL = "s/scripted"


def script(*turns: dict[str, Any], strict: bool = True) -> str:
    """A prompt with a script. With strict, the model reports a history that differs from the script."""
    return scripted({"turns": list(turns), "strict": strict})


def calls(*made: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """A turn with these calls."""
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in made], **more}


class Weather:
    """A tool that records its arguments."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def tools(self) -> list[Runnable]:
        return [function_tool(self.weather)]

    async def weather(self, city: str, days: int = 1) -> str:
        """What the weather will be."""
        self.asked.append(city)
        await asyncio.sleep(0.02 if city == "Slow" else 0)
        return f"{city}: rain for {days} days"


def asked(prompt: str, *before: Message, model: str = MODEL, **more: Any) -> Request:
    user = Message(role="user", parts=(Text(text=prompt),))
    return Request(model=model, messages=(*before, user), stream=True, stream_usage=True, **more)


def played(
    prompt: str, tools: Sequence[Runnable | Callable[..., Any]] = (), terms: Terms | None = None, **more: Any
) -> tuple[list[LoopEvent], Loop]:
    """The events of a complete task in this process."""

    async def main() -> tuple[list[LoopEvent], Loop]:
        host = Host(IN_PROCESS)
        runnables = [one if isinstance(one, Runnable) else function_tool(one) for one in tools]
        loop = Loop(host.runtime, asked(prompt, **more), runnables, terms or Terms())
        events = [event async for event in loop.events()]
        await host.close()
        return events, loop

    return asyncio.run(main())


def kinds_of(events: Sequence[LoopEvent]) -> list[str]:
    """The tags of the events, with the text of a status; repeated tags are listed once."""
    tags = [
        f"status:{event.status}" if isinstance(event, StatusEvent) else str(event.__struct_config__.tag)
        for event in events
    ]
    return [tag for place, tag in enumerate(tags) if not place or tag != tags[place - 1] or tag.startswith("tool")]


def folded(events: Sequence[LoopEvent]) -> list[dict[str, Any]]:
    """Events in a form that is equal for all back ends: deltas joined, ids replaced by the position of the call, no durations."""
    names: dict[str, str] = {}
    found: list[dict[str, Any]] = []
    for event in events:
        value: dict[str, Any] = msgspec.to_builtins(event)
        value.pop("seconds", None)
        if value.get("id"):
            value["id"] = names.setdefault(value["id"], f"call {len(names)}")
        last = found[-1] if found else {}
        if isinstance(event, TextEvent | ReasoningEvent) and last.get("type") == value["type"]:
            last["text"] += value["text"]
        elif value.get("status") == "arguments" and (last.get("status"), last.get("id")) == ("arguments", value["id"]):
            last["detail"] += value["detail"]
        else:
            found.append(value)
    return found


def pairs(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """(call id, text of the result); asserts that each call has one result, in order, directly after its turn."""
    found: list[tuple[str, str]] = []
    due: list[str] = []
    for message in messages:
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if not results:
            assert not due, f"calls without results: {due}"
        for result in results:
            assert due.pop(0) == result.call_id
            found.append((result.call_id, "".join(part.text for part in result.parts if isinstance(part, Text))))
        due += [part.id for part in message.parts if isinstance(part, ToolCall)]
    assert not due, f"calls without results: {due}"
    return found


class Providers:
    """Every kind of back end on one port. refused: requests that the real providers would reject, with the reason."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.refused: list[str] = []
        store = StoreConfig(kind="memory")
        backend = BackendConfig(name="s", kind="scripted", guard="off")
        config = with_backends(Config(server=server_config(default="s"), store=store), (backend,))
        self._app = App(config, None)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = Server(options(config, self))  # type: ignore[arg-type] # an application before the application
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started or not self._thread.is_alive())

    def config(self, **fields: Any) -> Config:
        """A back end of each kind, by the name of its kind."""
        return with_backends(Config(), tuple(self.backend(kind, **fields) for kind in KINDS))

    def backend(self, kind: str, name: str = "", **fields: Any) -> BackendConfig:
        path = "/v1" if kind.startswith("openai") else ""
        given = {"key": Secret("sk-upstream"), "models": ("scripted",), "retries": 0} | fields
        return BackendConfig(name=name or kind, kind=kind, base_url=self.url + path, **given)  # type: ignore[arg-type] # a kind

    def metrics(self) -> str:
        port = self._listener.getsockname()[1]
        return ask(port, "GET", "/metrics").body.decode()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(LONG)
        self._listener.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        dialect = _DIALECTS.get(scope["path"], "gemini")
        try:
            self._judge(dialect, json.loads(body))
        except Refused as refusal:
            self.refused.append(f"{dialect}: {refusal}")
            data = anthropic_body(refusal) if dialect == "messages" else openai_body(refusal)
            await send(
                {"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"application/json")]}
            )
            await send({"type": "http.response.body", "body": data})
            return
        first = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return first.pop() if first else await receive()

        await self._app(scope, again, send)

    def _judge(self, dialect: str, body: dict[str, Any]) -> None:
        self.seen.append((dialect, body))
        if dialect in CHECKS:
            CHECKS[dialect](body)


@contextlib.contextmanager
def providers() -> Iterator[Providers]:
    running = Providers()
    try:
        yield running
    finally:
        running.close()
