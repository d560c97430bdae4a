"""WebSocket frames (RFC 6455), either side's, without I/O: bytes in, whole messages out.

permessage-deflate (RFC 7692) without context takeover: each message is compressed by itself, so that an idle connection holds no
compression state.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterator

from msgspec import Struct

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
LONGEST = 256 << 20  # of a message: a conversation with pictures is one
_CONTINUED = 0x0
_LONGEST_CONTROL = 125
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NO_STATUS = 1005  # never on the wire
_COMPRESSED = 0x40  # the first reserved bit of a frame
_WORTH = 1024  # bytes; shorter messages are sent uncompressed
_BLOCK_END = b"\x00\x00\xff\xff"  # ends each compressed message, and is not sent
_DEFLATE = "permessage-deflate"
_WINDOW = "server_max_window_bits"
_WINDOWS = [str(bits) for bits in range(9, 16)]  # zlib cannot write for a window of 8 bits
_ACCEPTED = f"{_DEFLATE}; server_no_context_takeover; client_no_context_takeover"


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


def accepted_extension(offers: str) -> tuple[str, int]:
    """The answer to a client's Sec-WebSocket-Extensions and the size of our window in bits, "" and 0 if we have none of its offers."""
    for offer in offers.split(","):
        name, *parameters = (piece.strip().lower() for piece in offer.split(";"))
        limits = [piece.partition("=")[2].strip('"') for piece in parameters if piece.startswith(_WINDOW)]
        if name != _DEFLATE or any(limit not in _WINDOWS for limit in limits):
            continue
        return (f"{_ACCEPTED}; {_WINDOW}={limits[0]}", int(limits[0])) if limits else (_ACCEPTED, zlib.MAX_WBITS)
    return "", 0


def compressed_frame(kind: int, data: bytes, bits: int = zlib.MAX_WBITS, mask: bytes = b"") -> bytes:
    """One whole message for a peer that has agreed to permessage-deflate; short ones stay as they are."""
    if len(data) < _WORTH:
        return frame(kind, data, mask)
    packer = zlib.compressobj(1, zlib.DEFLATED, -bits)
    packed = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
    return frame(kind | _COMPRESSED, packed.removesuffix(_BLOCK_END), mask)


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
    """Puts together what the other side sends; work is linear in it. is_server: for a server, whose clients mask.
    is_deflating: both sides have agreed to permessage-deflate."""

    def __init__(self, longest: int = LONGEST, *, is_server: bool = False) -> None:
        self._longest = longest
        self._is_server = is_server
        self.is_deflating = False
        self._held = bytearray()
        self._kind = 0
        self._is_compressed = False  # the message that is being put together
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
        if held[start] & (0x30 if self.is_deflating else 0x70):
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
        is_compressed = bool(head & _COMPRESSED)
        if kind & 0x8:
            if kind not in (CLOSE, PING, PONG) or not is_last or len(payload) > _LONGEST_CONTROL or is_compressed:
                raise BadFrame("a control frame is not as it must be")
            yield Incoming(kind, payload)
            return
        if kind not in (_CONTINUED, TEXT, BINARY) or (kind == _CONTINUED) != bool(self._kind):
            raise BadFrame("a message begins inside another, or continues before its start")
        if not self._kind:
            self._kind, self._is_compressed = kind, is_compressed
        elif is_compressed:
            raise BadFrame("a later frame of a message is marked as compressed")
        self._whole += payload
        if is_last:
            data, kind = bytes(self._whole), self._kind
            self._kind, self._whole = 0, bytearray()
            yield Incoming(kind, self._inflated(data) if self._is_compressed else data)

    def _inflated(self, data: bytes) -> bytes:
        """The limit is that of the whole message, however small its compressed form is."""
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            whole = unpacker.decompress(data + _BLOCK_END, self._longest + 1)
        except zlib.error:
            raise BadFrame("a compressed message cannot be decompressed", 1007) from None
        if len(whole) > self._longest:
            raise BadFrame(f"a message is longer than {self._longest} bytes", 1009)
        return whole


def _masked(data: bytes, mask: bytes) -> bytes:
    """As two numbers: byte by byte would take seconds for a picture."""
    size = len(data)
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")
