"""One turn under way: the back end's answer on its way to the client, piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

from ..backends.base import EventReply, WireReply
from ..calls.turn import Turn
from ..dialects.base import garbage, shown
from ..errors import GatewayError, InternalError, UpstreamError
from ..ids import new_id
from ..memory.answers import Kept
from ..memory.signatures import Recall
from ..offload import LARGE, offload
from ..telemetry import Record
from ..types import Loss
from ..wire.exact_json import encode
from .reader import LAST_BYTES, MAX_ANSWER
from .verbatim import Translator

Write: TypeAlias = Callable[[bytes], Awaitable[None]]


class Step:
    """One turn under way: the back end has accepted; its answer is read as the client takes it."""

    def __init__(
        self,
        reply: WireReply | EventReply,
        pipe: Translator,
        turn: Turn,
        record: Record,
        kept: Kept | None = None,
        recall: Recall | None = None,
    ) -> None:
        self._kept = kept
        self._recall = recall
        self._reply = reply
        self._pipe = pipe
        self._turn = turn
        self._record = record
        self._is_read = False
        self._is_ended = False
        self._size = 0
        self._pending = 0  # bytes of an event that is not complete, or of an answer that comes whole
        self._opening = b""
        self._losses: list[Loss] = list(reply.losses)
        self.headers: Mapping[str, str] = reply.headers

    @property
    def losses(self) -> list[Loss]:
        """All that are known so far."""
        return [*self._losses, *self._turn.all_losses()]

    def lose(self, losses: Iterable[Loss]) -> None:
        self._losses += losses

    @property
    def error(self) -> GatewayError | None:
        """The error the answer ended in; a caller that has sent nothing yet can still say it properly."""
        return self._pipe.error

    @property
    def is_over(self) -> bool:
        """Whether what was written last is the end of the answer."""
        return self._pipe.is_over

    @property
    def has_content(self) -> bool:
        return self._pipe.has_content

    async def run(self, write: Write) -> None:
        """Hand the answer to write() in the client's dialect, piece by piece; is_over tells which piece is the last.

        It always ends in order: a failure ends it in the dialect's own error.
        """
        if isinstance(self._reply, EventReply):
            await self._from_events(self._reply, write)
        else:
            await self._from_wire(self._reply, write)

    async def _last(self, wire: bytes, write: Write) -> None:
        """Bytes with which the answer begins to be known, or ends: what is to be remembered of it is kept before they leave."""
        if self._kept is not None:
            await self._save(self._kept)
        if self._pipe.is_over and not self._is_ended:
            self._is_ended = True
            if self._recall is not None and self._pipe.error is None and self._turn.calls:
                self._losses += await self._recall.keep(self._turn.parts(self._record.tally.last_round))
            if self._record.is_debugged and self._record.is_stream:
                wire = b"event: toolwire.debug\ndata: " + self.told() + b"\n\n" + wire
        await write(wire)

    async def _save(self, kept: Kept) -> None:
        """A memory that fails costs nobody the answer."""
        try:
            if kept.is_awaited and self._pipe.begun:
                await kept.begun(self._pipe.begun)
            if self._pipe.is_over and (answer := self._pipe.final()) is not None:
                await kept.save(answer, new_id)
        except GatewayError as error:
            self._losses.append(Loss("store", "store", f"the answer could not be kept: {error.message}"))

    def told(self) -> bytes:
        """What became of the request so far, as JSON in one line."""
        return encode(self._record.debug_report(self.losses))

    def fail(self, error: GatewayError) -> bytes:
        """End it here, with the dialect's own error; nothing if it has ended already."""
        return self._pipe.fail(error).wire

    async def release(self) -> None:
        """The client has its answer, or is gone. The last bytes of a complete answer are awaited for a moment, because a
        connection read to its end serves the next request; anything else is stopped."""
        self._note()
        if isinstance(self._reply, EventReply):
            await self._reply.close()
            return
        if self._is_read or self._reply.is_complete:
            return
        try:
            if self._pipe.is_over and self._pipe.error is None:
                async with asyncio.timeout(LAST_BYTES):
                    while await self._reply.read():
                        pass
        except (TimeoutError, UpstreamError):
            pass
        finally:
            self._reply.abort()

    async def _from_wire(self, reply: WireReply, write: Write) -> None:
        pipe, kept = self._pipe, self._kept
        while not pipe.is_over:
            try:
                data = await reply.read()
            except UpstreamError as error:
                await self._last(pipe.fail(error).wire, write)
                return
            self._is_read = not data
            is_costly = self._pending > LARGE and (not data or b"\n" in data)  # the end of an event, or of the answer
            if wire := (await offload(self._digested, data) if is_costly else self._digested(data)):
                if self.is_over or (kept is not None and kept.is_awaited):
                    await self._last(wire, write)
                else:
                    await write(wire)
            if not data:
                return
        if wire := pipe.close().wire:  # a stream has ended, and the client wants its answer whole
            await self._last(wire, write)

    def _digested(self, data: bytes) -> bytes:
        """What one read means for the client; b"" is the end."""
        pipe = self._pipe
        self._opening = self._opening or data[:300]
        self._size += len(data)
        try:
            if self._size > MAX_ANSWER:
                return pipe.fail(garbage(f"the back end's answer is larger than {MAX_ANSWER >> 20} MB.")).wire
            batch = pipe.feed(data) if data else pipe.close()
        except Exception as fault:
            return pipe.fail(_our_fault(fault)).wire
        if data:
            self._pending = 0 if batch.events else self._pending + len(data)
            return batch.wire
        error = pipe.error
        if error is not None and error.code == "upstream_cut" and self._opening and not pipe.has_content:
            error.message += f" It was no stream; it began with {shown(self._opening)}."
        return batch.wire

    async def _from_events(self, reply: EventReply, write: Write) -> None:
        pipe = self._pipe
        try:
            async for events in reply.events:
                if wire := pipe.send(events).wire:
                    await (self._last(wire, write) if pipe.is_over else write(wire))
                if pipe.is_over:
                    break
        except GatewayError as error:
            await self._last(pipe.fail(error).wire, write)
        except Exception as fault:
            await self._last(pipe.fail(_our_fault(fault)).wire, write)
        if wire := pipe.close().wire:
            await self._last(wire, write)

    def _note(self) -> None:
        record, turn = self._record, self._turn
        record.took_over = self._pipe.took_over if record.is_verbatim else ""
        record.usage, record.losses = turn.usage, self.losses
        if self._pipe.error is not None:
            record.outcome, record.error = "error", self._pipe.error.code


def _our_fault(fault: Exception) -> InternalError:
    """It keeps the exception as its cause, for the log."""
    error = InternalError("something went wrong inside the gateway while it read the answer; its log says what.")
    error.__cause__ = fault
    return error
