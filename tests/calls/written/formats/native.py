"""A small reader of whole texts for the tests of single grammars: openers are found here, blocks are fed in whatever pieces are asked for."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from toolwire.calls.arguments import Valid, judge
from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import ToolOffer
from toolwire.calls.written.formats.base import (
    CallBroken,
    CallClosed,
    CallGrew,
    CallOpened,
    Piece,
    PlainText,
    Thought,
)
from toolwire.calls.written.formats.grammar import Block, Grammar
from toolwire.calls.written.scanner import CallScanner
from toolwire.types import Tool, ToolCall

RECORDINGS = Path(__file__).parent / "recordings"

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "detailed": {"type": "boolean"},
        "note": {"type": ["string", "null"]},
        "date": {"$ref": "#/$defs/date"},
        "options": {"type": "object"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "free": {},
    },
    "required": ["city"],
    "$defs": {"date": {"type": ["integer", "string"]}},
}
WRITE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
    "additionalProperties": False,
}
EMPTY = {"type": "object", "properties": {}, "additionalProperties": False}
TOOLS = (
    Tool(name="get_weather", schema=WEATHER),
    Tool(name="write_file", schema=WRITE),
    Tool(name="get_time", schema=EMPTY),
    Tool(
        name="exec", schema={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    ),
)


class Tools:
    def __init__(self, *, is_instructed: bool = False, tools: Sequence[Tool] = TOOLS) -> None:
        self.is_instructed = is_instructed
        self.tools = tools
        self._offer = ToolOffer(tools)
        self._schemas = Schemas()

    def tool(self, name: str) -> Tool | None:
        return self._offer.tool(name)

    def fits(self, name: str, raw: str) -> bool:
        tool = self.tool(name)
        call = ToolCall(id="", name=name, raw=raw, args=json.loads(raw))
        return tool is not None and isinstance(judge(call, tool, self._schemas, may_repair=False), Valid)


def recording(name: str) -> str:
    return (RECORDINGS / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


def read(grammars: Iterable[Grammar], text: str, cuts: Iterable[int] = (), known: Tools | None = None) -> list[Piece]:
    """The pieces of a whole text, joined where they are of one kind; blocks get it cut at these places."""
    known = known or Tools()
    grammars = tuple(grammars)
    places = sorted({cut for cut in cuts if 0 < cut < len(text)})
    pieces: list[Piece] = []
    pattern = _pattern(tuple(opener for grammar in grammars for opener in grammar.openers))
    at = said = 0
    while found := pattern.search(text, at):
        at = found.start()
        end, given = _first(_opened(grammars, text, at, said), text, at, places, known)
        if end >= 0:
            pieces += [PlainText(text[said:at])] if at > said else []
            pieces += given
            at = said = end
        else:
            at += 1
    return joined([*pieces, *([PlainText(text[said:])] if said < len(text) else [])])


@cache
def _pattern(openers: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, openers)))


def _opened(grammars: tuple[Grammar, ...], text: str, at: int, said: int) -> Iterator[tuple[Grammar, str]]:
    before = text[said:at]
    line = before.rpartition("\n")[2] if "\n" in before else before if not before.strip() else "words"
    is_here = {"start": not text[:at].strip(), "line": not line.strip(), "anywhere": True}
    for grammar in grammars:
        for opener in grammar.openers:
            if is_here[grammar.place] and text.startswith(opener, at):
                yield grammar, opener


def _first(
    opened: Iterable[tuple[Grammar, str]], text: str, at: int, places: list[int], known: Tools
) -> tuple[int, list[Piece]]:
    for grammar, opener in opened:
        end, given = _through(grammar.begin(opener, known), text, at + len(opener), places)
        if end >= 0:
            return end, given
    return -1, []


def _through(block: Block, text: str, start: int, places: list[int]) -> tuple[int, list[Piece]]:
    """Where the block ends, and what it gave; -1 where it is none."""
    given: list[Piece] = []
    edges = [start, *(place for place in places if place > start), len(text)]
    for begin, end in itertools.pairwise(edges):
        answer = block.feed(text[begin:end])
        given += answer.pieces
        if answer.status != "more":
            return _end(answer.status, end - len(answer.rest), given)
    answer = block.close()
    assert answer.status != "more"
    return _end(answer.status, len(text) - len(answer.rest), given + answer.pieces)


def _end(status: str, end: int, given: list[Piece]) -> tuple[int, list[Piece]]:
    assert status == "done" or not given
    return (end, given) if status == "done" else (-1, [])


def joined(pieces: list[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, PlainText | CallGrew | Thought) and type(last) is type(piece):
            found[-1] = type(piece)(last.text + piece.text)
        else:
            found.append(piece)
    return found


def calls(pieces: list[Piece]) -> list[tuple[str, Any]]:
    """Of whole calls name and arguments; and each stream of pieces is checked on the way."""
    check(pieces)
    return [(piece.name, json.loads(piece.raw)) for piece in pieces if isinstance(piece, CallClosed)]


def words(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, PlainText))


def broken(pieces: list[Piece]) -> list[CallBroken]:
    return [piece for piece in pieces if isinstance(piece, CallBroken)]


def check(pieces: list[Piece]) -> None:
    """Opened, then Grew, then an end; and what grew is what the call has."""
    name, raw = "", ""
    for piece in pieces:
        match piece:
            case CallOpened():
                assert not name
                name, raw = piece.name, ""
            case CallGrew():
                assert name
                raw += piece.text
            case CallClosed() | CallBroken():
                assert not name or (piece.name, piece.raw) == (name, raw)
                name = ""
            case _:
                assert not name
    assert not name


def same_however_cut(grammars: Sequence[Grammar], text: str, known: Tools | None = None) -> list[Piece]:
    """The pieces of the whole text, which are those of its letters, and of it cut once at any place (in long ones, at many)."""
    known = known or Tools()
    whole = read(grammars, text, known=known)
    assert read(grammars, text, range(len(text)), known) == whole
    for cut in range(1, len(text), 1 + len(text) // 120):
        assert read(grammars, text, (cut,), known) == whole, cut
    return whole


CUTS = st.lists(st.integers(1, 400), max_size=12)


def texts(*fragments: str) -> st.SearchStrategy[str]:
    """Fragments in any order, each # in them a word that is nowhere else."""
    return st.lists(st.sampled_from(fragments), min_size=1, max_size=14).map(_numbered)


def _numbered(fragments: list[str]) -> str:
    numbers = itertools.count()
    return re.sub("#", lambda _: f"w{next(numbers)}w", "".join(fragments))


def check_cut(grammars: Sequence[Grammar], text: str, cuts: list[int], known: Tools | None = None) -> list[Piece]:
    """Cutting does not matter, and no word is both said and claimed."""
    whole = read(grammars, text, known=known)
    assert read(grammars, text, cuts, known) == whole
    check(whole)
    said = words(whole) + "".join(piece.text for piece in whole if isinstance(piece, Thought))
    claimed = "".join(f"{piece.name} {piece.raw}" for piece in whole if isinstance(piece, CallClosed))
    claimed += "".join(piece.text for piece in broken(whole))
    for word in re.findall(r"w\d+w", text):
        assert said.count(word) + claimed.count(word) <= 1
    return whole


def sentinel_pieces(text: str, known: Tools | None = None, size: int = 0) -> list[Piece]:
    """As the reader of all forms gives them; size: of the pieces that the text comes in, 0 for all at once."""
    sentinel = CallScanner(known or Tools())
    size = size or len(text) or 1
    pieces = [piece for start in range(0, len(text), size) for piece in sentinel.feed(text[start : start + size])]
    return joined(pieces + sentinel.close())


def recorded(grammars: Sequence[Grammar], name: str) -> list[Piece]:
    """The pieces of a recording: from its grammar alone and among all others, whole and in parts."""
    text = recording(name)
    whole = same_however_cut(grammars, text)
    for size in (0, 1, 2, 3, 7):
        assert sentinel_pieces(text, size=size) == whole
    return whole


def check_prose(grammars: Sequence[Grammar], text: str, *, is_instructed: bool = False) -> None:
    """Words to this grammar, and no call to all of them together."""
    known = Tools(is_instructed=is_instructed)
    assert same_however_cut(grammars, text, known) == [PlainText(text)]
    for size in (0, 1):
        pieces = sentinel_pieces(text, known, size)
        assert calls(pieces) == []
        assert is_instructed or words(pieces) == text
