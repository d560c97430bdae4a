"""Whether the tools of a request were looked at before: a conversation sends the same ones each time, in the same bytes.

To look at forty schemas again costs more than all the rest of a request. So the bytes of a list of tools that was found good are
kept, with their place, counted from the start of the body and from its end: clients write the list before the messages or
after them, and one of the two places stays. Comparing them there costs a few microseconds. Bytes that are equal at an unequal
place cost a look, never a mistake.
"""

from __future__ import annotations

import msgspec

from ...types import Request
from .cache import Schemas

_MOST = 64
_MAX_BYTES = 16 << 20


class _Body(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw(b"")


_decoder = msgspec.json.Decoder(_Body)


class _Known(msgspec.Struct, frozen=True):
    wire: bytes
    start: int
    behind: int  # bytes between its end and the end of the body

    def is_in(self, body: bytes) -> bool:
        size = len(self.wire)
        return body[self.start : self.start + size] == self.wire or (
            body[len(body) - self.behind - size : len(body) - self.behind] == self.wire
        )


class ToolSets:
    """Those that were good, the last used first."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._known: list[_Known] = []

    def check(self, request: Request) -> None:
        """Raises BadRequest for the first tool whose schema cannot be understood."""
        for place, known in enumerate(self._known):
            if known.is_in(request.wire):
                self._known.insert(0, self._known.pop(place))
                return
        for place, tool in enumerate(request.tools):
            if tool.kind == "function":
                self._schemas.check(tool, f"tools[{place}]")
        self._keep(request.wire)

    def _keep(self, body: bytes) -> None:
        try:
            wire = bytes(_decoder.decode(body).tools)
        except (msgspec.DecodeError, RecursionError):
            return
        start = body.find(wire)
        if len(wire) > 2 and start >= 0:
            self._known.insert(0, _Known(wire, start, len(body) - start - len(wire)))
        while len(self._known) > _MOST or sum(len(known.wire) for known in self._known) > _MAX_BYTES:
            self._known.pop()
