"""VS Code bridge: checks images before a window decodes them. An invalid one fails the whole request there, without a reason.

Images are not decoded here. An image passes if its head has a size and its data begins, which a cut or empty file lacks.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable

from ....types import Media

TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PNG = b"\x89PNG\r\n\x1a\n"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers of JPEG that are followed by a size
_SCAN = 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers of JPEG without a segment
_WEBP = re.compile(rb"RIFF.{4}WEBP(VP8 |VP8L|VP8X)", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/]*+={0,2}", re.ASCII)
_SEGMENTS = 2000  # of a JPEG that are looked at


def objection(media: Media) -> str:
    """Why a window would not show it; "" if it would. The type of the media is that of its first bytes."""
    if media.mime not in TYPES:
        return f"VS Code shows no {media.mime or 'image of unknown type'}"
    try:
        data = b64decode(media.data or "", validate=True)
    except (Base64Error, ValueError):
        return "its data is no base64"
    return "" if _LOOKS[media.mime](data) else "it is not whole, and VS Code could not decode it"


def is_plain(data: str) -> bool:
    """Whether it is base64 without other characters."""
    return _BASE64.fullmatch(data) is not None


def _is_png(data: bytes) -> bool:
    has_head = data.startswith(_PNG) and data[12:16] == b"IHDR"
    return has_head and _has_size(data[16:20], data[20:24]) and data.find(b"IDAT", 33) > 0


def _is_gif(data: bytes) -> bool:
    return data[:6] in (b"GIF87a", b"GIF89a") and _has_size(data[6:8], data[8:10]) and data.find(b",", 13) > 0


def _is_webp(data: bytes) -> bool:
    return _WEBP.match(data) is not None and len(data) >= min(int.from_bytes(data[4:8], "little") + 8, 1 << 31)


def _is_jpeg(data: bytes) -> bool:
    """Reads its segments up to the start of the image data."""
    if not data.startswith(b"\xff\xd8"):
        return False
    place, has_size = 2, False
    for _ in range(_SEGMENTS):
        if place + 4 > len(data) or data[place] != 0xFF:
            return False
        marker = data[place + 1]
        if marker == _SCAN:
            return has_size and place + 8 < len(data)
        if marker in _ALONE or marker == 0xFF:
            place += 1 if marker == 0xFF else 2
            continue
        has_size = has_size or (
            marker in _FRAMES and _has_size(data[place + 5 : place + 7], data[place + 7 : place + 9])
        )
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return False


def _has_size(width: bytes, height: bytes) -> bool:
    return any(width) and any(height)


_LOOKS: dict[str, Callable[[bytes], bool]] = {
    "image/png": _is_png,
    "image/jpeg": _is_jpeg,
    "image/gif": _is_gif,
    "image/webp": _is_webp,
}
