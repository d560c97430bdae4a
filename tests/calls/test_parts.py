"""Part indexes stay dense, whatever is hidden or inserted."""

from __future__ import annotations

import itertools

from toolwire.calls.parts import PartIndexes
from toolwire.events import Noted, PartDelta, PartEnded, PartStarted
from toolwire.types import Citation, Text, Usage

TEXT = Text(text="")


def started(index: int) -> PartStarted:
    return PartStarted(index=index, part=TEXT)


def test_unchanged_events_stay_the_same_objects() -> None:
    indexes = PartIndexes()
    for event in (start := started(0), PartDelta(0, "a"), PartEnded(index=0, part=TEXT), Noted(note=Usage())):
        assert (indexes.open(event) if event is start else indexes.forward(event)[0]) is event


def test_events_of_a_hidden_part_are_dropped_and_later_parts_move_up() -> None:
    indexes = PartIndexes()
    assert indexes.forward(PartDelta(0, "hidden")) == []
    assert indexes.open(started(1)).index == 0
    assert indexes.forward(PartDelta(1, "a", (1,))) == [PartDelta(0, "a", (1,))]
    assert indexes.forward(Noted(note=Citation(), index=1)) == [Noted(note=Citation(), index=0)]
    assert indexes.forward(PartEnded(index=1, part=TEXT)) == [PartEnded(index=0, part=TEXT)]
    indexes.hide(1)
    assert (indexes.get(1), indexes.forward(PartDelta(1, "b"))) == (None, [])


def test_parts_before_the_first_keep_their_indexes() -> None:
    indexes = PartIndexes(first=2)
    assert indexes.forward(PartDelta(1, "a")) == [PartDelta(1, "a")]
    assert indexes.get(2) is None
    assert indexes.open(started(3)).index == 2


def test_an_inserted_part_is_complete_and_takes_the_next_index() -> None:
    indexes = PartIndexes()
    indexes.open(started(0))
    text = Text(text="hi", citations=(Citation(url="u"),))
    assert indexes.insert(text, 1) == [
        PartStarted(index=1, part=TEXT, choice=1),
        PartDelta(1, "hi"),
        Noted(note=Citation(url="u"), index=1),
        PartEnded(index=1, part=text, choice=1),
    ]
    assert indexes.open(started(1)).index == 2


def test_several_answers_share_one_sequence() -> None:
    allocate = itertools.count(5).__next__
    assert PartIndexes(allocate).open(started(0)).index == 5
    assert PartIndexes(allocate).open(started(0)).index == 6
