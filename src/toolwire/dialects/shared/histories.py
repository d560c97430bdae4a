"""Requests in: a cache of decoded histories. An agent sends its whole conversation with every request, and only the end of it is new.

A history is found where the body begins with the same bytes up to the end of its last message. A placeholder replaces these messages before
the body is decoded. Where the placeholder is then the first message of the body, the bytes were its messages and nothing else; in any other
case the whole body is decoded.

The decoded JSON of a history is shared by the requests that have it, so no caller may change it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ...errors import BadRequest
from ...types import JsonObject, Message

SMALL = 16 << 10  # bytes; a smaller body is decoded as fast as it is found
_MOST = 64
_MAX_BYTES = 4 << 20
_TAIL = 32  # bytes that are compared first: conversations often have the same beginning
_PLACEHOLDER = "toolwire: messages that are known"
_ENCODED = msgspec.json.encode(_PLACEHOLDER)


class _Body(msgspec.Struct):
    messages: msgspec.Raw = msgspec.Raw(b"")


_decoder = msgspec.json.Decoder(_Body)


class KnownHistory(msgspec.Struct, frozen=True):
    """wire: the body up to the end of the last message. start: where the first one begins in it."""

    wire: bytes
    start: int
    values: list[Any]
    messages: tuple[Message, ...]

    def begins(self, body: bytes) -> bool:
        end = len(self.wire)
        return body[end - _TAIL : end] == self.wire[-_TAIL:] and body.startswith(self.wire)

    def cut(self, body: bytes) -> bytes:
        return body[: self.start] + _ENCODED + body[len(self.wire) :]


class DecodedHistories:
    """An LRU cache. Each change replaces the tuple, so that threads that decode large bodies need no lock."""

    def __init__(self) -> None:
        self._histories: tuple[KnownHistory, ...] = ()  # the last used first

    def decode(self, body: bytes, decode: Callable[[bytes], JsonObject]) -> tuple[JsonObject, KnownHistory | None]:
        """The object that the body is, and the history that its messages begin with. Raises BadRequest."""
        known = self._find(body)
        if known is not None:
            try:
                top = decode(known.cut(body))
            except BadRequest:
                return decode(body), None
            listed = top.get("messages")
            if isinstance(listed, list) and listed and listed[0] == _PLACEHOLDER:
                top["messages"] = known.values + listed[1:]
                return top, known
        return decode(body), None

    def add(self, body: bytes, values: list[Any], messages: tuple[Message, ...], known: KnownHistory | None) -> None:
        """The messages of a body, and the history that decode() has found in it."""
        if (known is not None and len(known.messages) == len(messages)) or len(body) > _MAX_BYTES // 4:
            return  # nothing is new, or one history would evict all others
        scanned = body if known is None else known.cut(body)
        try:
            wire = bytes(_decoder.decode(scanned).messages)
        except (msgspec.DecodeError, RecursionError):  # with lone surrogates, or nested too deeply for this decoder
            return
        start = scanned.find(wire)
        end = start + len(wire) - 1 + len(body) - len(scanned)  # of the last message, without the bracket after it
        new = KnownHistory(body[:end].rstrip(), start + 1, values, messages)
        histories = [new, *(one for one in self._histories if one is not known)][:_MOST]
        while sum(len(one.wire) for one in histories) > _MAX_BYTES:
            histories.pop()
        self._histories = tuple(histories)

    def __len__(self) -> int:
        return len(self._histories)

    def _find(self, body: bytes) -> KnownHistory | None:
        histories = self._histories
        for place, known in enumerate(histories):
            if known.begins(body):
                if place:
                    self._histories = (known, *histories[:place], *histories[place + 1 :])
                return known
        return None
