"""A VS Code window as the gateway sees one: a client of its socket that plays what a test says, and checks every frame by the schema."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import jsonschema_rs

from tests.server.harness import Answer, Gateway, ask, gateway, server_config
from toolwire.backends.vscode.backend import VSCodeBackend
from toolwire.backends.vscode.session import Pace
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.wire.websocket import CLOSE, PING, PONG, TEXT, FrameReader, accept_of, close_payload, frame, parse_close

TOKEN = "a-token-for-the-tests-of-the-bridge"
LONG = 8.0
SCHEMA = json.loads((Path(__file__).parents[3] / "vscode/protocol.schema.json").read_text())
Frame: TypeAlias = dict[str, Any]


def _validator(side: str) -> Any:
    return jsonschema_rs.validator_for({**{k: v for k, v in SCHEMA.items() if k != "anyOf"}, "$ref": f"#/$defs/{side}"})


FROM_WINDOW, FROM_GATEWAY = _validator("FromWindow"), _validator("FromGateway")


def model(key: str = "copilot/gpt-4.1", **more: Any) -> Frame:
    vendor, _, name = key.partition("/")
    about = {"key": key, "id": name, "vendor": vendor, "family": name, "version": name, "name": name.upper()}
    return {**about, "max_input_tokens": 100_000, "can_call_tools": True, "can_see_images": True, **more}


def said(text: str) -> Frame:
    return {"t": "text", "text": text}


def called(call_id: str, name: str, **arguments: Any) -> Frame:
    return {"t": "call", "id": call_id, "name": name, "input": arguments}


def used(prompt: int = 11, completion: int = 7) -> Frame:
    value = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"t": "data", "mime": "usage", "data": base64.b64encode(json.dumps(value).encode()).decode()}


class Refused(Exception):
    """The gateway did not let it in."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.body = body


Play: TypeAlias = Callable[["FakeWindow", Frame], Awaitable[None]]


class FakeWindow:
    """play is what it does with a chat. frames is all that came, kinds() their types."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, play: Play | None) -> None:
        self.id = secrets.token_hex(8)
        self.frames: list[Frame] = []
        self.ended: tuple[int, str] | None = None
        self.answers_pings = True
        self.answers_counts = True
        self._reader = reader
        self._writer = writer
        self._play = play or echo
        self._wire = FrameReader()
        self._seq: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Condition()
        self._main: asyncio.Task[None] | None = None

    async def hello(self, **more: Any) -> None:
        about = {"type": "hello", "v": 1, "window": self.id, "vscode": "1.139.1", "extension": "0.1.0", "focused": True}
        await self.say({**about, **more})

    async def lend(self, *models: Frame) -> None:
        await self.say({"type": "models", "models": list(models)})

    async def say(self, value: Frame, *, is_checked: bool = True) -> None:
        if is_checked:
            FROM_WINDOW.validate(value)
        await self.write(frame(TEXT, json.dumps(value).encode(), secrets.token_bytes(4)))

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def parts(self, chat: Frame, *parts: Frame) -> None:
        seq = self._seq.get(chat["id"], 0)
        self._seq[chat["id"]] = seq + 1
        await self.say({"type": "parts", "id": chat["id"], "seq": seq, "parts": list(parts)})

    async def end(self, chat: Frame, *, cancelled: bool = False) -> None:
        self._seq.pop(chat["id"], None)
        await self.say({"type": "end", "id": chat["id"], "cancelled": cancelled})

    async def fail(self, chat: Frame, code: str = "", name: str = "", message: str = "") -> None:
        await self.say({"type": "error", "id": chat["id"], "code": code, "name": name, "message": message})

    def start(self) -> None:
        self._main = asyncio.create_task(self._read())

    def of(self, kind: str) -> list[Frame]:
        return [found for found in self.frames if found["type"] == kind]

    async def wait(self, kind: str, count: int = 1, seconds: float = LONG) -> Frame:
        async with asyncio.timeout(seconds), self._arrived:
            await self._arrived.wait_for(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    async def gone(self, seconds: float = LONG) -> tuple[int, str]:
        """Until the gateway has closed it: with which words."""
        async with asyncio.timeout(seconds), self._arrived:
            await self._arrived.wait_for(lambda: self.ended is not None)
        assert self.ended is not None
        return self.ended

    def crash(self) -> None:
        self._writer.transport.abort()

    def stop_reading(self) -> None:
        assert self._main is not None
        self._main.cancel()

    async def close(self) -> None:
        for task in [*self._tasks, *([self._main] if self._main else [])]:
            task.cancel()
        await asyncio.gather(*self._tasks, *([self._main] if self._main else []), return_exceptions=True)
        self._writer.transport.abort()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        with suppress(ConnectionError):
            while self.ended is None and (data := await self._reader.read(1 << 18)):
                for incoming in self._wire.feed(data):
                    await self._take(incoming.kind, incoming.data)
        async with self._arrived:
            self.ended = self.ended or (1006, "")
            self._arrived.notify_all()

    async def _take(self, kind: int, data: bytes) -> None:
        if kind == CLOSE:
            self.ended = parse_close(data)
            with suppress(ConnectionError):
                await self.write(frame(CLOSE, close_payload(1000), b"abcd"))
        elif kind == PING:
            await self.write(frame(PONG, data, b"abcd"))
        elif kind == TEXT:
            await self._heard(json.loads(data))

    async def _heard(self, value: Frame) -> None:
        FROM_GATEWAY.validate(value)
        async with self._arrived:
            self.frames.append(value)
            self._arrived.notify_all()
        if value["type"] == "ping" and self.answers_pings:
            await self.say({"type": "pong", "n": value["n"]})
        elif value["type"] == "count" and self.answers_counts:
            await self.say({"type": "count", "id": value["id"], "tokens": len(value["text"].split())})
        elif value["type"] == "chat":
            task = asyncio.create_task(self._played(value))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _played(self, chat: Frame) -> None:
        with suppress(ConnectionError):
            await self._play(self, chat)


@contextmanager
def vscode_gateway(*more: BackendConfig, pace: Pace | None = None, **fields: Any) -> Iterator[Gateway]:
    """fields are those of the back end."""
    vscode = BackendConfig(name="vscode", kind="vscode", **fields)
    with (
        patch.dict(os.environ, {"TOOLWIRE_BRIDGE_TOKEN": TOKEN}),
        gateway(with_backends(Config(server=server_config()), (vscode, *more))) as running,
    ):
        bridge: Any = running.app.mounts["/bridge"]
        bridge.pace = pace or bridge.pace
        yield running


def hub_of(server: Gateway) -> Any:
    backends = server.app._parts.runtime.backends if server.app._parts is not None else {}
    found = backends["vscode"]
    assert isinstance(found, VSCodeBackend)
    return found.hub


async def asking(server: Gateway, path: str, body: Any) -> Answer:
    return await asyncio.to_thread(ask, server.port, "POST", path, body)


async def chatting(server: Gateway, text: str = "hi", name: str = "vscode/gpt-4.1", **more: Any) -> Answer:
    messages = [{"role": "user", "content": text}]
    return await asking(server, "/v1/chat/completions", {"model": name, "messages": messages, **more})


def content_of(answer: Answer) -> str:
    assert answer.status == 200, answer.body
    return str(answer.json["choices"][0]["message"]["content"])


def last_text(chat: Frame) -> str:
    texts = [part["text"] for part in chat["messages"][-1]["parts"] if part["t"] == "text"]
    return "".join(texts)


async def echo(window: FakeWindow, chat: Frame) -> None:
    await window.parts(chat, said("you said: "))
    await window.parts(chat, said(last_text(chat)), used())
    await window.end(chat)


async def silent(window: FakeWindow, chat: Frame) -> None:
    """What a window does whose page has crashed."""


async def connect(
    port: int,
    play: Play | None = None,
    *,
    token: str = TOKEN,
    headers: dict[str, str] | None = None,
    path: str = "/bridge",
    limit: int = 1 << 18,
) -> FakeWindow:
    """Raises Refused."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
    key = base64.b64encode(secrets.token_bytes(16)).decode()
    given = {
        "Host": f"127.0.0.1:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": key,
        "Authorization": f"Bearer {token}",
        **(headers or {}),
    }
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value), "", ""]
    writer.write("\r\n".join(lines).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    if " 101 " not in head.partition("\r\n")[0]:
        length = next(line for line in head.lower().split("\r\n") if line.startswith("content-length:"))
        body = (await reader.readexactly(int(length.partition(":")[2]))).decode()
        writer.close()
        raise Refused(int(head.split(" ")[1]), body)
    assert accept_of(key) in head
    return FakeWindow(reader, writer, play)


@asynccontextmanager
async def window(server: Gateway, play: Play | None = None, *models: Frame, **hello: Any) -> AsyncIterator[FakeWindow]:
    """One that has said hello and lent its models, and is known to have."""
    opened = await connect(server.port, play)
    opened.start()
    try:
        await opened.hello(**hello)
        await opened.wait("welcome")
        await opened.lend(*(models or (model(),)))
        await until(lambda: any(known.id == opened.id and known.models for known in hub_of(server).windows))
        yield opened
    finally:
        await opened.close()
        await until(lambda: all(known.id != opened.id for known in hub_of(server).windows))


async def until(condition: Callable[[], bool], seconds: float = LONG) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.005)
