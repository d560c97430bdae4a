"""The internal listener of a process: answers the other processes of the cluster, and no other client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import Struct

from ..backends.base import EventReply
from ..backends.mounts import Receive, Scope, Send
from ..errors import BadRequest, GatewayError, InternalError
from .backend import ClusterBackend
from .client import HEARTBEAT, PROOF
from .frames import RunFrame, decode_request, encode_frame, error_out, events_out
from .signature import ClusterSigner, NonceMemory

_BODY_SECONDS = 30.0


class FollowRequest(Struct, frozen=True):
    """Events of a background answer, after this number."""

    owner: str
    id: str
    after: int = -1


class _Named(Struct, frozen=True):
    backend: str


class ClusterEndpoint:
    """An ASGI application. follow: the events of a background answer of this process, None if it has none. max_body: bytes."""

    def __init__(
        self,
        process: str,
        signer: ClusterSigner,
        max_body: int,
        clock: Callable[[], float] = time.time,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self.backends: Mapping[str, ClusterBackend] = {}
        self.follow: Callable[[str, str, int], AsyncGenerator[bytes, None] | None] | None = None
        self._process = process
        self._signer = signer
        self._max_body = max_body
        self._nonces = NonceMemory()
        self._clock = clock
        self._heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await self._body(receive)
        except (TimeoutError, BadRequest):
            await _refuse(send, 400)
            return
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        found = self._signer.nonce_of(header.decode("latin-1"), self._process, path, body)
        if found is None or not self._nonces.accept(*found, self._clock()):
            await _refuse(send, 401)
            return
        pieces, beat = self._answer(path, body)
        if pieces is None:
            await _refuse(send, 404)
            return
        headers = [
            (b"content-type", b"application/octet-stream"),
            (PROOF.encode(), self._signer.proof(found[0]).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._pump(pieces, beat, receive, send)

    def _answer(self, path: str, body: bytes) -> tuple[AsyncGenerator[bytes, None] | None, bytes]:
        """The pieces of the response, and what to send while there is none."""
        if path == "/run":
            return self._run(body), b"{}\n"
        if path == "/models":
            return self._models(body), b" "
        if path == "/follow" and self.follow is not None:
            asked = msgspec.json.decode(body, type=FollowRequest)
            return self.follow(asked.owner, asked.id, asked.after), b": \n\n"
        return None, b""

    async def _run(self, body: bytes) -> AsyncGenerator[bytes, None]:
        try:
            asked = decode_request(body)
            backend = self.backends.get(asked.backend)
            if backend is None or not backend.holds(asked.request):
                yield encode_frame(RunFrame(is_missing=True))
                return
            reply = await backend.open_here(asked.request)
        except GatewayError as error:
            yield encode_frame(RunFrame(error=error_out(error)))
            return
        if not isinstance(reply, EventReply):
            reply.abort()
            raise InternalError("a live run answered in bytes.")
        try:
            opened = RunFrame(is_open=True, losses=reply.losses, headers=dict(reply.headers), how=reply.how)
            yield encode_frame(opened)
            async for events in reply.events:
                yield encode_frame(RunFrame(events=events_out(events)))
            yield encode_frame(RunFrame(is_end=True))
        except GatewayError as error:
            yield encode_frame(RunFrame(error=error_out(error)))
        finally:
            await reply.close()

    async def _models(self, body: bytes) -> AsyncGenerator[bytes, None]:
        backend = self.backends.get(msgspec.json.decode(body, type=_Named).backend)
        try:
            yield msgspec.json.encode(await backend.models_here() if backend is not None else [])
        except GatewayError:
            yield b"[]"

    async def _pump(self, pieces: AsyncGenerator[bytes, None], beat: bytes, receive: Receive, send: Send) -> None:
        """Stops the answer when the other process disconnects."""
        gone: asyncio.Future[Any] = asyncio.ensure_future(receive())
        waiting: asyncio.Future[Any] | None = None
        try:
            async with aclosing(pieces):
                while True:
                    waiting = waiting or asyncio.ensure_future(anext(pieces, None))
                    await asyncio.wait({waiting, gone}, timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED)
                    if gone.done():
                        return
                    if not waiting.done():
                        await send({"type": "http.response.body", "body": beat, "more_body": True})
                        continue
                    piece, waiting = waiting.result(), None
                    await send({"type": "http.response.body", "body": piece or b"", "more_body": piece is not None})
                    if piece is None:
                        return
        finally:
            gone.cancel()
            if waiting is not None and not waiting.done():
                waiting.cancel()
                await asyncio.wait({waiting})

    async def _body(self, receive: Receive) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("the other process disconnected.")
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._max_body:
                raise BadRequest("the forwarded request is too large.")
            if not message.get("more_body"):
                return b"".join(pieces)


async def _refuse(send: Send, status: int) -> None:
    headers: list[tuple[bytes, Any]] = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
