"""Reads the reply of a back end, as bytes or as events: its size is limited, and its connection is drained or aborted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from ..backends.base import EventReply, WireReply, is_streamed
from ..dialects import DIALECTS
from ..dialects.base import ResponseDecoder, garbage
from ..errors import UpstreamError
from ..events import Event
from ..offload import LARGE, offload
from ..types import Request

MAX_ANSWER = 256 << 20  # bytes
_DRAIN_SECONDS = 0.2
T = TypeVar("T")


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

    async def read(self) -> bytes:
        """The next bytes, b"" at the end. Raises UpstreamError when the reply is cut, stalls or is too large."""
        assert not isinstance(self.reply, EventReply)
        data = await self.reply.read()
        self._size += len(data)
        self.undecoded += len(data)
        self._is_read = not data
        if self._size > MAX_ANSWER:
            raise garbage(f"the back end's answer is larger than {MAX_ANSWER >> 20} MB.")
        return data

    async def decode(self, data: bytes, decode: Callable[[bytes], T]) -> T:
        """decode(data), in a thread where data completes a large event or a large body."""
        is_large = self.undecoded > LARGE and (not data or b"\n" in data)
        return await offload(decode, data) if is_large else decode(data)

    async def events(self) -> AsyncIterator[list[Event]]:
        """Raises UpstreamError like read(). The last list may lack an end."""
        if isinstance(self.reply, EventReply):
            async for events in self.reply.events:
                yield events
            return
        decoder = self.decoder()
        while data := await self.read():
            if events := await self.decode(data, decoder.feed):
                self.undecoded = 0
                yield events
        yield await self.decode(b"", lambda _: decoder.close())

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
