from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from h2.errors import ErrorCodes

from tests.garbage import held_by_cycles
from toolwire.backends.cursor.transport.stream import Http2Limits, Http2Stream, code_name
from toolwire.backends.http.connection import Kind, TransportError
from toolwire.errors import UpstreamError

pytestmark = pytest.mark.slow


class Notes:
    """A carrier that writes down what it is told."""

    def __init__(self, room: int = 1000) -> None:
        self.loop = asyncio.get_running_loop()
        self.limits = Http2Limits(window=1000, stall=0.05)
        self.space = room
        self.noted: list[Any] = []

    def room(self, stream: Http2Stream) -> int:
        return self.space

    def write(self, stream: Http2Stream, data: bytes) -> None:
        self.noted.append(data)
        self.space -= len(data)

    def open_window(self, stream: Http2Stream, size: int) -> None:
        self.noted.append(size)

    def forget(self, stream: Http2Stream, code: ErrorCodes | None) -> None:
        self.noted.append(code)

    def failure(self, kind: Kind, problem: str) -> TransportError:
        return TransportError(kind, f"it {problem}", sent=True)


OK = [(b":status", b"200"), (b"content-type", b"application/connect+proto")]


def test_the_window_opens_in_large_helpings_as_the_bytes_are_read() -> None:
    async def main() -> None:
        notes = Notes()
        stream = Http2Stream(notes, 1)
        stream.on_head(OK)
        stream.on_data(b"x" * 900, 0)
        assert notes.noted == []
        assert await stream.read() == b"x" * 900
        assert notes.noted == [900]
        stream.on_data(b"x" * 300, 0)
        await stream.read()
        stream.on_data(b"", 250)  # padding is never read
        assert notes.noted == [900, 550]

    asyncio.run(main())


def test_a_reply_that_ends_in_mid_message_is_left_by_a_reset_and_otherwise_by_the_end() -> None:
    async def main() -> None:
        notes = Notes(room=10)
        stream = Http2Stream(notes, 1)
        sending = asyncio.create_task(stream.send(b"y" * 30))
        await asyncio.sleep(0)
        stream.on_head(OK)
        stream.on_end()
        with pytest.raises(UpstreamError):
            await sending
        assert notes.noted == [b"y" * 10, ErrorCodes.CANCEL]
        other = Http2Stream(notes, 3)
        other.on_head(OK)
        other.on_end()
        other.reset()
        assert notes.noted[2:] == [ErrorCodes.NO_ERROR]
        assert await other.read() == b""

    asyncio.run(main())


def test_a_second_reader_is_a_mistake_of_ours() -> None:
    async def main() -> None:
        stream = Http2Stream(Notes(), 1)
        reading = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await stream.read()
        reading.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("status", [b"999999", b"\xff", b"", b"0"])
def test_an_odd_status_is_an_error_of_the_server(status: bytes) -> None:
    async def main() -> None:
        stream = Http2Stream(Notes(), 1)
        stream.on_head([(b":status", status)])
        stream.on_end()
        with pytest.raises(UpstreamError) as caught:
            await stream.read()
        assert 500 <= caught.value.status < 600

    asyncio.run(main())


@pytest.mark.parametrize(("status", "code"), [(b"14", 503), (b"99", 502), (b"x", 502)])
def test_trailers_say_what_failed(status: bytes, code: int) -> None:
    async def main() -> None:
        stream = Http2Stream(Notes(), 1)
        stream.on_head(OK)
        stream.on_trailers([(b"grpc-status", status)])
        stream.on_end()
        with pytest.raises(UpstreamError) as caught:
            await stream.read()
        assert caught.value.status == code

    asyncio.run(main())


def test_trailers_without_a_failure_are_nothing() -> None:
    async def main() -> None:
        stream = Http2Stream(Notes(), 1)
        stream.on_head(OK)
        stream.on_trailers([(b"grpc-status", b"0"), (b"x", b"y")])
        stream.on_end()
        assert await stream.read() == b""

    asyncio.run(main())


def test_a_number_has_a_word() -> None:
    assert code_name(7) == "REFUSED_STREAM"
    assert code_name(4000) == "error 4000"


def test_a_stream_that_failed_is_in_no_cycle_with_its_readers() -> None:
    async def main() -> None:
        stream = Http2Stream(Notes(), 1)
        stream.reset()
        for work in (stream.read(), stream.send(b"a"), stream.read()):
            with suppress(UpstreamError):
                await work

    assert held_by_cycles(lambda: asyncio.run(main())) == []
