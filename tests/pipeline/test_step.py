"""One turn under way: pieces to the client, an end in order whatever happens, and nobody left running."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.calls.streams import call, events_of
from toolwire.backends.base import EventReply, WireReply
from toolwire.calls.turn import Turn
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import Context
from toolwire.errors import InternalError, UpstreamError
from toolwire.events import Event, Failed
from toolwire.ids import new_id
from toolwire.pipeline.step import Step
from toolwire.pipeline.verbatim import Translator
from toolwire.telemetry import Record
from toolwire.types import Loss, Message, Request, Text, Usage

REQUEST = Request(
    model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),), origin="chat", stream=True, wire=b"{}"
)
CHUNK = b'data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]}\n\n'
WORD = CHUNK % b'{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}'
END = CHUNK % b'{"index":0,"delta":{},"finish_reason":"stop"}'
DONE = b"data: [DONE]\n\n"


class Wire:
    """A reply in bytes: pieces, then the end or an error."""

    headers: Mapping[str, str] = {"x-upstream": "1"}
    content_type = "text/event-stream"
    losses = (Loss("seed", "seed", "no such thing"),)

    def __init__(self, *pieces: bytes | Exception) -> None:
        self._pieces = list(pieces)
        self.aborted = 0

    @property
    def is_complete(self) -> bool:
        return not self._pieces

    async def read(self) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, Exception):
            raise piece
        return piece

    def abort(self) -> None:
        self.aborted += 1


class Events:
    """A reply in events; it notes when it is closed."""

    def __init__(self, *pieces: list[Event] | Exception) -> None:
        self._pieces = pieces
        self.is_closed = False
        self.reply = EventReply(events=self._play())

    async def _play(self) -> AsyncIterator[list[Event]]:
        try:
            for piece in self._pieces:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            self.is_closed = True


def step_of(reply: WireReply | EventReply, record: Record | None = None, *, stream: bool = True) -> Step:
    request = REQUEST if stream else Request(model="m", messages=REQUEST.messages, origin="chat", wire=b"{}")
    turn = Turn(request, new_id)
    encoder = DIALECTS["chat"].encoder(Context(request=request, mint=new_id, now=1))
    decoder = None if isinstance(reply, EventReply) else DIALECTS["chat"].stream_decoder(request)
    return Step(reply, Translator(decoder, turn, encoder), turn, record or Record())


def run(step: Step) -> list[tuple[bytes, bool]]:
    """Each piece, and whether it was said to be the last."""
    written: list[tuple[bytes, bool]] = []

    async def write(wire: bytes) -> None:
        written.append((wire, step.is_over))

    async def main() -> None:
        await step.run(write)
        await step.release()

    asyncio.run(main())
    return written


def test_pieces_leave_as_they_come_and_the_last_is_known() -> None:
    record, wire = Record(), Wire(WORD, END + DONE)
    written = run(step_of(wire, record))
    assert len(written) == 2
    assert b"Hello" in written[0][0]
    assert [is_last for _, is_last in written] == [False, True]
    assert written[-1][0].endswith(DONE)
    assert wire.aborted == 0
    assert (record.outcome, [loss.feature for loss in record.losses]) == ("ok", ["seed"])


def test_the_replys_headers_and_losses_are_there_before_it_runs() -> None:
    step = step_of(Wire())
    step.lose([Loss("n", "n", "why")])
    assert step.headers == {"x-upstream": "1"}
    assert [loss.feature for loss in step.losses] == ["seed", "n"]
    assert not step.has_content


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ([WORD], "upstream_cut"),
        ([WORD, UpstreamError("gone", code="upstream_timeout")], "upstream_timeout"),
        ([b"<html>"], "upstream_cut"),
    ],
)
def test_a_failure_ends_it_in_the_dialects_own_error(pieces: list[Any], code: str) -> None:
    record = Record()
    step = step_of(Wire(*pieces), record)
    written = run(step)
    assert b'"error"' in written[-1][0]
    assert DONE not in written[-1][0]
    assert step.error is not None
    assert (step.error.code, record.outcome, record.error) == (code, "error", code)


def test_what_was_no_stream_is_shown() -> None:
    step = step_of(Wire(b"<html>Bad gateway"))
    run(step)
    assert step.error is not None
    assert "Bad gateway" in step.error.message


def test_an_answer_left_in_the_middle_is_stopped() -> None:
    async def main() -> None:
        wire = Wire(WORD, END + DONE)
        step = step_of(wire)

        async def leave(_: bytes) -> None:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await step.run(leave)
        await step.release()
        assert wire.aborted == 1

    asyncio.run(main())


def test_events_become_the_clients_dialect() -> None:
    events, record = (
        Events(*([event] for event in events_of(Text(text="Hello"), call(), usage=Usage(input=2)))),
        Record(),
    )
    written = run(step_of(events.reply, record))
    assert written[-1][1]
    assert b'"tool_calls"' in b"".join(wire for wire, _ in written)
    assert record.usage == Usage(input=2)
    assert events.is_closed


def test_an_answer_that_is_not_streamed_leaves_in_one_piece() -> None:
    written = run(step_of(Events(events_of(Text(text="Hello"), reason="stop")).reply, stream=False))
    assert len(written) == 1
    assert b"chat.completion" in written[0][0]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (UpstreamError("gone", code="upstream_cut"), "upstream_cut"),
        ([Failed(error=UpstreamError("no"))], "upstream_error"),
        (ZeroDivisionError("a mistake"), "internal_error"),
        ([], "upstream_garbage"),
    ],
)
def test_events_that_fail_end_in_the_dialects_own_error(end: Any, code: str) -> None:
    record = Record()
    events = Events(events_of(Text(text="Hello"))[:3], end)
    step = step_of(events.reply, record)
    written = run(step)
    assert b'"error"' in written[-1][0]
    assert step.error is not None
    assert step.error.code == code == record.error
    assert b"a mistake" not in written[-1][0]
    assert isinstance(step.error, InternalError) == (code == "internal_error")
    assert events.is_closed


def test_events_that_nobody_reads_on_are_closed() -> None:
    async def main() -> None:
        events = Events(events_of(Text(text="Hello"))[:3], events_of(Text(text="Hello"))[3:])
        step = step_of(events.reply)

        async def leave(_: bytes) -> None:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await step.run(leave)
        await step.release()
        assert events.is_closed

    asyncio.run(main())


def test_it_can_be_ended_from_outside_once() -> None:
    step = step_of(Wire(WORD))
    assert b"stopped" in step.fail(UpstreamError("it was stopped"))
    assert step.fail(UpstreamError("again")) == b""
    assert step.is_over


class Where:
    """A decoder that notes the threads in which it is fed and closed."""

    irregular = ""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def feed(self, data: bytes) -> list[Event]:
        if b"\n" in data:
            self.threads.append(threading.current_thread().name)
        return []

    def close(self) -> list[Event]:
        self.threads.append(threading.current_thread().name)
        return events_of(call("a"))


def test_a_large_event_is_read_beside_the_loop() -> None:
    async def main() -> None:
        large = [b"x" * 600_000, b"x" * 600_000]
        for pieces, is_beside in (([*large, b"\n\n"], True), ([b"x" * 1000, b"\n\n"], False)):
            decoder = Where()
            turn = Turn(REQUEST, new_id)
            encoder = DIALECTS["chat"].encoder(Context(request=REQUEST, mint=new_id, now=1))
            step = Step(Wire(*pieces), Translator(decoder, turn, encoder), turn, Record())
            written: list[bytes] = []

            async def write(wire: bytes, written: list[bytes] = written) -> None:
                written.append(wire)

            await step.run(write)
            assert b"".join(written)
            assert [name.startswith("toolwire-offload") for name in decoder.threads] == [is_beside, is_beside]

    asyncio.run(main())
