"""The answer to one job while it is read: as bytes in the client's dialect, or as events.

However the reply ends, the answer ends in order: with its own end, or with an error. What the gateway must remember of an answer is
stored before its last bytes are sent, so that a client never learns an id that the gateway does not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TypeAlias

from ..backends.base import EventReply, WireReply
from ..calls.turn import Turn
from ..dialects import DIALECTS, FRONTS
from ..dialects.base import EVENT_STREAM, ResponseDecoder, before_last_event, excerpt, garbage
from ..dialects.shared.model_field import Renamer
from ..errors import GatewayError, InternalError, UpstreamError
from ..events import Event, Failed, Finished
from ..ids import new_id
from ..memory.answers import StoredTurn
from ..offload import LARGE, offload
from ..types import Loss, Part, Request
from ..wire.exact_json import encode
from .job import Job
from .verbatim import BodyTap, MakeEncoder, Translator, Untouched, tap_of

Write: TypeAlias = Callable[[bytes], Awaitable[None]]

MAX_ANSWER = 256 << 20  # bytes
_DRAIN_SECONDS = 0.2


class ReplyReader:
    """The only reader of one reply. The caller releases it, whatever happens."""

    def __init__(self, reply: WireReply | EventReply, dialect: str, request: Request) -> None:
        self.reply = reply
        self.is_stream = not isinstance(reply, EventReply) and is_streamed(reply, request)
        self._dialect = dialect
        self._request = request
        self._is_read = False
        self._size = 0
        self.undecoded = 0  # bytes since the last event; the caller resets it

    def decoder(self) -> ResponseDecoder:
        dialect = DIALECTS[self._dialect]
        return dialect.stream_decoder(self._request) if self.is_stream else dialect.body_decoder(self._request)

    def count(self, data: bytes) -> bool:
        """Note what one read has returned, b"" at the end. True: it may complete a large event or body, so decode it in a thread.

        Raises UpstreamError when the reply is too large.
        """
        self._size += len(data)
        self.undecoded += len(data)
        self._is_read = not data
        if self._size > MAX_ANSWER:
            raise garbage(f"the back end's answer is larger than {MAX_ANSWER >> 20} MB.")
        return self.undecoded > LARGE and (not data or b"\n" in data)

    async def events(self) -> AsyncIterator[list[Event]]:
        """Raises UpstreamError when the reply is cut, stalls or is too large. The last list may lack an end."""
        if isinstance(self.reply, EventReply):
            async for events in self.reply.events:
                yield events
            return
        decoder = self.decoder()
        while data := await self.reply.read():
            is_large = self.count(data)
            if events := (await offload(decoder.feed, data) if is_large else decoder.feed(data)):
                self.undecoded = 0
                yield events
        yield await offload(decoder.close) if self.count(b"") else decoder.close()

    async def release(self, *, is_over: bool = False) -> None:
        """Close the reply. is_over: the answer is complete. Its last bytes are then awaited for a moment, because a connection
        that was read to its end can serve the next request."""
        reply = self.reply
        if isinstance(reply, EventReply):
            await reply.close()
            return
        if self._is_read or reply.is_complete:
            return
        try:
            if is_over:
                async with asyncio.timeout(_DRAIN_SECONDS):
                    while await reply.read():
                        pass
                self._is_read = True
        except (TimeoutError, UpstreamError):
            pass
        finally:
            if not self._is_read:
                reply.abort()


class EventAnswer:
    """For a caller that runs the tools itself. The caller calls release() at the end, whatever happens."""

    def __init__(self, job: Job, reader: ReplyReader, turn: Turn) -> None:
        self._job = job
        self._reader = reader
        self._turn = turn
        self._losses: list[Loss] = [*reader.reply.losses, *job.losses]
        self._last: Finished | Failed | None = None

    @property
    def losses(self) -> list[Loss]:
        """All that are known so far."""
        return [*self._losses, *self._turn.all_losses()]

    @property
    def parts(self) -> list[Part]:
        """Those that are complete."""
        return self._turn.parts()

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """Always ends with Finished or Failed."""
        try:
            async with aclosing(self._reader.events()) as read:  # type: ignore[type-var] # a generator, though it does not say so
                async for given in read:
                    events = self._turn.send(given)
                    last = next((event for event in events if isinstance(event, Finished | Failed)), None)
                    if isinstance(last, Finished):
                        await self._store_signatures()
                    if last is not None:
                        self._end(last)
                    yield events
                    if last is not None:
                        return
            error: GatewayError = garbage("the back end's answer has no end.")
        except GatewayError as fault:
            error = fault
        self._end(Failed(error=error))
        yield [Failed(error=error)]

    async def release(self) -> None:
        await self._reader.release(is_over=isinstance(self._last, Finished))

    def _end(self, last: Finished | Failed) -> None:
        self._last = last
        self._note(last.error if isinstance(last, Failed) else None)

    async def _store_signatures(self, first: int = 0) -> None:
        """first: the index of the first part of the model's last round."""
        if self._job.recall is not None and self._turn.calls:
            self._losses += await self._job.recall.keep(self._turn.parts(first))

    def _note(self, error: GatewayError | None) -> None:
        record = self._job.record
        record.usage, record.losses = self._turn.usage, self.losses
        if error is not None:
            record.fail(error)


class Answer(EventAnswer):
    """For a client: written in its dialect, one write for each read of the reply."""

    def __init__(self, job: Job, reader: ReplyReader, turn: Turn, pipe: Translator) -> None:
        super().__init__(job, reader, turn)
        self._pipe = pipe
        self._opening = b""
        self._is_stored = False
        self.headers: Mapping[str, str] = reader.reply.headers

    @property
    def error(self) -> GatewayError | None:
        """The error in which the answer ended."""
        return self._pipe.error

    @property
    def is_over(self) -> bool:
        """The last write was the end of the answer."""
        return self._pipe.is_over

    @property
    def has_content(self) -> bool:
        return self._pipe.has_content

    def report(self) -> bytes:
        """What the gateway did with the request so far, as JSON in one line."""
        return encode(self._job.record.debug_report(self.losses))

    def fail(self, error: GatewayError) -> bytes:
        """End the answer with this error; b"" where it has ended already."""
        return self._pipe.fail(error).wire

    def run(self, write: Write) -> Awaitable[None]:
        reply = self._reader.reply
        return self._run_events(reply, write) if isinstance(reply, EventReply) else self._run_bytes(reply, write)

    async def release(self) -> None:
        """The client has its answer, or has disconnected."""
        record, pipe = self._job.record, self._pipe
        record.took_over = pipe.took_over if record.is_verbatim else ""
        self._note(pipe.error)
        await self._reader.release(is_over=pipe.is_over and pipe.error is None)

    async def _run_bytes(self, reply: WireReply, write: Write) -> None:
        pipe, reader, stored = self._pipe, self._reader, self._job.stored
        while not pipe.is_over:
            try:
                data = await reply.read()
                is_large = reader.count(data)
            except UpstreamError as error:
                await self._write_last(pipe.fail(error).wire, write)
                return
            wire = await offload(self._translate, data) if is_large else self._translate(data)
            if self.is_over or (wire and stored is not None and stored.is_awaited):
                await self._write_last(wire, write)
            elif wire:
                await write(wire)
            if not data:
                return
        if wire := pipe.close().wire:  # the reply was a stream, and the client wants one body
            await self._write_last(wire, write)

    def _translate(self, data: bytes) -> bytes:
        """What one read means for the client; b"" is the end of the reply."""
        pipe = self._pipe
        try:
            batch = pipe.feed(data) if data else pipe.close()
        except Exception as fault:
            return pipe.fail(_internal_error(fault)).wire
        if data:
            self._opening = self._opening or data[:300]
            if batch.events:
                self._reader.undecoded = 0
        elif pipe.error is not None and pipe.error.code == "upstream_cut" and self._opening and not pipe.has_content:
            pipe.error.message += f" It was no stream; it began with {excerpt(self._opening)}."
        return batch.wire

    async def _run_events(self, reply: EventReply, write: Write) -> None:
        pipe = self._pipe
        try:
            async for events in reply.events:
                if wire := pipe.send(events).wire:
                    await (self._write_last(wire, write) if pipe.is_over else write(wire))
                if pipe.is_over:
                    break
        except GatewayError as error:
            await self._write_last(pipe.fail(error).wire, write)
        except Exception as fault:
            await self._write_last(pipe.fail(_internal_error(fault)).wire, write)
        if wire := pipe.close().wire:
            await self._write_last(wire, write)

    async def _write_last(self, wire: bytes, write: Write) -> None:
        """Write the bytes that give the client the id or the end of the answer, after the answer is stored."""
        record, stored = self._job.record, self._job.stored
        if stored is not None:
            await self._store(stored)
        if self._pipe.is_over and not self._is_stored:
            self._is_stored = True
            if self._pipe.error is None:
                await self._store_signatures(record.tally.last_round)
            if record.grant is not None and self._turn.usage is not None:
                await record.grant.settle(self._turn.usage)
            if record.is_stream and (wire or self._pipe.error is None):  # else the error becomes an HTTP response
                wire = self._with_report(wire)
        if wire or self._pipe.error is not None:
            await write(wire)

    def _with_report(self, wire: bytes) -> bytes:
        """The end of a stream with what was done, which a client ignores that does not look for it, and an event for one that asked for it."""
        losses, record = self.losses, self._job.record
        dialect = FRONTS[self._job.received.origin]
        if (losses or record.tally.repaired_calls) and (found := record.stream_report(losses)) is not None:
            wire = dialect.add_report(wire, encode(found))
        if record.is_debugged and dialect.stream_type == EVENT_STREAM:
            debug = encode(record.debug_report(losses))
            wire = before_last_event(wire, b"event: toolwire.debug\ndata: " + debug + b"\n\n")
        return wire

    async def _store(self, stored: StoredTurn) -> None:
        """A store that fails is reported as a loss; the client gets its answer."""
        try:
            if stored.is_awaited and self._pipe.begun:
                await stored.begun(self._pipe.begun)
            if self._pipe.is_over and (answer := self._pipe.final()) is not None:
                await stored.save(answer, new_id)
        except GatewayError as error:
            self._losses.append(Loss("store", "store", f"the answer could not be stored: {error.message}"))


def pipe_for(job: Job, reader: ReplyReader, turn: Turn, make_encoder: MakeEncoder) -> Translator:
    """From the reply to the client: bytes unchanged where both sides have the same form, else events encoded again."""
    if isinstance(reader.reply, EventReply):
        return Translator(None, turn, make_encoder)
    fits = job.record.is_verbatim and reader.is_stream == job.received.stream
    is_queued = job.is_queued_upstream and not reader.is_stream
    renamer = Renamer(job.backend.dialect, job.received.model) if job.is_renamed and (fits or is_queued) else None
    if is_queued:
        return Untouched(reader.decoder(), turn, make_encoder, renamer)
    if not fits:
        return Translator(reader.decoder(), turn, make_encoder)
    if reader.is_stream:
        return tap_of(DIALECTS[job.backend.dialect].stream_decoder(job.received), turn, make_encoder, renamer)
    return BodyTap(reader.decoder(), turn, make_encoder, renamer)


def _internal_error(fault: Exception) -> InternalError:
    error = InternalError("something went wrong inside the gateway while it read the answer; its log has the details.")
    error.__cause__ = fault
    return error


def is_streamed(reply: WireReply, request: Request) -> bool:
    """By its content type; a reply without one is what the request wanted."""
    kind = reply.content_type.lower()
    return "event-stream" in kind or (request.stream and "json" not in kind)
