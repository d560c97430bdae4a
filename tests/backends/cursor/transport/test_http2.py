from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.backends.cursor.transport.http2 import BUDGET, FrameFilter, FrameFlood, GoAway, Http2Connection, NotHttp2
from toolwire.backends.cursor.transport.stream import Http2Limits, Http2Stream
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


def opened(limits: Http2Limits | None = None) -> tuple[Http2Connection, Drain]:
    connection = Http2Connection("server:1", limits or Http2Limits())
    drain = Drain()
    connection.connection_made(drain)
    return connection, drain


async def fate(stream: Http2Stream) -> bytes | UpstreamError:
    try:
        return await stream.read()
    except UpstreamError as error:
        return error


def test_a_flood_of_pings_from_a_server_that_does_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.cursor.transport.http2._MAX_UNREAD_ANSWERS", 50_000)

    async def main() -> None:
        connection, drain = opened()
        connection.data_received(SETTINGS)
        stream = connection.open(HEADERS)
        for _ in range(100):
            connection.data_received(PING * 100)
            if drain.is_closed:
                break
        assert connection.is_retired
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
        connection, drain = opened()
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
        assert connection.is_retired
        error = await fate(stream)
        assert isinstance(error, UpstreamError)
        assert (error.status, error.code, error.retryable) == (502, "upstream_garbage", False)

    for size in (1, 100, 50_000):
        asyncio.run(main(size))


def test_a_flood_is_named_as_one() -> None:
    async def main() -> None:
        connection, _ = opened()
        connection.data_received(SETTINGS)
        stream = connection.open(HEADERS)
        connection.data_received(frame(6, b"pingping", flags=1) * (BUDGET + 1))
        error = await fate(stream)
        assert isinstance(error, UpstreamError)
        assert error.message == "server:1 sent 2000 HTTP/2 frames without data; the connection was closed."

    asyncio.run(main())


def test_what_we_send_pays_for_window_updates() -> None:
    async def main() -> None:
        connection, drain = opened()
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
        connection, drain = opened(Http2Limits(ping=0.001, silence=1000))
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
        connection, _ = opened()
        for byte in SETTINGS[:-1]:
            connection.data_received(bytes([byte]))
            assert not connection.ready.done()
        connection.data_received(SETTINGS[-1:])
        assert connection.ready.done()
        assert connection.fault is None
        connection.close()

    asyncio.run(main())


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1 << 30))
def test_whatever_comes_ends_in_an_error_and_never_in_an_exception(seed: int) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        connection, drain = opened()
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


def encoded(kind: int, payload: bytes, stream: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + payload


EMPTY_SETTINGS = encoded(4, b"")
GOODBYE = encoded(7, (5).to_bytes(4, "big") + (11).to_bytes(4, "big") + b"calm down")


def filtered(data: bytes, cuts: list[int]) -> tuple[bytes, list[GoAway]]:
    filter_, passed, goaways = FrameFilter(), b"", []
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in pairwise(places):
        plain, found = filter_.feed(data[start:stop])
        passed += plain
        goaways += found
    return passed, goaways


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 6, 7, 8, 200]), st.binary(max_size=30)), max_size=6),
    st.lists(st.integers(0, 400), max_size=12),
)
def test_only_farewells_are_taken_out_however_the_bytes_are_cut(
    frames: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    data = EMPTY_SETTINGS + b"".join(encoded(kind, payload) for kind, payload in frames)
    passed, goaways = filtered(data, cuts)
    assert passed == EMPTY_SETTINGS + b"".join(encoded(kind, payload) for kind, payload in frames if kind != 7)
    assert len(goaways) == sum(kind == 7 for kind, _ in frames)


def test_a_farewell_is_read() -> None:
    data = EMPTY_SETTINGS + GOODBYE + encoded(6, b"pingping")
    for cut in range(len(data)):
        assert filtered(data, [cut]) == (EMPTY_SETTINGS + encoded(6, b"pingping"), [GoAway(5, 11, "calm down")])


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", GoAway(0, 1)),
        (b"\xff" * 8, GoAway(0x7FFFFFFF, 0xFFFFFFFF)),
        (bytes(8) + b"x" * 5000, GoAway(0, 0, "x" * 200)),
    ],
)
def test_an_odd_farewell_is_bounded(payload: bytes, expected: GoAway) -> None:
    assert filtered(EMPTY_SETTINGS + encoded(7, payload), []) == (EMPTY_SETTINGS, [expected])


@pytest.mark.parametrize("data", [b"SSH-2.0-x", b"\xff" * 9, GOODBYE, EMPTY_SETTINGS + encoded(0, b"x" * 16385)])
def test_what_is_no_http_2_is_found_in_its_first_bytes(data: bytes) -> None:
    with pytest.raises(NotHttp2):
        FrameFilter().feed(data)


def test_frames_without_data_are_counted_however_they_are_cut() -> None:
    for kind in (1, 3, 4, 6, 8, 9, 200):
        filter_ = FrameFilter()
        filter_.feed(EMPTY_SETTINGS)
        with pytest.raises(FrameFlood):
            filter_.feed(encoded(kind, b"12345678") * BUDGET)
        filter_ = FrameFilter()
        filter_.feed(EMPTY_SETTINGS)
        for _ in range(BUDGET - 1):
            for place in (slice(0, 4), slice(4, None)):
                filter_.feed(encoded(kind, b"12345678")[place])
        with pytest.raises(FrameFlood):
            filter_.feed(encoded(kind, b"12345678"))


@pytest.mark.parametrize("payload", [b"", b"1234567"])
def test_data_of_a_few_bytes_a_frame_is_a_flood(payload: bytes) -> None:
    filter_ = FrameFilter()
    with pytest.raises(FrameFlood):
        filter_.feed(EMPTY_SETTINGS + encoded(0, payload, 1) * BUDGET)


def test_padding_is_no_data() -> None:
    frame = bytearray(encoded(0, b"\xff" + bytes(255), 1))
    frame[4] = 0x8
    with pytest.raises(FrameFlood):
        FrameFilter().feed(EMPTY_SETTINGS + bytes(frame) * BUDGET)


def test_data_and_refills_pay_for_frames() -> None:
    filter_ = FrameFilter()
    filter_.feed(EMPTY_SETTINGS)
    for _ in range(10):
        filter_.feed(encoded(6, b"pingping") * 1000)
        filter_.feed(encoded(0, b"x" * 8080, 1))
    for _ in range(3):
        filter_.refill()
        filter_.feed(encoded(6, b"pingping") * BUDGET)
    with pytest.raises(FrameFlood):
        filter_.feed(EMPTY_SETTINGS)
