"""Any back end's answer as events: for those in front of a back end that have to know what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from ..backends.base import EventReply, WireReply, is_streamed
from ..dialects import DIALECTS
from ..dialects.base import ResponseDecoder, garbage
from ..errors import UpstreamError
from ..events import Event
from ..offload import LARGE, offload
from ..types import Request

MAX_ANSWER = 256 << 20
LAST_BYTES = 0.2  # seconds


class Reading:
    """One reply being read."""

    def __init__(self, reply: WireReply | EventReply, dialect: str, request: Request) -> None:
        self._reply = reply
        self._dialect = dialect
        self._request = request
        self._is_read = False

    async def events(self) -> AsyncIterator[list[Event]]:
        """Until it ends. Raises UpstreamError when it is cut, stalls or does not end."""
        reply = self._reply
        if isinstance(reply, EventReply):
            async for events in reply.events:
                yield events
            return
        decoder, size, pending = self._decoder(reply), 0, 0
        while data := await reply.read():
            size += len(data)
            if size > MAX_ANSWER:
                raise garbage(f"the back end's answer is larger than {MAX_ANSWER >> 20} MB.")
            is_costly = pending > LARGE and b"\n" in data  # the end of a large event
            events = await offload(decoder.feed, data) if is_costly else decoder.feed(data)
            pending = 0 if events else pending + len(data)
            yield events
        self._is_read = True
        yield await offload(decoder.close) if pending > LARGE else decoder.close()

    async def finish(self) -> None:
        """The answer is complete: its last bytes are awaited for a moment, because a connection read to its end serves the
        next request."""
        if isinstance(self._reply, EventReply) or self._is_read:
            return
        try:
            async with asyncio.timeout(LAST_BYTES):
                while await self._reply.read():
                    pass
                self._is_read = True
        except (TimeoutError, UpstreamError):
            pass

    async def release(self) -> None:
        """Nobody reads on: stop the back end, unless all of it has been read."""
        if isinstance(self._reply, EventReply):
            await self._reply.close()
        elif not self._is_read:
            self._reply.abort()

    def _decoder(self, reply: WireReply) -> ResponseDecoder:
        wire = DIALECTS[self._dialect]
        if is_streamed(reply, self._request):
            return wire.stream_decoder(self._request)
        return wire.body_decoder(self._request)
