"""Sends a request to another process of the cluster and reads its answer."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from secrets import token_hex

import msgspec

from ..backends.base import EventReply, Model
from ..backends.http.transport import Response, Timeouts, Transport, TransportError
from ..errors import UpstreamError
from ..events import Event
from ..types import Request
from ..wire.exact_json import encode
from .directory import Peer
from .frames import RunFrame, decode_frame, encode_request, error_in, events_in
from .signature import ClusterSigner

HEARTBEAT = 5.0  # seconds between two lines of a process that still works on an answer
PROOF = "x-toolwire-proof"
_TIMEOUTS = Timeouts(connect=2.0, first_byte=10.0, idle=4 * HEARTBEAT)
_MAX_LINE = 256 << 20
_MAX_LIST = 16 << 20


class PeerLost(Exception):
    """The process cannot be reached, is not the expected one, or does not hold the run any more."""


class PeerClient:
    def __init__(self, transport: Transport, signer: ClusterSigner) -> None:
        self._transport = transport
        self._signer = signer

    async def run(self, peer: Peer, backend: str, request: Request) -> EventReply:
        """The answer of a run that this process holds. Raises PeerLost before its first event, GatewayError if the back end refuses."""
        lines = _Lines(await self._send(peer, "/run", encode_request(backend, request)))
        try:
            opened = await lines.next()
            if opened is None or opened.is_missing:
                raise PeerLost
            if opened.error is not None:
                raise error_in(opened.error)
            first = await lines.next()
            if first is None:
                raise PeerLost
        except UpstreamError as error:
            lines.close()
            if error.code == "cluster_garbage" or isinstance(error, TransportError):
                raise PeerLost from None
            raise
        except BaseException:
            lines.close()
            raise
        return _PeerReply(
            events=_events(lines, first),
            losses=opened.losses,
            headers=opened.headers,
            how=f"{opened.how}, in another process" if opened.how else "in another process",
            lines=lines,
        )

    async def models(self, peer: Peer, backend: str) -> list[Model]:
        """Raises PeerLost."""
        response = await self._send(peer, "/models", encode({"backend": backend}))
        try:
            return msgspec.json.decode(await response.read_all(_MAX_LIST), type=list[Model])
        except (UpstreamError, msgspec.MsgspecError):
            raise PeerLost from None
        finally:
            response.abort()

    async def follow(self, peer: Peer, owner: str, answer_id: str, after: int) -> AsyncGenerator[bytes, None]:
        """The events of a background answer, as the process has them. Raises PeerLost, also after some of them."""
        response = await self._send(peer, "/follow", encode({"owner": owner, "id": answer_id, "after": after}))
        try:
            while piece := await response.read():
                yield piece
        except UpstreamError:
            raise PeerLost from None
        finally:
            response.abort()

    async def _send(self, peer: Peer, path: str, body: bytes) -> Response:
        nonce = token_hex(16)
        headers = {
            "authorization": self._signer.sign(peer.id, path, body, now=time.time(), nonce=nonce),
            "content-type": "application/json",
        }
        try:
            response = await self._transport.send("POST", f"{peer.address}{path}", headers, body, timeouts=_TIMEOUTS)
        except (UpstreamError, ValueError):
            raise PeerLost from None
        if response.status != 200 or not self._signer.is_proof(response.headers.get(PROOF, ""), nonce):
            response.abort()
            raise PeerLost
        return response


class _PeerReply(EventReply, kw_only=True):
    lines: _Lines

    async def close(self) -> None:
        await super().close()
        self.lines.close()


class _Lines:
    """The lines of a response, without heartbeats."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._buffer = bytearray()

    async def next(self) -> RunFrame | None:
        """None at the end. Raises UpstreamError."""
        start = 0
        while True:
            end = self._buffer.find(b"\n", start)
            if end < 0:
                start = len(self._buffer)
                if start > _MAX_LINE or not (piece := await self._response.read()):
                    return None
                self._buffer += piece
                continue
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            start = 0
            if line != b"{}":
                return decode_frame(line)

    def close(self) -> None:
        self._response.abort()


async def _events(lines: _Lines, first: RunFrame) -> AsyncGenerator[list[Event], None]:
    """Raises UpstreamError if the process is lost before the end."""
    frame: RunFrame | None = first
    try:
        while frame is not None:
            if frame.error is not None:
                raise error_in(frame.error)
            if frame.events:
                yield events_in(frame.events)
            if frame.is_end:
                return
            frame = await lines.next()
    finally:
        lines.close()
    raise UpstreamError("the process that ran the model was lost.", code="upstream_cut", retryable=True)
