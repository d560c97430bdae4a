"""The gateway's application in this process, with servers that send given bytes in given chunks."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.clients.gateway import KINDS
from tests.contract.client_requests import Reply, addressed
from tests.server.harness import server_config
from toolwire.backends.http.backend import HttpBackend
from toolwire.config.file import BackendConfig, Config, StoreConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.dialects.base import cut
from toolwire.server import App

WAYS = ("auto", "never")
CHUNKINGS = ("whole", "frames", "bytes", "random")


class UpstreamReply:
    """A response of the transport; if is_cut, the connection breaks after its last byte."""

    status = 200
    started = 0.0

    def __init__(self, pieces: Sequence[bytes], kind: str, *, is_cut: bool) -> None:
        self.headers = {"content-type": kind} if kind else {}
        self._pieces = list(reversed(pieces))
        self._is_cut = is_cut

    @property
    def is_complete(self) -> bool:
        return not self._pieces and not self._is_cut

    async def read(self) -> bytes:
        if self._pieces:
            return self._pieces.pop()
        if self._is_cut:
            raise cut("the connection to the back end broke in the middle of the answer.")
        return b""

    def abort(self) -> None:
        self._pieces.clear()


class Server:
    """Replaces the transport; next is its answer."""

    def __init__(self) -> None:
        self.next = UpstreamReply([], "", is_cut=False)
        self.asked: dict[str, Any] = {}

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", **_: Any
    ) -> UpstreamReply:
        self.asked = json.loads(body)
        return self.next


class Stage:
    """Sends requests to the application without a network."""

    def __init__(self, app: App, server: Server) -> None:
        self._app = app
        self._server = server

    async def ask(self, dialect: str, request: dict[str, Any], upstream_reply: UpstreamReply) -> Reply:
        path, body = addressed(dialect, request)
        return await self.send(path, body, upstream_reply)

    async def send(self, path: str, request: dict[str, Any], upstream_reply: UpstreamReply) -> Reply:
        self._server.next = upstream_reply
        path, _, query = path.partition("?")
        sent: list[dict[str, Any]] = []
        waiting = [{"type": "http.request", "body": json.dumps(request).encode(), "more_body": False}]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop()
            await asyncio.get_running_loop().create_future()
            raise AssertionError("nobody sets it")

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        headers = [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/json"),
            (b"anthropic-version", b"2023-06-01"),
        ]
        scope = {"type": "http", "method": "POST", "path": path, "query_string": query.encode(), "headers": headers}
        await self._app(scope, receive, send)  # type: ignore[arg-type] # plain dicts, as any server has them
        given = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        body = b"".join(message["body"] for message in sent[1:])
        assert [message.get("more_body", False) for message in sent[1:]] == [True] * (len(sent) - 2) + [False]
        return Reply(sent[0]["status"], given.get("content-type", ""), body)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """A back end of each dialect for each value of verbatim: auto-chat, never-chat and so on."""
    server = Server()
    backends = tuple(
        BackendConfig(
            name=f"{way}-{dialect}",
            kind=kind,
            base_url="http://127.0.0.1:9",
            key=Secret("sk-upstream"),
            models=("m",),
            retries=0,
            verbatim=way,  # type: ignore[arg-type] # one of the two words
        )
        for dialect, kind in KINDS.items()
        for way in WAYS
    )
    config = Config(server=server_config(), store=StoreConfig(kind="memory"))
    app = App(with_backends(config, backends))
    app.start()
    try:
        for backend in app._running().backends.values():
            if isinstance(backend, HttpBackend):
                backend._transport = server  # type: ignore[assignment] # all that a back end asks of it
        yield Stage(app, server)
    finally:
        await app.stop()


def pieces(wire: bytes, chunking: str, seed: int = 0) -> list[bytes]:
    """The same bytes, in chunks as a network may deliver them."""
    match chunking:
        case "whole":
            return [wire]
        case "bytes":
            return [wire[place : place + 1] for place in range(len(wire))]
        case "frames":
            *found, rest = wire.split(b"\n\n")
            return [one + b"\n\n" for one in found] + ([rest] if rest else [])
    dice = random.Random(seed)
    cuts = sorted(dice.randrange(len(wire) + 1) for _ in range(min(40, len(wire) // 3)))
    return [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True) if start < end]
