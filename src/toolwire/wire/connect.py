"""Connect streams, without I/O: bytes in, messages out, and back; one codec for both sides.

A frame is one byte of flags, four of length (big-endian), and the payload. The last one carries JSON: {} or an error.
A stream without it has not ended, it has broken off (H157), whatever the connection says.
Bytes are scanned once: what is no whole frame yet waits in one buffer, never longer than a frame and a read.
"""

from __future__ import annotations

import binascii
import gzip
import zlib
from typing import TypeAlias

from msgspec import Struct

from ..errors import quote
from ..types import Json, JsonObject
from .exact_json import BadJson, decode, encode

MAX_FRAME = 16 * 1024 * 1024
ZIPPED = 0x01
ENDS = 0x02
BROKE_OFF = "the stream broke off"  # start of the message for a stream without an end frame
_HEAD = 5
_GZIP = 16 + zlib.MAX_WBITS
_DETAILS = 16  # of one fault that are read; there is one in practice


class BadConnectStream(ValueError):
    """These bytes are no Connect stream, or a frame is larger than the limit."""


class Detail(Struct, frozen=True):
    """value is a message of that type; debug is the same as JSON, where the server is kind."""

    type: str
    value: bytes = b""
    debug: Json = None


class ConnectFault(Struct, frozen=True):
    """code is one of Connect's error codes, or what the server sent instead."""

    code: str
    message: str = ""
    details: tuple[Detail, ...] = ()


class ConnectFrame(Struct, frozen=True):
    """One message, unzipped."""

    data: bytes


class ConnectEnd(Struct, frozen=True):
    """Clean if there is no fault."""

    fault: ConnectFault | None = None
    metadata: JsonObject = {}


Item: TypeAlias = ConnectFrame | ConnectEnd


class ConnectDecoder:
    """feed() returns whole frames and the end; close() returns a fault if no end was seen.

    Frames before invalid bytes are returned first, and the next call raises BadConnectStream. Bytes after the end are ignored.
    """

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._held = bytearray()
        self._needed = _HEAD  # bytes held before there is anything to do
        self._broken = ""  # why these bytes are no stream, as text: a stored error would refer back to us
        self.is_ended = False

    def feed(self, data: bytes) -> list[Item]:
        self._check()
        if self.is_ended:
            return []
        self._held += data
        items: list[Item] = []
        try:
            self._read(items)
        except BadConnectStream as broken:
            self._broken = str(broken)
            self._held.clear()
            if not items:
                raise
        return items

    def close(self) -> list[ConnectEnd]:
        self._check()
        if self.is_ended:
            return []
        self.is_ended = True
        held = len(self._held)
        where = f"in the middle of a frame, with {held} of {self._needed} bytes" if held else "without its end frame"
        self._held.clear()
        return [ConnectEnd(ConnectFault("unavailable", f"{BROKE_OFF} {where}"))]

    def _check(self) -> None:
        if self._broken:
            raise BadConnectStream(self._broken)

    def _read(self, items: list[Item]) -> None:
        """One pass over what is held, and one cut at its end."""
        start, total = 0, len(self._held)
        with memoryview(self._held) as view:
            while total - start >= self._needed and not self.is_ended:
                if self._needed == _HEAD and (size := self._size(bytes(view[start : start + _HEAD]))):
                    self._needed += size
                    continue
                payload = bytes(view[start + _HEAD : start + self._needed])
                items.append(self._item(view[start], payload))
                start += self._needed
                self._needed = _HEAD
        del self._held[: total if self.is_ended else start]

    def _size(self, head: bytes) -> int:
        if head[0] & ~(ZIPPED | ENDS):
            raise BadConnectStream(f"a frame begins with {head.hex(' ')}: these flags are not Connect's.")
        size = int.from_bytes(head[1:], "big")
        if size > self._limit:
            raise BadConnectStream(f"a frame claims {size} bytes; at most {self._limit} are read.")
        return size

    def _item(self, flags: int, payload: bytes) -> Item:
        if flags & ZIPPED:
            payload = _unzipped(payload, self._limit)
        if flags & ENDS:
            self.is_ended = True
            return _end_of(payload)
        return ConnectFrame(payload)


def frame(data: bytes, *, is_zipped: bool = False) -> bytes:
    return _framed(ZIPPED if is_zipped else 0, data)


def end(fault: ConnectFault | None = None, *, metadata: JsonObject | None = None, is_zipped: bool = False) -> bytes:
    body: JsonObject = {}
    if fault is not None:
        body["error"] = fault_object(fault)
    if metadata:
        body["metadata"] = metadata
    return _framed(ENDS | (ZIPPED if is_zipped else 0), encode(body))


def fault_object(fault: ConnectFault) -> JsonObject:
    """The object in an end frame, and the whole body of a failed call."""
    value: JsonObject = {"code": fault.code}
    if fault.message:
        value["message"] = fault.message
    if fault.details:
        value["details"] = [_detail_object(detail) for detail in fault.details]
    return value


def fault_of(value: object) -> ConnectFault:
    """A fault from any value in the place of an error."""
    if not isinstance(value, dict):
        return ConnectFault("unknown", value if isinstance(value, str) else "")
    code, message, details = value.get("code"), value.get("message"), value.get("details")
    rows = details[:_DETAILS] if isinstance(details, list) else []
    return ConnectFault(
        code if isinstance(code, str) and code else "unknown",
        message if isinstance(message, str) else "",
        tuple(_detail_of(row) for row in rows if isinstance(row, dict)),
    )


def _framed(flags: int, data: bytes) -> bytes:
    if flags & ZIPPED:
        data = gzip.compress(data, mtime=0)
    if len(data) > MAX_FRAME:
        raise BadConnectStream(f"a message has {len(data)} bytes; at most {MAX_FRAME} fit into a frame.")
    return bytes([flags]) + len(data).to_bytes(4, "big") + data


def _unzipped(data: bytes, limit: int) -> bytes:
    """Stops at the limit: a small frame cannot become a large one."""
    if not data:  # nothing is left unzipped by some servers, flag or not
        return b""
    reader = zlib.decompressobj(_GZIP)
    try:
        plain = reader.decompress(data, limit + 1)
    except zlib.error as error:
        raise BadConnectStream(f"a frame is marked as gzip and is not: {quote(str(error))}.") from None
    if len(plain) > limit:
        raise BadConnectStream(f"a frame unzips to more than {limit} bytes.")
    if not reader.eof or reader.unused_data:
        raise BadConnectStream("a frame's gzip does not end where the frame does.")
    return plain


def _end_of(payload: bytes) -> ConnectEnd:
    try:
        value = decode(payload) if payload.strip() else {}
    except BadJson as wrong:
        return ConnectEnd(ConnectFault("internal", f"the end frame is not JSON: {wrong}"))
    if not isinstance(value, dict):
        return ConnectEnd(ConnectFault("internal", f"the end frame is {quote(value)}, not an object"))
    error, metadata = value.get("error"), value.get("metadata")
    return ConnectEnd(None if error is None else fault_of(error), metadata if isinstance(metadata, dict) else {})


def _detail_of(row: JsonObject) -> Detail:
    kind, value = row.get("type"), row.get("value")
    return Detail(
        kind.rpartition("/")[2] if isinstance(kind, str) else "",
        _bytes_of(value) if isinstance(value, str) else b"",
        row.get("debug"),
    )


def _detail_object(detail: Detail) -> JsonObject:
    text = binascii.b2a_base64(detail.value, newline=False).decode("ascii").rstrip("=")
    value: JsonObject = {"type": detail.type, "value": text}
    return value if detail.debug is None else value | {"debug": detail.debug}


def _bytes_of(text: str) -> bytes:
    """Decode base64 with or without padding, in either alphabet; empty if it is neither."""
    digits = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(digits + "=" * (-len(digits) % 4), strict_mode=True)
    except ValueError:
        return b""
