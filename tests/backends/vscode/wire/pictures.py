"""A whole image, and media parts made of it."""

from __future__ import annotations

from base64 import b64encode
from zlib import compress, crc32

from toolwire.types import Media


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + crc32(kind + data).to_bytes(4, "big")


def _size(width: int, height: int) -> bytes:
    return width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", _size(1, 1))
    + _chunk(b"IDAT", compress(b"\x00\xff\x00\x00"))
    + _chunk(b"IEND", b"")
)


def image(mime: str, data: bytes) -> Media:
    return Media(kind="image", mime=mime, data=b64encode(data).decode())
