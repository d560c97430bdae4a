from __future__ import annotations

import msgspec
import pytest

from toolwire.calls.written.formats import GRAMMARS
from toolwire.calls.written.formats.base import (
    BlockRead,
    CallBroken,
    CallClosed,
    CallGrew,
    CallOpened,
    Imagined,
    Piece,
    PlainText,
    Thought,
)

PIECES: list[Piece] = [
    PlainText("a"),
    CallOpened("f"),
    CallGrew("{"),
    CallClosed(name="f", raw="{}", repairs=("loose",)),
    CallBroken(text="x", why="y"),
    Imagined("z"),
    Thought("t"),
]


def test_pieces_can_be_distinguished_when_they_are_written_down() -> None:
    written = msgspec.json.encode(PIECES)
    assert msgspec.json.decode(written, type=list[Piece]) == PIECES


def test_readings_share_no_pieces() -> None:
    first = BlockRead(status="more")
    first.pieces.append(PlainText("a"))
    assert BlockRead(status="more").pieces == []


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_every_grammar_has_openers_and_a_place(grammar: object) -> None:
    assert grammar.name
    assert all(grammar.openers)
    assert grammar.place in ("start", "line", "anywhere")
