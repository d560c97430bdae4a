"""An app-server that somebody else runs: reached, refused, cut off."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.backends.codex.listening import listening
from tests.wire.server_frames import served
from toolwire.backends.codex.transport.websocket import connect, is_address
from toolwire.backends.codex.worker import AppServerWorker
from toolwire.backends.sessions import SessionLost
from toolwire.errors import UpstreamError
from toolwire.wire.websocket import PING, TEXT

pytestmark = pytest.mark.slow


def test_only_an_address_alone_is_one() -> None:
    assert is_address(("ws://127.0.0.1:4500",))
    assert is_address(("wss://host/path",))
    assert not is_address(("codex", "app-server", "--listen", "ws://127.0.0.1:4500"))


def test_a_turn_over_it_is_as_over_a_pipe() -> None:
    async def main() -> tuple[list[str], list[bytes], str]:
        async with listening() as listener:
            made = AppServerWorker(await connect(f"{listener.address}/rpc?x=1", "t0ken"))
            await made.introduce({}, 10)
            thread = await made.open("thread/start", {})
            await made.ask("turn/start", {"threadId": thread.id, "input": []})
            heard: list[str] = []
            while not heard or heard[-1] != "turn/completed":
                message = await thread.next()
                assert not isinstance(message, SessionLost)
                heard.append(message.method)
            await made.close()
            return heard, listener.pongs, listener.heads[0]

    heard, pongs, head = asyncio.run(main())
    assert heard.count("item/agentMessage/delta") == 3
    assert set(pongs) == {b"?"}
    assert head.startswith("GET /rpc?x=1 HTTP/1.1\r\n")
    assert "Authorization: Bearer t0ken" in head


def test_its_end_is_heard_with_its_reason() -> None:
    async def main() -> str:
        async with listening() as listener:
            made = AppServerWorker(await connect(listener.address))
            thread = await made.open("thread/start", {})
            await made.ask("turn/start", {"threadId": thread.id, "input": [{"type": "text", "text": "DO=die"}]})
            try:
                while True:
                    await thread.next()
            except SessionLost as fault:
                return str(fault)
            finally:
                await made.close()

    story = asyncio.run(main())
    assert 'has closed the connection: it said "it has ended".' in story


def test_a_refused_client_gets_an_error_without_the_token() -> None:
    async def main() -> None:
        async with listening(token="right") as listener:
            await connect(listener.address, "wrong-secret")

    with pytest.raises(UpstreamError, match="401 Unauthorized") as caught:
        asyncio.run(main())
    assert "wrong-secret" not in caught.value.sentence()


def test_an_unreachable_server_is_named_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UpstreamError, match=f"127.0.0.1:{port}.*there is no response") as caught:
            asyncio.run(connect(f"ws://user:pass@127.0.0.1:{port}/secret"))
    assert "--listen" in caught.value.hint
    assert "pass" not in caught.value.sentence()
    assert "secret" not in caught.value.sentence()


def test_a_server_that_is_no_websocket_is_named() -> None:
    async def main(answer: bytes) -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        try:
            await connect(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        finally:
            server.close()

    for answer, why in (
        (b"HTTP/1.1 200 OK\r\n\r\n", "200 OK"),
        (b"HTTP/1.1 101 Yes\r\nSec-WebSocket-Accept: no\r\n\r\n", "it is no WebSocket"),
        (b"x" * 200_000, "it is no|no HTTP"),
        (b"", "there is no response"),
    ):
        with pytest.raises(UpstreamError, match=why):
            asyncio.run(main(answer))


@pytest.mark.parametrize("address", ["ws://127.0.0.1:99999", "ws://127.0.0.1:x", "ws://[::1", "ws://a\nb", "ws://"])
def test_an_address_that_is_none_is_the_owners_mistake(address: str) -> None:
    with pytest.raises(UpstreamError, match="no app-server was reached") as caught:
        asyncio.run(connect(address))
    assert caught.value.code == "codex_not_started"


def test_what_came_before_the_connection_broke_is_heard() -> None:
    async def main() -> bytes:
        reader = asyncio.StreamReader()
        reader.feed_data(served(TEXT, b'{"method":"turn/completed"}') + served(PING, b"?"))
        reader.feed_eof()
        async with listening() as listener:
            made = await connect(listener.address)
            made._reader = reader
            made._writer.transport.abort()
            return await made.receive()

    assert asyncio.run(main()) == b'{"method":"turn/completed"}\n'
