"""The messages to a client: events, keep-alives and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from toolwire.errors import BadRequest, UpstreamError
from toolwire.server.exchange import ClientGone
from toolwire.server.reply import EventStream
from toolwire.server.socket.reply import SocketReply


class Sent:
    def __init__(self) -> None:
        self.values: list[Any] = []

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        assert message["type"] == "websocket.send"
        self.values.append(json.loads(message["text"]))


def test_each_event_is_one_message_and_the_end_mark_is_none() -> None:
    async def main() -> None:
        sent = Sent()
        reply = SocketReply(sent, "req_1", "lane")
        stream = EventStream(asyncio.get_running_loop(), reply, 100)
        await stream.write(b'event: a\ndata: {"type":"a"}\n\nevent: b\nda')
        await stream.write(b'ta: {"type":"b"}\n\ndata: [DONE]\n\n', is_last=True)
        stream.close()
        assert sent.values == [{"stream_id": "lane", "type": "a"}, {"stream_id": "lane", "type": "b"}]

    asyncio.run(main())


def test_an_error_after_a_keep_alive_still_has_its_status() -> None:
    async def main() -> None:
        sent = Sent()
        reply = SocketReply(sent, "req_1")
        await reply.start(200, [])
        await reply.send({"type": "http.response.body", "body": reply.dialect.heartbeat, "more_body": True})
        assert not reply.is_started
        await reply.error(UpstreamError("too much", status=429, headers={"retry-after": "3"}))
        keep_alive, error = sent.values
        assert keep_alive == {"type": "toolwire.keep_alive"}
        assert (error["type"], error["status"], error["headers"]) == ("error", 429, {"retry-after": "3"})
        assert "message" in error["error"]

    asyncio.run(main())


def test_a_closed_connection_ends_the_answer() -> None:
    async def closed(message: MutableMapping[str, Any]) -> None:
        raise OSError

    with pytest.raises(ClientGone):
        asyncio.run(SocketReply(closed, "req_1").error(BadRequest("no")))
