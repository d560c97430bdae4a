from __future__ import annotations

import asyncio

import pytest

from toolwire.backends.cursor.transport.channel import RunChannel
from toolwire.errors import UpstreamError
from toolwire.wire.connect import ConnectEnd, ConnectFrame, end, frame


class ListChannel(RunChannel):
    """Its reply consists of these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__("cursor")
        self.pieces = [*pieces]
        self.errors: list[UpstreamError] = []

    async def write(self, message: bytes) -> None:
        raise NotImplementedError

    async def read(self) -> bytes:
        return self.pieces.pop(0)

    def fail(self, error: UpstreamError) -> None:
        self.errors.append(error)


def test_items_are_decoded_across_pieces_until_the_end() -> None:
    data = frame(b"one") + end()
    channel = ListChannel(data[:3], data[3:], b"")
    assert asyncio.run(channel.receive()) == [ConnectFrame(b"one"), ConnectEnd()]
    with pytest.raises(UpstreamError, match="has ended"):
        asyncio.run(channel.receive())


def test_a_reply_that_is_no_connect_stream_closes_the_channel() -> None:
    channel = ListChannel(b"\xff" * 20)
    with pytest.raises(UpstreamError) as caught:
        asyncio.run(channel.receive())
    assert (caught.value.code, [error.code for error in channel.errors]) == ("upstream_garbage", ["upstream_garbage"])


def test_a_reply_without_an_end_frame_ends_with_a_fault() -> None:
    (item,) = asyncio.run(ListChannel(b"").receive())
    assert isinstance(item, ConnectEnd)
    assert item.fault is not None


def test_abort_closes_with_an_error_for_the_client() -> None:
    channel = ListChannel()
    channel.abort()
    assert [error.code for error in channel.errors] == ["upstream_cut"]
