"""WebSocket frames (RFC 6455), either side's, without I/O: bytes in, whole messages out."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator

from msgspec import Struct

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
LONGEST = 256 << 20  # of a message: a conversation with pictures is one
_CONTINUED = 0x0
_LONGEST_CONTROL = 125
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NO_STATUS = 1005  # never on the wire


class BadFrame(Exception):
    """The peer violates the protocol; code is for the close frame."""

    def __init__(self, message: str, code: int = 1002) -> None:
        super().__init__(message)
        self.code = code


class Incoming(Struct, frozen=True):
    """A whole message, or a control frame."""

    kind: int
    data: bytes


def accept_of(key: str) -> str:
    """What a server must answer to a client's key."""
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


def is_key(key: str) -> bool:
    """Whether a client's key is one: sixteen bytes in base64."""
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False


def frame(kind: int, data: bytes, mask: bytes = b"") -> bytes:
    """One whole message. Clients mask with four random bytes, servers do not."""
    size, bit = len(data), 0x80 if mask else 0
    if size < 126:
        head = bytes((0x80 | kind, bit | size))
    elif size < 1 << 16:
        head = bytes((0x80 | kind, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | kind, bit | 127)) + size.to_bytes(8, "big")
    return head + mask + _masked(data, mask) if mask else head + data


def close_payload(code: int, reason: str = "") -> bytes:
    """What a close frame holds; a reason that is too long is cut between two letters."""
    return code.to_bytes(2, "big") + reason.encode()[: _LONGEST_CONTROL - 2].decode("utf-8", "ignore").encode()


def parse_close(data: bytes) -> tuple[int, str]:
    """The code of a close frame, 1005 if it has none, and its reason."""
    if len(data) < 2:
        return _NO_STATUS, ""
    return int.from_bytes(data[:2], "big"), data[2:].decode("utf-8", "replace")


class FrameReader:
    """Puts together what the other side sends; work is linear in it. is_server: for a server, whose clients mask."""

    def __init__(self, longest: int = LONGEST, *, is_server: bool = False) -> None:
        self._longest = longest
        self._is_server = is_server
        self._held = bytearray()
        self._kind = 0
        self._whole = bytearray()  # not a list: a message may have any number of empty frames

    def feed(self, data: bytes) -> Iterator[Incoming]:
        """Raises BadFrame; what came before it has been given."""
        self._held += data
        start = 0
        while (end := self._next(start)) is not None:
            head, (body, stop) = self._held[start], end
            payload = bytes(self._held[body:stop])
            if self._is_server:
                payload = _masked(payload, bytes(self._held[body - 4 : body]))
            start = stop
            yield from self._take(head, payload)
        del self._held[:start]

    def _next(self, start: int) -> tuple[int, int] | None:
        """Where the payload of the next frame begins and ends; None while it is not all there."""
        held = self._held
        if len(held) - start < 2:
            return None
        size, body = held[start + 1] & 0x7F, start + 2
        if bool(held[start + 1] & 0x80) != self._is_server:
            raise BadFrame("a client's frame is not masked" if self._is_server else "a server's frame is masked")
        if held[start] & 0x70:
            raise BadFrame("a frame uses an extension that was not agreed on")
        width = {126: 2, 127: 8}.get(size, 0)
        if len(held) < body + width:
            return None
        if width:
            size, body = int.from_bytes(held[body : body + width], "big"), body + width
        if size + len(self._whole) > self._longest:
            raise BadFrame(f"a message is longer than {self._longest} bytes", 1009)
        body += 4 * self._is_server
        return (body, body + size) if len(held) >= body + size else None

    def _take(self, head: int, payload: bytes) -> Iterator[Incoming]:
        kind, is_last = head & 0x0F, bool(head & 0x80)
        if kind & 0x8:
            if kind not in (CLOSE, PING, PONG) or not is_last or len(payload) > _LONGEST_CONTROL:
                raise BadFrame("a control frame is not as it must be")
            yield Incoming(kind, payload)
            return
        if kind not in (_CONTINUED, TEXT, BINARY) or (kind == _CONTINUED) != bool(self._kind):
            raise BadFrame("a message begins inside another, or continues before its start")
        self._kind = self._kind or kind
        self._whole += payload
        if is_last:
            whole = Incoming(self._kind, bytes(self._whole))
            self._kind, self._whole = 0, bytearray()
            yield whole


def _masked(data: bytes, mask: bytes) -> bytes:
    """As two numbers: byte by byte would take seconds for a picture."""
    size = len(data)
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")
