"""What a peer that is not one sends is never used."""

from __future__ import annotations

import asyncio

import pytest

from tests.cluster.nodes import asking
from toolwire.backends.http.transport import Transport
from toolwire.cluster.client import PeerClient, PeerLost
from toolwire.cluster.directory import Peer
from toolwire.cluster.signature import ClusterSigner


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n" + b'{"is_open":true}\n{}\n',
        b"HTTP/1.1 200 OK\r\nx-toolwire-proof: 00\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"",
    ],
)
def test_a_stranger_at_the_address_of_a_process_is_not_believed(response: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response)
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        peer = Peer(id="p", address=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        transport = Transport(environ={})
        client = PeerClient(transport, ClusterSigner("secret"))
        with pytest.raises(PeerLost):
            await client.run(peer, "b", asking())
        with pytest.raises(PeerLost):
            await client.models(peer, "b")
        with pytest.raises(PeerLost):
            await anext(client.follow(peer, "o", "i", -1))
        server.close()
        await transport.close()

    asyncio.run(main())
