"""Chat Completions: reasoning_details, OpenRouter's form of reasoning, which a stream sends in pieces.

The pieces of one entry share type and index; an entry may end with a piece that has no text, only a signature. A signature covers the whole
reasoning, so back ends refuse the pieces as they came (H081). They are joined here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...types import Json, JsonObject, Part, Reasoning

MEMBER = "reasoning_details"
_DIALECT = "chat"
_WORDS = {"reasoning.text": "text", "reasoning.summary": "summary"}
_GROWING = ("text", "summary", "data", "signature")
_ONCE = frozenset({"data", "signature"})  # repeated values are copies, not continuations


class Details:
    """Entries under construction, in order of their start; values that are no entries stay as they are, in their positions."""

    def __init__(self) -> None:
        self._entries: list[_Entry | Json] = []
        self._open: dict[tuple[Json, int], _Entry] = {}

    def add(self, pieces: Sequence[Json]) -> None:
        for piece in pieces:
            if not isinstance(piece, dict):
                self._entries.append(piece)
                continue
            entry = self._entry_of(piece)
            if entry is None:
                entry = self._begin(piece)
            entry.grow(piece)

    def whole(self) -> list[Json]:
        return [entry.whole() if isinstance(entry, _Entry) else entry for entry in self._entries]

    def _begin(self, piece: JsonObject) -> _Entry:
        entry = _Entry()
        self._entries.append(entry)
        if (key := _key(piece)) is not None:
            self._open[key] = entry
        return entry

    def _entry_of(self, piece: JsonObject) -> _Entry | None:
        """The entry that this piece continues. A piece without an index can only continue text directly before it."""
        if (key := _key(piece)) is not None:
            entry = self._open.get(key)
        else:
            last = self._entries[-1] if self._entries else None
            is_next = isinstance(last, _Entry) and last.goes_on(piece)
            entry = last if isinstance(last, _Entry) and is_next else None
        return entry if entry is not None and entry.may_be(piece.get("id")) else None


class _Entry:
    __slots__ = ("_growing", "_members")

    def __init__(self) -> None:
        self._members: JsonObject = {}
        self._growing: dict[str, list[str]] = {}

    def grow(self, piece: JsonObject) -> None:
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                pieces = self._growing.setdefault(name, [])
                if name not in _ONCE or value not in pieces[:1]:
                    pieces.append(value)
                self._members[name] = ""
            elif self._members.get(name) is None:
                self._members[name] = value

    def may_be(self, known: Json) -> bool:
        """Gemini names the call that a signature belongs to: two names are two entries, even with the same index."""
        own = self._members.get("id")
        return own is None or known is None or bool(own == known)

    def goes_on(self, piece: JsonObject) -> bool:
        kind = piece.get("type")
        is_alike = kind == self._members.get("type") and _key(self._members) is None
        return is_alike and isinstance(kind, str) and kind in _WORDS

    def whole(self) -> JsonObject:
        return self._members | {name: "".join(pieces) for name, pieces in self._growing.items()}


def words_in(pieces: Sequence[Json]) -> str:
    """The readable text of the pieces."""
    texts = [piece.get(_WORDS.get(str(piece.get("type")), "")) for piece in pieces if isinstance(piece, dict)]
    return "".join([text for text in texts if isinstance(text, str)])


def details_of(parts: Sequence[Part]) -> list[Json]:
    """Details of all reasoning of a message as one array; reasoning may have continued after other parts."""
    found = [
        own for part in parts if isinstance(part, Reasoning) and isinstance(own := _own(part).get(MEMBER), list) and own
    ]
    return joined(found)


def joined(lists: Sequence[list[Json]]) -> list[Json]:
    if len(lists) < 2:
        return lists[0] if lists else []
    details = Details()
    for pieces in lists:
        details.add(pieces)
    return details.whole()


def _own(part: Reasoning) -> JsonObject:
    return part.extra.get(_DIALECT, {})


def _key(piece: JsonObject) -> tuple[Json, int] | None:
    index, kind = piece.get("index"), piece.get("type")
    return (kind, index) if type(index) is int and isinstance(kind, str) else None
