"""WebSocket frames as a server sends them."""

from __future__ import annotations

from toolwire.wire.websocket import (
    frame,
)


def served(kind: int, data: bytes, *, is_last: bool = True) -> bytes:
    """A frame as a server sends it: not masked."""
    masked = frame(kind, data, b"\0\0\0\0")
    head = bytearray(masked[: len(masked) - len(data) - 4])
    head[1] &= 0x7F
    if not is_last:
        head[0] &= 0x7F
    return bytes(head) + data
