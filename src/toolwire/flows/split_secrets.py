"""Secrets that a stream carries in pieces: each frame has a few characters of a text, so no frame contains the secret.

The texts of a stream are the strings in the same place of its frames, one after the other: under the same members, and in parts of the same
index, id and type. This holds for every dialect, so nothing here knows one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from ..telemetry.redaction import HIDDEN

Spans: TypeAlias = list[tuple[int, int]]
Find: TypeAlias = Callable[[bytes], Spans]  # where secrets are, in order and without overlap
Edit: TypeAlias = tuple[int, int, bytes]  # start, end, and what is there instead

_LINE = re.compile(rb"^(?:data: ?)?(\{[^\r\n]*)", re.MULTILINE)  # a server-sent event, or a line of JSON
# What tells texts apart that are in the same place.
_MARKS = ("type", "index", "output_index", "content_index", "summary_index", "item_id", "itemId", "method", "id")
_MAX_DEPTH = 12


def stream_edits(reply: bytes, find: Find) -> list[Edit]:
    """How to remove the secrets from a stream of server-sent events, or of lines of JSON."""
    lines = [match.span(1) for match in _LINE.finditer(reply)]
    if len(lines) < 2:
        return []
    changed = without_split_secrets([reply[start:end] for start, end in lines], find)
    return [(*lines[place], document) for place, document in changed.items()]


def without_split_secrets(documents: Sequence[bytes], find: Find) -> dict[int, bytes]:
    """The JSON documents that contain a piece of a secret, by their position, without it."""
    texts: dict[tuple[Any, ...], list[_Piece]] = {}
    values: dict[int, Any] = {}
    for place, document in enumerate(documents):
        try:
            value = values[place] = msgspec.json.decode(document)
        except (msgspec.DecodeError, RecursionError):  # a truncated frame, or not JSON
            continue
        for path, piece in _pieces(value, (), place):
            texts.setdefault(path, []).append(piece)
    several = [pieces for pieces in texts.values() if len({piece.text for piece in pieces}) > 1]
    if not find("\0".join("".join([piece.text for piece in pieces]) for pieces in several).encode("utf-8", "replace")):
        return {}
    changed = {place for pieces in several for place in _hide(pieces, find)}
    return {place: msgspec.json.encode(values[place]) for place in sorted(changed)}


def apply_edits(data: bytes, ends: list[int], edits: list[Edit]) -> tuple[bytes, list[int]]:
    """The data with these edits, which are in order, and where the chunks that ended at these offsets end now. An end inside an edit moves
    to the end of it."""
    if not edits:
        return data, ends
    pieces, at, shift = list[bytes](), 0, 0
    moved, waiting = list[int](), iter(ends)
    end = next(waiting, None)
    for start, stop, text in edits:
        while end is not None and end <= start:
            moved.append(end + shift)
            end = next(waiting, None)
        pieces += (data[at:start], text)
        at, shift = stop, shift + len(text) - (stop - start)
        while end is not None and end < stop:
            moved.append(stop + shift)
            end = next(waiting, None)
    while end is not None:
        moved.append(end + shift)
        end = next(waiting, None)
    return b"".join([*pieces, data[at:]]), moved


class _Piece:
    """A string of a document. container[key] is where it is."""

    __slots__ = ("container", "key", "place", "text")

    def __init__(self, text: str, container: Any, key: str | int, place: int) -> None:
        self.text = text
        self.container = container
        self.key = key
        self.place = place


def _pieces(value: Any, path: tuple[Any, ...], place: int) -> Iterator[tuple[tuple[Any, ...], _Piece]]:
    if len(path) > _MAX_DEPTH * 2:
        return
    if isinstance(value, dict):
        marks = tuple([mark for name in _MARKS if type(mark := value.get(name)) in (str, int)])
        path = (*path, marks) if marks else path
        members: Any = value.items()
    else:
        members = enumerate(value)
    for key, item in members:
        if isinstance(item, str):
            if item:
                yield (*path, key), _Piece(item, value, key, place)
        elif isinstance(item, dict | list):
            has_index = isinstance(key, int) and isinstance(item, dict) and "index" in item
            yield from _pieces(item, path if has_index else (*path, key), place)


def _hide(pieces: list[_Piece], find: Find) -> Iterator[int]:
    """Removes the secrets from the strings, and gives the positions of the documents."""
    encoded = [piece.text.encode("utf-8", "replace") for piece in pieces]
    edits: list[Edit] = [(start, end, HIDDEN.encode()) for start, end in find(b"".join(encoded))]
    if not edits:
        return
    ends, total = list[int](), 0
    for text in encoded:
        total += len(text)
        ends.append(total)
    data, moved = apply_edits(b"".join(encoded), ends, edits)
    for piece, text, start, end in zip(pieces, encoded, [0, *moved], moved, strict=False):
        if data[start:end] != text:
            piece.container[piece.key] = data[start:end].decode("utf-8", "replace")
            yield piece.place
