"""Thinking in text: told apart at the beginning of a run, wherever the pieces are cut; left alone everywhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.cursor.wire.think_tags import Piece, ThinkTagSplitter

SPLITS = {
    "<think>deep</think>\n\nanswer": [("thought", "deep"), ("text", "answer")],
    "  \n<think>deep</think>answer": [("thought", "deep"), ("text", "answer")],
    "<think>a</think><think>b</think>c": [("thought", "ab"), ("text", "c")],
    "<think>never closed </thin": [("thought", "never closed </thin")],
    "<think></think>answer": [("text", "answer")],
    "<think>a </thinking b</think> c": [("thought", "a </thinking b"), ("text", " c")],
    "<thin": [("text", "<thin")],
    "<thinks>word</thinks>": [("text", "<thinks>word</thinks>")],
    "use `<think>` here</think>": [("text", "use `<think>` here</think>")],
    "a<think>b</think>": [("text", "a<think>b</think>")],
    "\n\n": [("text", "\n\n")],
    "<think>x</think>\n": [("thought", "x")],
    "": [],
}


def joined(pieces: list[Piece]) -> list[Piece]:
    whole: list[Piece] = []
    for kind, text in pieces:
        if whole and whole[-1][0] == kind:
            whole[-1] = (kind, whole[-1][1] + text)
        else:
            whole.append((kind, text))
    return whole


def split(*texts: str) -> list[Piece]:
    splitter = ThinkTagSplitter()
    pieces = [piece for text in texts for piece in splitter.feed(text)]
    return joined(pieces + splitter.close())


@pytest.mark.parametrize("text", SPLITS)
def test_cut_at_every_place_it_is_the_same(text: str) -> None:
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert split(text[:first], text[first:second], text[second:]) == SPLITS[text]
    assert split(*text) == SPLITS[text]


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "think>", "a", "\n", " ", "</"]), max_size=12))
def test_nothing_but_marks_and_the_lines_behind_them_is_lost(words: list[str]) -> None:
    whole, pieces = "".join(words), split(*words)
    assert split(whole) == pieces
    joined = "".join(text for _, text in pieces)
    rest = iter(whole)
    assert all(character in rest for character in joined), "it is what was said, in order"
    assert joined.count("a") == whole.count("a")
    assert "<think>" in whole or joined == whole


def test_blanks_are_not_held_for_ever() -> None:
    splitter = ThinkTagSplitter()
    assert joined(splitter.feed(" " * 1000)) == [("text", " " * 1000)]


def test_the_next_run_starts_again() -> None:
    splitter = ThinkTagSplitter()
    assert splitter.feed("<think>a") == [("thought", "a")]
    assert splitter.close() == []
    assert splitter.feed("b") == [("text", "b")]


def test_many_thoughts_in_one_piece_take_time_in_proportion() -> None:
    """Cut off one by one, what is left would be copied for each: minutes instead of a blink."""
    assert len(ThinkTagSplitter().feed("<think>x</think>" * 200_000)) == 200_000
