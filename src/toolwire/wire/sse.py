"""Server-sent events, without I/O: bytes in, frames out.

Lines end in LF, CR or CRLF, also when a chunk boundary splits the pair; only those bytes end a line, so U+2028 inside JSON does no harm.
Bytes are scanned once: what holds no blank line yet waits in a list of pieces and is joined when its end arrives.
What is a JSON document from its first byte on is no stream, whatever it is called: it comes out whole, as one frame, at the end.
"""

from __future__ import annotations

from msgspec import Struct

MAX_FRAME = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_DOCUMENT = (b"{", b"[")


class Frame(Struct, gc=False):
    """event is "" if the frame has none; block is its lines with LF ends, without the blank line after them."""

    event: str
    data: bytes
    block: bytes

    @property
    def raw(self) -> bytes:
        return self.block + b"\n\n"


class FrameTooLarge(ValueError):
    """One event grew past the limit before its end came."""


class SseReader:
    """feed() gives whole frames; close() gives back a last frame whose blank line never came, or the document that it was."""

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._ended_in_cr = False
        self._at_start = True
        self._may_be_marked = True  # by a byte order mark
        self._ends_in_lf = False
        self.is_document = False

    @property
    def is_idle(self) -> bool:
        """Between two frames: nothing is held, and what comes begins a frame."""
        return not (self._pieces or self._ended_in_cr or self._at_start)

    def feed(self, data: bytes) -> list[Frame]:
        if self.is_idle and data[-2:] == b"\n\n" and b"\r" not in data:
            blocks = data[:-2].split(b"\n\n")
        else:
            blocks = self._blocks(data)
        frames = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                frames.append(Frame("", block[6:], block))
            elif block and (frame := parse_block(block)) is not None:
                frames.append(frame)
        return frames

    def _blocks(self, data: bytes) -> list[bytes]:
        if self.is_document:
            self._hold(data)
            return []
        if self._at_start and data:
            data = self._opened(data)
        if self._ended_in_cr or b"\r" in data:
            data = self._with_lf(data)
        if not data:
            return []
        if b"\n\n" not in data and not (self._ends_in_lf and data[:1] == b"\n"):
            self._hold(data)
            return []
        *blocks, tail = self._all_with(data).split(b"\n\n")
        if tail:
            self._hold(tail)
        return blocks

    def close(self) -> list[Frame]:
        held = b"".join(self._pieces)
        if self.is_document:
            frame: Frame | None = Frame("", held, b"data: " + held)
        else:
            frame = parse_block(held.rstrip(b"\n"))
        self._pieces.clear()
        return [] if frame is None else [frame]

    def _hold(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        self._ends_in_lf = data[-1:] == b"\n"
        if self._size > self._limit:
            raise FrameTooLarge(f"an event is larger than {self._limit} bytes")

    def _opened(self, data: bytes) -> bytes:
        """The first bytes, once they show what they begin, without a byte order mark and without blank lines."""
        if self._may_be_marked:
            data = self._all_with(data)
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._hold(data)
                return b""
            self._may_be_marked = False
            data = data.removeprefix(_BOM)
        bare = data.lstrip()
        blank = len(data) - len(bare)
        if line := max(data.rfind(b"\n", 0, blank), data.rfind(b"\r", 0, blank)) + 1:
            self._all_with(b"")  # those lines are blank
            data = data[line:]
        if not bare:
            self._hold(data)
            return b""
        self._at_start = False
        data = self._all_with(data)
        if bare[:1] in _DOCUMENT:
            self.is_document = True
            self._hold(data)
            return b""
        return data

    def _all_with(self, data: bytes) -> bytes:
        """What is held, with data after it; nothing is held any more."""
        if self._pieces:
            data = b"".join([*self._pieces, data])
            self._pieces.clear()
        self._size = 0
        self._ends_in_lf = False
        return data

    def _with_lf(self, data: bytes) -> bytes:
        if self._ended_in_cr and data[:1] == b"\n":
            data = data[1:]
            self._ended_in_cr = False
        if data:
            self._ended_in_cr = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def plain_frame(data: bytes) -> Frame | None:
    """The frame of bytes that begin and end one, if it is a single line of data; None if they must go through a reader."""
    if data.startswith(b"data: ") and data.find(b"\n") == len(data) - 2 and data[-1:] == b"\n" and b"\r" not in data:
        return Frame("", data[6:-2], data[:-2])
    return None


def frame_bytes(event: str, data: bytes) -> bytes:
    """One frame. A line break in a foreign event name must not end its line; data is JSON and contains none."""
    return b"event: " + event.encode("utf-8", "replace").translate(None, b"\r\n") + b"\ndata: " + data + b"\n\n"


def parse_block(block: bytes) -> Frame | None:
    """One event's lines, without the blank line that ends it; None if it carries no data."""
    event, lines = "", []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        if name == b"data":
            lines.append(value.removeprefix(b" "))
        elif name == b"event":
            event = value.removeprefix(b" ").decode("utf-8", "replace")
    if not lines:
        return None
    return Frame(event, lines[0] if len(lines) == 1 else b"\n".join(lines), block)
