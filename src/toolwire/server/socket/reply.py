"""The answer to one request of a WebSocket: each event of the stream is one message, an error is a message with its status."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

from ...backends.mounts import Send
from ...dialects.responses import DIALECT
from ...errors import GatewayError, UpstreamError
from ...types import JsonObject
from ...wire.exact_json import decode, encode
from ...wire.sse import SseReader
from ..exchange import ClientGone
from ..reply import HeaderList, Reply

_END = b"[DONE]"
# The comment of a stream that reports repairs and losses; JSON has no line break that could be mistaken for its start.
_REPORT = re.compile(rb"(?:\A|\n): toolwire (\{.*\})\n\n")


class SocketReply(Reply):
    """Takes the messages of an HTTP response and sends them as messages of the socket. is_started: an event was sent; a
    keep-alive is none, so that an error after it still has its status."""

    def __init__(self, send: Send, request_id: str, stream_id: str = "") -> None:
        super().__init__(self._write, DIALECT, request_id, None)
        self._socket = send
        self._events = SseReader()
        self._lane = b'"stream_id":' + encode(stream_id) + b"," if stream_id else b""

    async def start(self, status: int, headers: HeaderList) -> None:
        """A message has no head; it is only for the record of the request."""
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def error(self, error: GatewayError) -> None:
        await self.start(error.status, [])
        event = error_event(error, self._request_id)
        await self.send({"type": "http.response.body", "body": b"event: error\ndata: " + event + b"\n\n"})

    async def event(self, value: JsonObject) -> None:
        await self._message(encode(value))

    async def _write(self, message: MutableMapping[str, Any]) -> None:
        body: bytes = message.get("body", b"")
        if not body:
            return
        if body == self.dialect.heartbeat:
            await self._message(b'{"type":"toolwire.keep_alive"}')
            return
        events = [frame.data for frame in self._events.feed(body) if frame.data != _END]
        if events and (report := _REPORT.search(body)) is not None:
            events.insert(-1, b'{"type":"toolwire.report",' + report[1][1:])
        for event in events:
            self.is_started = True
            await self._message(event)

    async def _message(self, data: bytes) -> None:
        text = (b"{" + self._lane + data.lstrip()[1:] if self._lane else data).decode("utf-8", "replace")
        try:
            await self._socket({"type": "websocket.send", "text": text})
        except OSError:
            raise ClientGone from None


def error_event(error: GatewayError, request_id: str) -> bytes:
    """With all members that clients read: Codex ignores an error without a status, and waits for ever."""
    value: JsonObject = {"type": "error", "status": error.status, "sequence_number": 0}
    value |= decode(DIALECT.encode_error(error, request_id))
    if isinstance(error, UpstreamError) and error.headers:
        value["headers"] = dict(error.headers)
    return encode(value)
