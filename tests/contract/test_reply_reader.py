"""Any back end's answer as events: bytes of a dialect, streaming or not, or events of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.loop_ticks import ticking
from tests.server.answers import body, frames
from toolwire.backends.base import EventReply
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Started, fold
from toolwire.pipeline.answer import ReplyReader, is_streamed
from toolwire.types import Request, Text
from toolwire.wire.exact_json import encode

DIALECTS = ("chat", "responses", "messages")


class Reply:
    """Bytes in pieces; an error among them is raised, None is waited for in vain."""

    headers: dict[str, str] = {}
    losses = ()

    def __init__(self, *pieces: Any, kind: str) -> None:
        self.content_type = kind
        self.is_complete = False
        self.is_aborted = False
        self._pieces = list(pieces)

    async def read(self) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, Exception):
            raise piece
        if piece is None:
            await asyncio.sleep(9)
        return bytes(piece or b"")

    def abort(self) -> None:
        self.is_aborted = True


def read(reply: Reply, dialect: str, *, stream: bool, until_end: bool = True) -> list[Event]:
    async def main() -> list[Event]:
        reader = ReplyReader(reply, dialect, Request(model="m", messages=(), stream=stream))
        events: list[Event] = []
        async for batch in reader.events():
            events += batch
            if not until_end and any(isinstance(event, Finished) for event in batch):
                break
        await reader.release(is_over=True)
        return events

    return asyncio.run(main())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream(dialect: str) -> None:
    reply = Reply(*frames(dialect), kind="text/event-stream; charset=utf-8")
    assert fold(read(reply, dialect, stream=True)).parts_of(0)[0].text == "Hello there"  # type: ignore[union-attr] # text
    assert not reply.is_aborted


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body(dialect: str) -> None:
    data = encode(body(dialect))
    reply = Reply(data[:50], data[50:], kind="application/json")
    part = fold(read(reply, dialect, stream=True)).parts_of(0)[0]
    assert isinstance(part, Text)
    assert part.text == "Hello there"


def test_a_stream_that_does_not_say_so() -> None:
    assert fold(read(Reply(*frames("chat"), kind=""), "chat", stream=True)).parts


def test_a_stream_that_is_cut_ends_in_a_failure() -> None:
    events = read(Reply(*frames("chat")[:2], kind="text/event-stream"), "chat", stream=True)
    assert isinstance(events[-1], Failed)


def test_an_error_in_between_is_raised() -> None:
    reply = Reply(frames("chat")[0], UpstreamError("stalled"), kind="text/event-stream")
    with pytest.raises(UpstreamError, match="stalled"):
        read(reply, "chat", stream=True)


@pytest.mark.parametrize("rest", [b"more", UpstreamError("reset"), None])
def test_what_comes_after_the_end_is_awaited_for_a_moment(rest: Any) -> None:
    reply = Reply(b"".join(frames("chat")), rest, kind="text/event-stream")
    assert fold(read(reply, "chat", stream=True, until_end=False)).parts
    assert reply.is_aborted == (rest != b"more")


def test_events_of_this_process() -> None:
    async def play() -> AsyncIterator[list[Event]]:
        yield [Started(id="g", model="m")]

    async def main() -> list[Event]:
        reader = ReplyReader(EventReply(events=play()), "", Request(model="m", messages=()))
        events = [event async for batch in reader.events() for event in batch]
        await reader.release(is_over=True)
        return events

    assert asyncio.run(main()) == [Started(id="g", model="m")]


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
def test_a_large_event_is_read_beside_the_loop(stream: bool) -> None:
    """An item in many small parts: it takes the loop's rounds to read it, and they are there."""

    async def main() -> None:
        text = {"type": "output_text", "text": "word", "annotations": []}
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text] * 40_000}
        value = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}
        wire = encode(value)
        if stream:
            wire = b"data: " + encode({"type": "response.completed", "response": value}) + b"\n\n"
        pieces = [wire[start : start + 32_768] for start in range(0, len(wire), 32_768)]
        reply = Reply(*pieces, kind="text/event-stream" if stream else "application/json")
        reader = ReplyReader(reply, "responses", Request(model="m", messages=(), stream=stream))
        async with ticking() as ticks:
            batches = [events async for events in reader.events()]
            assert ticks.count >= 5
        assert isinstance(batches[-1 if not stream else -2][-1], Finished)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("content_type", "is_asked", "expected"),
    [
        ("text/event-stream; charset=utf-8", False, True),
        ("Text/Event-Stream", True, True),
        ("application/json", True, False),
        ("", True, True),
        ("text/plain", True, True),
        ("", False, False),
        ("text/html", False, False),
    ],
)
def test_a_reply_is_read_by_its_content_type_else_by_the_request(
    content_type: str, is_asked: bool, expected: bool
) -> None:
    assert is_streamed(Reply(kind=content_type), Request(model="m", messages=(), stream=is_asked)) is expected
