from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolwire.backends.cursor.transport.goaway import BUDGET
from toolwire.backends.cursor.transport.http2 import Connection
from toolwire.backends.cursor.transport.stream import Limits, Stream
from toolwire.errors import UpstreamError

pytestmark = pytest.mark.slow

HEADERS = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", "/")]
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00pingping"


class Drain(asyncio.Transport):
    """A socket whose other end reads nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return len(self.written)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


def opened(limits: Limits | None = None) -> tuple[Connection, Drain, list[Connection]]:
    lost: list[Connection] = []
    connection = Connection("server:1", limits or Limits(), lost.append)
    drain = Drain()
    connection.connection_made(drain)
    return connection, drain, lost


async def fate(stream: Stream) -> bytes | UpstreamError:
    try:
        return await stream.read()
    except UpstreamError as error:
        return error


def test_a_flood_of_pings_from_a_server_that_does_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.cursor.transport.http2._MAX_UNREAD_ANSWERS", 50_000)

    async def main() -> None:
        connection, drain, lost = opened()
        connection.data_received(SETTINGS)
        stream = connection.open(HEADERS)
        for _ in range(100):
            connection.data_received(PING * 100)
            if drain.is_closed:
                break
        assert lost == [connection]
        assert len(drain.written) < 60_000
        error = await fate(stream)
        assert isinstance(error, UpstreamError)
        assert error.code == "upstream_garbage"

    asyncio.run(main())


def frame(kind: int, payload: bytes = b"", stream: int = 0, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


FLOODS = {
    "settings": SETTINGS,
    "a setting": frame(4, b"\x00\x04\x00\x01\x00\x00"),
    "ping": PING,
    "ping answers": frame(6, b"pingping", flags=1),
    "window of the connection": frame(8, b"\x00\x00\x00\x01"),
    "window of a stream": frame(8, b"\x00\x00\x00\x01", 1),
    "empty data": frame(0, b"", 1),
    "continuation": frame(9, b"", 1),
    "priority": frame(2, b"\x00\x00\x00\x00\x01", 1),
    "unknown": frame(99),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_of_frames_without_data_ends_the_connection(flood: str) -> None:
    """By work that is counted: the engine sees no more frames than the budget, in one read or in many."""

    async def main(size: int) -> None:
        connection, drain, lost = opened()
        connection.data_received(SETTINGS)
        stream = connection.open(HEADERS)
        head = frame(1, b"\x88", 1, 0 if flood == "continuation" else 4)  # ":status: 200"
        connection.data_received(head)
        data = FLOODS[flood] * size
        for _ in range(2 * BUDGET // size + 2):
            drain.written.clear()
            connection.data_received(data)
            if drain.is_closed:
                break
        assert drain.is_closed
        assert lost == [connection]
        error = await fate(stream)
        assert isinstance(error, UpstreamError)
        assert (error.status, error.code, error.retryable) == (502, "upstream_garbage", False)

    for size in (1, 100, 50_000):
        asyncio.run(main(size))


def test_a_flood_is_named_as_one() -> None:
    async def main() -> None:
        connection, _, _ = opened()
        connection.data_received(SETTINGS)
        stream = connection.open(HEADERS)
        connection.data_received(frame(6, b"pingping", flags=1) * (BUDGET + 1))
        error = await fate(stream)
        assert isinstance(error, UpstreamError)
        assert error.message == "server:1 sent 2000 HTTP/2 frames that carry no data; the connection is given up."

    asyncio.run(main())


def test_what_we_send_pays_for_window_updates() -> None:
    async def main() -> None:
        connection, drain, _ = opened()
        connection.data_received(SETTINGS)
        stream = connection.open(HEADERS)
        updates = frame(8, b"\x00\x00\x00\x01") + frame(8, b"\x00\x00\x00\x01", 1)
        for _ in range(BUDGET * 2):
            drain.written.clear()
            await stream.send(b"x")
            connection.data_received(updates)
        assert not drain.is_closed
        connection.close()

    asyncio.run(main())


def test_a_quiet_connection_may_be_pinged_for_ever() -> None:
    async def main() -> None:
        connection, drain, _ = opened(Limits(ping=0.001, silence=1000))
        connection.data_received(SETTINGS)
        connection.open(HEADERS)
        for _ in range(BUDGET * 2 // 100):
            connection.data_received(PING * 100)
            written = len(drain.written)
            async with asyncio.timeout(20):
                while len(drain.written) == written:  # until we have pinged, too
                    await asyncio.sleep(0.001)
        assert not drain.is_closed
        connection.close()

    asyncio.run(main())


def test_it_is_ready_when_the_settings_are_there_even_byte_by_byte() -> None:
    async def main() -> None:
        connection, _, _ = opened()
        for byte in SETTINGS[:-1]:
            connection.data_received(bytes([byte]))
            assert not connection.ready.done()
        connection.data_received(SETTINGS[-1:])
        assert connection.ready.done()
        assert connection.fault is None
        connection.close()

    asyncio.run(main())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1 << 30))
def test_whatever_comes_ends_in_an_error_and_never_in_an_exception(seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        connection, drain, _ = opened()
        connection.data_received(SETTINGS)
        streams = [connection.open(HEADERS) for _ in range(3)]
        for _ in range(20):
            payload = chance.randbytes(chance.choice([0, 1, 4, 5, 8, 30]))
            head = len(payload).to_bytes(3, "big") + bytes([chance.randrange(12), chance.choice([0, 1, 4, 5, 8, 255])])
            connection.data_received(head + chance.choice([0, 0, 1, 3, 5, 2, 99]).to_bytes(4, "big") + payload)
        connection.connection_lost(None)
        drain.close()
        for stream in streams:
            found = await fate(stream)
            while isinstance(found, bytes) and found:
                found = await fate(stream)
            assert found == b"" or isinstance(found, UpstreamError)
        assert connection.closed.done()
        assert not connection.has_room

    asyncio.run(main())
