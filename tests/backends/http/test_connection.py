from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.http.loopback import CHUNKED, Handler, Loopback, Run, run_each
from tests.garbage import held_by_cycles
from tests.thorough import examples
from toolwire.backends.http.connection import HttpConnection, Outgoing, Response, Timeouts, TransportError

GET = Outgoing("GET", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_each(request.param)


def playing(*pieces: bytes, then_close: bool = True) -> Handler:
    """Read one request head, write these bytes one after the other, then close or wait for the client to close."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if then_close:
            writer.close()
            await writer.wait_closed()
        else:
            await reader.read()

    return handler


@asynccontextmanager
async def connected(handler: Handler, **options: Any) -> AsyncIterator[tuple[HttpConnection, Loopback]]:
    async with Loopback(handler) as server:
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: HttpConnection("server:1", **options), "127.0.0.1", server.port
        )
        try:
            yield connection, server
        finally:
            connection.abort()
            await connection.closed


async def fetch(
    *pieces: bytes, method: str = "GET", then_close: bool = True, timeouts: Timeouts | None = None, **options: Any
) -> tuple[Response, bytes, bool]:
    """The response, its body, and whether the connection was offered for another exchange."""
    idle: list[HttpConnection] = []
    async with connected(playing(*pieces, then_close=then_close), on_idle=idle.append, **options) as (connection, _):
        response = await connection.exchange(Outgoing(method, GET.head), timeouts or Timeouts())
        return response, await response.read_all(10_000_000), bool(idle)


async def failure(*pieces: bytes, **options: Any) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await fetch(*pieces, **options)
    assert caught.value.sent
    assert caught.value.message.startswith("server:1 ")
    return caught.value


def test_content_length(run: Run) -> None:
    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\n"
        response, body, is_idle = await fetch(head + b"hello", then_close=False)
        assert (response.status, body, is_idle) == (200, b"hello", True)
        assert response.headers == {"content-length": "5", "x-a": "1, 2"}
        assert await response.read() == b""

    run(main())


def test_chunked_split_at_every_byte(run: Run) -> None:
    async def main() -> None:
        wire = CHUNKED + b"5;ext=1\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nx-trailer: 1\r\n\r\n"
        pieces = [wire[index : index + 1] for index in range(len(wire))]
        response, body, is_idle = await fetch(*pieces, then_close=False)
        assert (body, is_idle) == (b"hello 0123456789", True)
        assert response.headers == {"transfer-encoding": "chunked"}

    run(main())


@examples(25)
@given(st.lists(st.integers(0, 140), max_size=8), st.booleans())
def test_cutting_does_not_matter(cuts: list[int], is_chunked: bool) -> None:
    body = bytes(range(100))
    wire = b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 201 Made\r\n"
    if is_chunked:
        wire += b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    else:
        wire += b"content-length: 100\r\n\r\n" + body
    edges = [0, *sorted(cuts), len(wire)]
    pieces = [wire[start:end] for start, end in pairwise(edges)]

    async def main() -> None:
        response, received, is_idle = await fetch(*pieces, then_close=False)
        assert (response.status, received, is_idle) == (201, body, True)
        assert "link" not in response.headers

    asyncio.run(main())


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_body_until_close(run: Run, version: bytes) -> None:
    async def main() -> None:
        _, body, is_idle = await fetch(b"HTTP/%s 200 OK\r\n\r\nhe" % version, b"llo")
        assert (body, is_idle) == (b"hello", False)

    run(main())


def test_interim_replies_are_skipped(run: Run) -> None:
    async def main() -> None:
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
        response, body, is_idle = await fetch(interim + b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        assert (response.status, body, is_idle) == (200, b"hi", True)
        assert response.headers == {"content-length": "2"}

    run(main())


@pytest.mark.parametrize(
    ("method", "head"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 9\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 500\r\n\r\n"),
    ],
)
def test_replies_without_body(run: Run, method: str, head: bytes) -> None:
    async def main() -> None:
        _, body, is_idle = await fetch(head, method=method, then_close=False)
        assert (body, is_idle) == (b"", True)

    run(main())


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi!",
    ],
    ids=["close", "http-1.0", "second reply", "surplus"],
)
def test_connection_is_not_kept(run: Run, wire: bytes) -> None:
    async def main() -> None:
        _, body, is_idle = await fetch(wire, then_close=False)
        assert (body, is_idle) == (b"hi", False)

    run(main())


def test_http_1_0_keep_alive_is_kept(run: Run) -> None:
    async def main() -> None:
        wire = b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi"
        _, body, is_idle = await fetch(wire, then_close=False)
        assert (body, is_idle) == (b"hi", True)

    run(main())


def test_bytes_on_an_idle_connection_close_it(run: Run) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async def main() -> None:
        async with connected(handler) as (connection, _):
            response = await connection.exchange(GET, Timeouts())
            assert await response.read() == b""
            assert connection.is_open
            await asyncio.wait_for(connection.closed, 1)
            assert not connection.is_open

    run(main())


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
        CHUNKED + b"5\r\nhello\r\n",
        CHUNKED + b"5\r\nhel",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"",
    ],
    ids=["length", "no last chunk", "in a chunk", "in the head", "nothing"],
)
def test_cut(run: Run, wire: bytes) -> None:
    async def main() -> None:
        assert (await failure(wire)).kind == "cut"

    run(main())


def test_what_came_before_the_cut_is_read_first(run: Run) -> None:
    async def main() -> None:
        async with connected(playing(CHUNKED + b"5\r\nhello\r\n")) as (connection, _):
            response = await connection.exchange(GET, Timeouts())
            await connection.closed
            assert await response.read() == b"hello"
            for _again in range(2):
                with pytest.raises(TransportError) as caught:
                    await response.read()
                assert caught.value.kind == "cut"

    run(main())


@pytest.mark.parametrize(
    "wire",
    [
        b"<html>not http</html>",
        b"HTTP/1.1 999999 What\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\nhi",
        CHUNKED + b"zz\r\nhello",
        b"\x16\x03\x01\x00\x00",
    ],
)
def test_garbage(run: Run, wire: bytes) -> None:
    async def main() -> None:
        assert (await failure(wire, then_close=False)).kind == "protocol"

    run(main())


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nx: " + b"a" * 5000 + b"\r\ncontent-length: 0\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nx: ", *[b"a" * 500] * 10],
        [b"HTTP/1.1 200 OK\r\n", *[b"x: aaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"] * 200],
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * 300,
        [CHUNKED + b"1\r\nx\r\n0\r\nt: ", *[b"a" * 500] * 10],
        [CHUNKED + b"1;", *[b"a" * 500] * 10],
    ],
    ids=["one piece", "endless value", "many", "interim", "trailers", "chunk extension"],
)
def test_huge_headers(run: Run, pieces: list[bytes]) -> None:
    async def main() -> None:
        error = await failure(*pieces, then_close=False, max_header_bytes=4096)
        assert error.kind == "protocol"
        assert "4096 bytes" in error.message

    run(main())


def test_headers_below_the_limit_pass(run: Run) -> None:
    async def main() -> None:
        wire = b"HTTP/1.1 200 OK\r\nx: " + b"a" * 60_000 + b"\r\ncontent-length: 0\r\n\r\n"
        response, _, is_idle = await fetch(wire, then_close=False)
        assert len(response.headers["x"]) == 60_000
        assert is_idle

    run(main())


def test_first_byte_timeout(run: Run) -> None:
    async def main() -> None:
        error = await failure(then_close=False, timeouts=Timeouts(first_byte=0.05))
        assert error.kind == "first_byte_timeout"
        # A head that drips does not push the deadline back.
        error = await failure(b"HTTP/1.1 200 OK\r\nx: ", then_close=False, timeouts=Timeouts(first_byte=0.1, idle=0.03))
        assert error.kind == "first_byte_timeout"

    run(main())


@pytest.mark.slow
def test_idle_timeout_counts_from_the_last_byte(run: Run) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        for _ in range(6):
            writer.write(b"1\r\nx\r\n")
            await asyncio.sleep(0.12)
        await reader.read(1000)
        await reader.read()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with connected(handler) as (connection, server):
            started = loop.time()
            response = await connection.exchange(GET, Timeouts(idle=0.5))
            pieces: list[bytes] = []

            async def read_on() -> None:
                while True:
                    pieces.append(await response.read())

            with pytest.raises(TransportError) as caught:
                await read_on()
            assert (caught.value.kind, b"".join(pieces)) == ("idle_timeout", b"xxxxxx")
            assert loop.time() - started >= 1.0
            await asyncio.wait_for(server.closed.wait(), 1)

    run(main())


@pytest.mark.parametrize("coding", [b"gzip", b"x-gzip", b"deflate"])
def test_compressed_bodies(run: Run, coding: bytes) -> None:
    text = b"data: {}\n\n" * 100_000
    packed = zlib.compress(text) if coding == b"deflate" else gzip.compress(text)

    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (coding, len(packed))
        pieces = [packed[start : start + 100] for start in range(0, len(packed), 100)]
        response, body, is_idle = await fetch(head, *pieces, then_close=False)
        assert (body, is_idle) == (text, True)
        assert response.headers == {}

    run(main())


@pytest.mark.parametrize(
    ("coding", "packed", "body"),
    [
        (b"gzip", gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0), b"one two"),
        (b"gzip", gzip.compress(b"one", mtime=0) + b"\0\0\0", b"one"),
        (b"deflate", zlib.compress(b"one", wbits=-15), b"one"),
        (b"gzip", b"", b""),
        (b"identity", b"one", b"one"),
    ],
    ids=["members", "padding", "raw deflate", "empty", "identity"],
)
def test_compressed_variants(coding: bytes, packed: bytes, body: bytes) -> None:
    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %s\r\ncontent-length: %d\r\n\r\n" % (coding, len(packed))
        for pieces in ([packed], [packed[index : index + 1] for index in range(len(packed))]):
            _, received, _ = await fetch(head, *pieces)
            assert received == body

    asyncio.run(main())


@pytest.mark.parametrize(
    "packed", [b"not gzip", gzip.compress(b"hello" * 100, mtime=0)[:-9], gzip.compress(b"a", mtime=0) + b"junk"]
)
def test_broken_compression(packed: bytes) -> None:
    async def main() -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
        assert (await failure(head + packed)).kind == "protocol"

    asyncio.run(main())


def test_compression_bomb_is_read_in_bounded_pieces() -> None:
    packed = gzip.compress(bytes(50_000_000))
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)

    async def main() -> None:
        async with connected(playing(head + packed)) as (connection, _):
            response = await connection.exchange(GET, Timeouts())
            assert 0 < len(await response.read()) <= 256 * 1024
            with pytest.raises(TransportError) as caught:
                await response.read_all(1_000_000)
            assert caught.value.kind == "protocol"

    tracemalloc.start()
    try:
        asyncio.run(main())
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_read_all_stops_at_the_limit(run: Run) -> None:
    async def main() -> None:
        async with connected(playing(CHUNKED, b"5\r\nhello\r\n", then_close=False)) as (connection, server):
            response = await connection.exchange(GET, Timeouts())
            with pytest.raises(TransportError) as caught:
                await response.read_all(4)
            assert caught.value.kind == "protocol"
            await asyncio.wait_for(server.closed.wait(), 1)

    run(main())


def test_flood_is_held_back_until_it_is_read(run: Run) -> None:
    block = bytes(range(256)) * 256
    blocks = 320

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (blocks * len(block)))
        for _ in range(blocks):
            writer.write(block)
            await writer.drain()
        await reader.read()

    async def main() -> None:
        idle: list[HttpConnection] = []
        async with connected(flood, on_idle=idle.append) as (connection, _):
            response = await connection.exchange(GET, Timeouts(idle=0.05))
            await asyncio.sleep(0.2)
            assert connection.is_paused
            assert 256 * 1024 < response._buffered < 1_000_000
            # Nobody read for four times the idle timeout: that is our pause, not the server's stall.
            assert await response.read_all(blocks * len(block)) == block * blocks
            assert idle == [connection]
            assert not connection.is_paused

    run(main())


def test_abort_closes_the_server_side_at_once(run: Run) -> None:
    async def main() -> None:
        async with connected(playing(CHUNKED + b"1\r\nx\r\n", then_close=False)) as (connection, server):
            response = await connection.exchange(GET, Timeouts())
            assert await response.read() == b"x"
            pending = asyncio.ensure_future(response.read())
            await asyncio.sleep(0)
            response.abort()
            response.abort()
            await asyncio.wait_for(server.closed.wait(), 0.05)
            with pytest.raises(TransportError) as caught:
                await pending
            assert caught.value.kind == "cut"

    run(main())


def test_abort_after_the_end_leaves_the_connection_alone(run: Run) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")

    async def main() -> None:
        async with connected(handler) as (connection, server):
            first = await connection.exchange(GET, Timeouts())
            second = await connection.exchange(GET, Timeouts())
            first.abort()
            assert await second.read_all(10) == b"hi"
            assert connection.is_open
            assert server.connections == 1

    run(main())


@pytest.mark.parametrize("pieces", [[], [CHUNKED]], ids=["in exchange", "in read"])
def test_cancelling_closes_the_connection(run: Run, pieces: list[bytes]) -> None:
    async def main() -> None:
        async with connected(playing(*pieces, then_close=False)) as (connection, server):

            async def work() -> None:
                await (await connection.exchange(GET, Timeouts())).read()

            task = asyncio.ensure_future(work())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.closed.wait(), 1)
            await asyncio.wait_for(connection.closed, 1)

    run(main())


def test_two_readers_are_refused(run: Run) -> None:
    async def main() -> None:
        async with connected(playing(CHUNKED, then_close=False)) as (connection, _):
            response = await connection.exchange(GET, Timeouts())
            first = asyncio.ensure_future(response.read())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="one reader"):
                await response.read()
            with pytest.raises(RuntimeError, match="not free"):
                await connection.exchange(GET, Timeouts())
            response.abort()
            with pytest.raises(TransportError):
                await first

    run(main())


@pytest.mark.parametrize("size", [10, 100_000, 5_000_000])
def test_body_arrives_whole(run: Run, size: int) -> None:
    received: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        received.append(await reader.readexactly(size))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async def main() -> None:
        async with connected(handler) as (connection, _):
            response = await connection.exchange(Outgoing("POST", GET.head, b"ab" * (size // 2)), Timeouts())
            assert response.status == 200
            assert received == [b"ab" * (size // 2)]

    run(main())


def test_early_answer_to_a_large_body_does_not_keep_the_connection(run: Run) -> None:
    async def main() -> None:
        idle: list[HttpConnection] = []
        wire = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"
        async with connected(playing(wire, then_close=False), on_idle=idle.append) as (connection, _):
            body = bytes(20_000_000)
            response = await connection.exchange(Outgoing("POST", GET.head, body), Timeouts())
            assert response.status == 413
            assert idle == []
            assert not connection.is_open

    run(main())


@pytest.mark.parametrize("wire", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut"])
def test_a_reply_that_failed_is_in_no_cycle_with_its_readers(run: Run, wire: bytes) -> None:
    async def main() -> None:
        with suppress(TransportError):
            await fetch(wire)

    assert held_by_cycles(lambda: run(main())) == []
