"""Compressed bodies, inflated a bounded piece at a time."""

from __future__ import annotations

import zlib

CODINGS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_PIECE = 256 * 1024


class Inflater:
    """Undoes gzip or deflate a bounded piece at a time, so that a small bomb never becomes a large one in memory."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._pending = b""
        self._inflate = zlib.decompressobj(CODINGS[coding])
        self._is_begun = False

    def feed(self, data: bytes) -> None:
        if not self._is_begun and self._coding == "deflate" and data[0] & 0x0F != 8:
            # Some servers send deflate without its zlib header; a header begins with the method, 8.
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        self._is_begun = True
        self._pending = self._pending + data if self._pending else data

    def take(self) -> bytes:
        """The next piece; b"" when more input is needed."""
        while True:
            if self._inflate.eof:
                self._pending = self._pending.lstrip(b"\0")
                if not self._pending:
                    return b""
                self._inflate = zlib.decompressobj(CODINGS[self._coding])
            data = self._inflate.decompress(self._pending, _PIECE)
            is_ended = self._inflate.eof
            self._pending = self._inflate.unused_data if is_ended else self._inflate.unconsumed_tail
            if data or not is_ended:
                return data

    def finish(self) -> None:
        if self._is_begun and not self._inflate.eof:
            raise zlib.error("the compressed data ends early")
