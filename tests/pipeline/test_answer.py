"""One answer as events: it always ends, is kept where it must be, and leaves no connection behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from tests.agent_harness import IN_PROCESS, asked, calls, script
from tests.calls.streams import call, events_of
from toolwire.agent.host import Host
from toolwire.backends.base import EventReply, WireReply
from toolwire.calls.turn import Turn
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import AnswerContext, ResponseDecoder
from toolwire.errors import InternalError, UpstreamError
from toolwire.events import Event, Failed, Finished, PartDelta, PartStarted, Started
from toolwire.ids import new_id
from toolwire.pipeline.answer import Answer, EventAnswer, ReplyReader
from toolwire.pipeline.verbatim import Translator
from toolwire.telemetry import Record
from toolwire.types import Loss, Message, Request, Text, Tool, ToolCall, Usage

from .jobs import job_of

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


def answer_of(
    reply: WireReply | EventReply,
    record: Record | None = None,
    *,
    stream: bool = True,
    decoder: ResponseDecoder | None = None,
    losses: tuple[Loss, ...] = (),
) -> Answer:
    request = REQUEST if stream else Request(model="m", messages=REQUEST.messages, origin="chat", wire=b"{}")
    turn = Turn(request, new_id)
    encoder = DIALECTS["chat"].encoder(AnswerContext(request=request, mint=new_id, now=1))
    reader = ReplyReader(reply, "" if isinstance(reply, EventReply) else "chat", request)
    if decoder is None and not isinstance(reply, EventReply):
        decoder = reader.decoder()
    job = job_of(request, record=record or Record(), losses=list(losses))
    return Answer(job, reader, turn, Translator(decoder, turn, lambda: encoder))


def run(answer: Answer) -> list[tuple[bytes, bool]]:
    """Each piece, and whether it was said to be the last."""
    written: list[tuple[bytes, bool]] = []

    async def write(wire: bytes) -> None:
        written.append((wire, answer.is_over))

    async def main() -> None:
        await answer.run(write)
        await answer.release()

    asyncio.run(main())
    return written


def answered(prompt: str) -> tuple[list[Event], EventAnswer, Record]:
    async def main() -> tuple[list[Event], EventAnswer, Record]:
        record = Record(model="m", is_stream=True)
        answer = await Host(IN_PROCESS).runtime.answer(asked(prompt), record)
        found = [event async for events in answer.events() for event in events]
        await answer.release()
        return found, answer, record

    return asyncio.run(main())


def test_events_and_the_parts_they_come_to() -> None:
    events, answer, record = answered(script(calls(("f", {"a": 1}), text="So", reasoning="Hm"), strict=False))
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert [str(part.__struct_config__.tag) for part in answer.parts] == ["reasoning", "text", "tool_call"]
    assert record.outcome != "error"
    assert record.usage is not None


def test_a_call_of_a_tool_that_was_not_offered_is_a_call_all_the_same() -> None:
    """Who runs the tools judges them."""
    _, answer, _ = answered(script(calls(("f", "{broken")), strict=False))
    (call,) = answer.parts
    assert isinstance(call, ToolCall)
    assert (call.raw, call.args) == ("{broken", None)


def test_an_answer_without_an_end_has_failed() -> None:
    events, answer, record = answered(script({"text": "abcdef", "chunk": 2, "cut": 2}))
    assert isinstance(events[-1], Failed)
    assert "no end" in events[-1].error.message
    assert (record.outcome, record.error) == ("error", events[-1].error.code)
    assert answer.parts == []


def test_an_error_is_the_last_event() -> None:
    events, _, record = answered(script({"text": "abcdef", "chunk": 2, "error": {"after": 1, "code": "busy"}}))
    assert isinstance(events[-1], Failed)
    assert record.error == "busy"


def test_a_client_that_stops_reading_closes_the_back_ends_answer() -> None:
    closed: list[str] = []

    async def play() -> AsyncIterator[list[Event]]:
        try:
            yield [Started(id="g", model="m"), PartStarted(index=0, part=Text(text=""))]
            while True:
                yield [PartDelta(index=0, text="x")]
        finally:
            closed.append("closed")

    async def main() -> Any:
        request = asked("hi")
        reader = ReplyReader(EventReply(events=play()), "", request)
        answer = EventAnswer(job_of(request), reader, Turn(request, new_id))
        async with aclosing(answer.events()) as batches:
            await anext(batches)
            await anext(batches)
        await answer.release()

    asyncio.run(main())
    assert closed == ["closed"]


@pytest.mark.parametrize("is_guarded", [False, True])
def test_calls_are_judged_only_for_those_who_ask_for_it(is_guarded: bool) -> None:
    tool = Tool(name="weather", schema={"type": "object", "required": ["city"]})
    config = with_backends(Config(), (BackendConfig(name="s", kind="scripted", guard="repair", policy="error"),))

    async def main() -> None:
        host, record = Host(config), Record()
        prompt = script({"calls": [{"name": "weather", "arguments": {}}]})
        request = msgspec.structs.replace(asked(prompt), tools=(tool,))
        answer = await host.runtime.answer(request, record, is_guarded=is_guarded)
        last = [event async for events in answer.events() for event in events][-1]
        assert isinstance(last, Failed) is is_guarded
        await answer.release()
        await host.close()

    asyncio.run(main())


def test_pieces_leave_as_they_come_and_the_last_is_known() -> None:
    record, wire = Record(), Wire(WORD, END + DONE)
    written = run(answer_of(wire, record))
    assert len(written) == 2
    assert b"Hello" in written[0][0]
    assert [is_last for _, is_last in written] == [False, True]
    assert written[-1][0].endswith(DONE)
    assert wire.aborted == 0
    assert (record.outcome, [loss.feature for loss in record.losses]) == ("ok", ["seed"])


def test_the_replys_headers_and_losses_are_there_before_it_runs() -> None:
    answer = answer_of(Wire(), losses=(Loss("n", "n", "why"),))
    assert answer.headers == {"x-upstream": "1"}
    assert [loss.feature for loss in answer.losses] == ["seed", "n"]
    assert not answer.has_content


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
    answer = answer_of(Wire(*pieces), record)
    written = run(answer)
    assert b'"error"' in written[-1][0]
    assert DONE not in written[-1][0]
    assert answer.error is not None
    assert (answer.error.code, record.outcome, record.error) == (code, "error", code)


def test_what_was_no_stream_is_shown() -> None:
    answer = answer_of(Wire(b"<html>Bad gateway"))
    run(answer)
    assert answer.error is not None
    assert "Bad gateway" in answer.error.message


def test_an_answer_left_in_the_middle_is_stopped() -> None:
    async def main() -> None:
        wire = Wire(WORD, END + DONE)
        answer = answer_of(wire)

        async def leave(_: bytes) -> None:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await answer.run(leave)
        await answer.release()
        assert wire.aborted == 1

    asyncio.run(main())


def test_events_become_the_clients_dialect() -> None:
    events, record = (
        Events(*([event] for event in events_of(Text(text="Hello"), call(), usage=Usage(input=2)))),
        Record(),
    )
    written = run(answer_of(events.reply, record))
    assert written[-1][1]
    assert b'"tool_calls"' in b"".join(wire for wire, _ in written)
    assert record.usage == Usage(input=2)
    assert events.is_closed


def test_an_answer_that_is_not_streamed_leaves_in_one_piece() -> None:
    written = run(answer_of(Events(events_of(Text(text="Hello"), reason="stop")).reply, stream=False))
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
    answer = answer_of(events.reply, record)
    written = run(answer)
    assert b'"error"' in written[-1][0]
    assert answer.error is not None
    assert answer.error.code == code == record.error
    assert b"a mistake" not in written[-1][0]
    assert isinstance(answer.error, InternalError) == (code == "internal_error")
    assert events.is_closed


def test_unread_events_are_closed() -> None:
    async def main() -> None:
        events = Events(events_of(Text(text="Hello"))[:3], events_of(Text(text="Hello"))[3:])
        answer = answer_of(events.reply)

        async def leave(_: bytes) -> None:
            raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await answer.run(leave)
        await answer.release()
        assert events.is_closed

    asyncio.run(main())


def test_it_can_be_ended_from_outside_once() -> None:
    answer = answer_of(Wire(WORD))
    assert b"stopped" in answer.fail(UpstreamError("it was stopped"))
    assert answer.fail(UpstreamError("again")) == b""
    assert answer.is_over


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
            answer = answer_of(Wire(*pieces), decoder=decoder)
            written: list[bytes] = []

            async def write(wire: bytes, written: list[bytes] = written) -> None:
                written.append(wire)

            await answer.run(write)
            assert b"".join(written)
            assert [name.startswith("toolwire-offload") for name in decoder.threads] == [is_beside, is_beside]

    asyncio.run(main())
