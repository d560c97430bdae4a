"""The model's name in the bytes of an answer: if the gateway sent another name to the back end, restore the client's.

A name is replaced only as a member of the answer's own object. Text cannot be mistaken for it, because
quotes in a JSON string are escaped; tools and metadata, which may have members of that name, differ in depth.
"""

from __future__ import annotations

import re

from ...wire.exact_json import encode
from ...wire.sse import Frame

_NAME = b'"model"'
_DATA = b"data: "
_END = b"\n\n"
# A string, with what follows it if that makes it the name of a member; or a bracket. A string without an end takes all the
# rest, so that the work stays linear whatever comes.
_TOKEN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:\s*+)?|[][{}]|".*+', re.DOTALL)
# The member of a streamed event that is the answer; in chat the event itself is. None: it names a version of the back end's own.
_ANSWER: dict[str, bytes | None] = {"chat": b"", "gemini": None, "messages": b'"message"', "responses": b'"response"'}


class Renamer:
    """One per stream. Chunks that begin or end like an earlier one are renamed without parsing."""

    def __init__(self, dialect: str, asked: str) -> None:
        self._answer = _ANSWER[dialect]
        self._asked = encode(asked)
        self._head = self._new_head = b""
        self._tail = self._new_tail = b""

    def begun(self, data: bytes) -> bytes:
        """Bytes that begin a frame, with the name replaced in all frames that are like those before them."""
        if self._head:
            if data.startswith(self._head):
                data = self._new_head + data[len(self._head) :]
            return data.replace(_END + self._head, _END + self._new_head)
        return data.replace(self._tail + _END, self._new_tail + _END) if self._tail else data

    def frame(self, frame: Frame) -> Frame:
        """The same frame object, with the name replaced."""
        if self._answer is None:
            return frame
        block = frame.block
        if self._head or self._tail:
            known = self._like_before(block)
            if known is not None:
                if known is not block:
                    frame.block = known
                    frame.data = known[len(_DATA) :]
                return frame
        if _NAME in frame.data and (places := model_places(frame.data, self._answer)):
            is_plain = block == _DATA + frame.data
            if is_plain and not self._answer:
                self._learn(frame.data, places[-1])
            frame.data = self._renamed(frame.data, places)
            frame.block = _DATA + frame.data if is_plain else _with_data(block, frame.data)
        return frame

    def _like_before(self, block: bytes) -> bytes | None:
        """The block renamed, itself if it has the name already; None if it is not like those before it."""
        if b"\n" in block:
            return None
        if self._head:
            if block.startswith(self._head):
                return self._new_head + block[len(self._head) :]
            return block if block.startswith(self._new_head) else None
        if block.endswith(self._tail):
            return block[: -len(self._tail)] + self._new_tail
        return block if block.endswith(self._new_tail) else None

    def _learn(self, data: bytes, place: slice) -> None:
        """A frame that begins with the same bytes has its name in the same place. So has one that ends with the same bytes,
        if nothing opens among them: then the last bracket ends the whole, and what stands before it is the chunk's own."""
        self._head = self._new_head = self._tail = self._new_tail = b""
        start, end = data[: place.start], data[place.stop :]
        if b"{" not in start[1:] and b"[" not in start:
            self._head, self._new_head = _DATA + data[: place.stop], _DATA + start + self._asked
        elif b"{" not in end and b"[" not in end and end.count(b"}") == 1:
            name = start[start.rindex(_NAME) - 1 :]  # with what parts it from the member before
            self._tail, self._new_tail = name + data[place] + end, name + self._asked + end

    def body(self, body: bytes) -> bytes:
        return body if self._answer is None else self._renamed(body, model_places(body))

    def _renamed(self, data: bytes, places: list[slice]) -> bytes:
        pieces, start = [], 0
        for place in places:
            pieces += [data[start : place.start], self._asked]
            start = place.stop
        return b"".join([*pieces, data[start:]])


def model_places(data: bytes, parent: bytes = b"") -> list[slice]:
    """Positions of the values of "model" in the outermost object, or in the object that is its member parent."""
    places: list[slice] = []
    left, depth, is_next, is_inside = data.count(_NAME), 0, False, False
    wanted = 2 if parent else 1
    for match in _TOKEN.finditer(data) if left else ():
        text, colon = match.group(1, 2)
        if text is None:
            depth += 1 if match.group() in b"{[" else -1
            is_next = False
        elif is_next and colon is None:
            places.append(slice(*match.span(1)))
            is_next = False
        elif colon is not None:
            if depth == 1 and parent:
                is_inside = text == parent
            is_next = text == _NAME and depth == wanted and (is_inside or not parent)
        left -= text == _NAME
        if not left and not is_next:
            break
    return places


def _with_data(block: bytes, data: bytes) -> bytes:
    """The lines of a frame with other data; other fields stay."""
    lines = [line for line in block.split(b"\n") if line.partition(b":")[0] != b"data"]
    return b"\n".join([*lines, *(b"data: " + line for line in data.split(b"\n"))])
