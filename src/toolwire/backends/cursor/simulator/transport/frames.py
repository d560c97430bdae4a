"""Connect envelopes as the simulator reads and writes them: flags, length, payload.

The back end has its own code for this; here it is written a second time, so that a mistake there cannot excuse itself.
"""

from __future__ import annotations

import zlib

ZIPPED, LAST = 0x01, 0x02
_HEAD = 5
_LARGEST = 16 * 1024 * 1024


class BadFrame(ValueError):
    """What came is no envelope."""


class Frames:
    """Bytes in, messages out."""

    def __init__(self, *, may_zip: bool) -> None:
        self._may_zip = may_zip
        self._held = b""

    def feed(self, data: bytes) -> list[bytes]:
        self._held += data
        found = []
        while len(self._held) >= _HEAD:
            end = _HEAD + int.from_bytes(self._held[1:_HEAD], "big")
            if end > _LARGEST:
                raise BadFrame(f"a message of {end - _HEAD} bytes is larger than {_LARGEST}")
            if len(self._held) < end:
                break
            found.append(self._payload(self._held[0], self._held[_HEAD:end]))
            self._held = self._held[end:]
        return found

    @property
    def is_between(self) -> bool:
        """Whether nothing of a message is left over."""
        return not self._held

    def _payload(self, flags: int, payload: bytes) -> bytes:
        if flags == 0:
            return payload
        if flags != ZIPPED:
            raise BadFrame(f"invalid envelope flags {flags}")
        if not self._may_zip:
            raise BadFrame("a compressed message without connect-content-encoding")
        unzipper = zlib.decompressobj(wbits=31)
        unzipped = unzipper.decompress(payload, _LARGEST)
        if unzipper.unconsumed_tail or not unzipper.eof:
            raise BadFrame("a compressed message that is too large or cut")
        return unzipped


def enveloped(payload: bytes, flags: int = 0, *, is_zipped: bool = False) -> bytes:
    if is_zipped:
        zipper = zlib.compressobj(wbits=31)
        payload = zipper.compress(payload) + zipper.flush()
        flags |= ZIPPED
    return bytes([flags]) + len(payload).to_bytes(4, "big") + payload
