"""Text out of blobs: told as far as nobody was told, and never twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.cursor.wire.answer import blob_text as module
from toolwire.backends.cursor.wire.answer.blob_text import Message, Untold


def rest(untold: Untold) -> list[str]:
    """All that is to be told, as whoever tells it does."""
    pieces: list[str] = []
    while text := untold.next():
        pieces.append(text)
        untold.told(text)
        untold.end_step()
    return pieces


def after(*streamed: str, came: tuple[str, ...] = ()) -> list[str]:
    """Each of the streamed texts is a step, the last of them the present one."""
    untold = Untold()
    for number, text in enumerate(streamed):
        if number:
            untold.end_step()
        if text:
            untold.told(text)
    assert all(map(untold.came, came))
    return rest(untold)


@pytest.mark.parametrize(
    ("streamed", "came", "told"),
    [
        ((), ("Hello",), ["Hello"]),
        ((), ("One. ", "Two."), ["One. ", "Two."]),
        ((), ("One.", "One."), ["One."]),
        ((), ("One.", "One. Two."), ["One. Two."]),  # it has grown
        (("Hello",), ("Hello",), []),
        (("He",), ("Hello",), ["llo"]),
        (("Hello",), (" Hello\n",), []),
        (("Bye",), ("Hello",), []),  # another wording
        (("One.", ""), ("One.",), []),  # of the step before
        (("One.", ""), ("One.", "Two."), ["Two."]),
        (("One.", ""), ("One.Two.",), ["Two."]),  # the whole run
        (("One.", "Two."), ("One.Two.",), []),
        (("One.", "Two."), ("One.", "Two."), []),
        (("", "Two."), ("One.", "Two."), ["One."]),
        (("Hi",), ("<think>hm</think>Hi",), []),
        ((), ("<think>hm</think>Hi",), ["<think>hm</think>Hi"]),
        (("H\ud800",), ("H\ud800\u00e9",), ["\u00e9"]),
    ],
)
def test_what_is_left_to_tell(streamed: tuple[str, ...], came: tuple[str, ...], told: list[str]) -> None:
    assert after(*streamed, came=came) == told


def test_what_was_told_is_not_told_when_it_comes_again() -> None:
    untold = Untold()
    untold.told("He")
    untold.came("Hello")
    assert rest(untold) == ["llo"]
    untold.told("More.")
    untold.end_step()
    assert untold.came("Hello")
    assert untold.came("More.")
    assert not untold


def test_the_history_is_asked_for_once_and_only_if_a_text_comes() -> None:
    asked: list[int] = []

    def before() -> list[Message]:
        asked.append(1)
        return [Message("old")]

    untold = Untold(before)
    untold.told("x")
    assert asked == []
    assert untold.came("old")
    assert untold.came("new")
    assert asked == [1]
    assert len(untold._waiting) == 1


def test_a_text_that_was_told_before_is_new_with_calls_of_its_own() -> None:
    untold = Untold(lambda: [Message("Look.", frozenset({"old"}))])
    untold.came("Look.", frozenset({"old"}))
    assert rest(untold) == []
    untold.close()
    untold.called("one")
    untold.came("Look.", frozenset({"one"}))
    untold.told("Streamed.")
    untold.end_step()
    assert rest(untold) == []
    untold.came("Look.", frozenset({"two"}))
    assert rest(untold) == ["Look."]


def test_a_repetition_counts_where_nothing_else_came() -> None:
    untold = Untold()
    untold.told("Done.")
    untold.end_step()
    untold.close()
    untold.came("Done.")  # the copy of what was streamed
    assert untold.repetition() == ""
    untold.came("Done.")
    assert rest(untold) == []  # the run streams its text
    assert untold.repetition() == "Done."
    assert untold.repetition() == ""


def test_what_waits_is_bounded_and_what_was_told_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 4)
    untold = Untold()
    assert [untold.came("ab"), untold.came("cd"), untold.came("e")] == [True, True, False]
    assert rest(untold) == ["ab", "cd"]
    assert untold.came("efgh")


@given(st.lists(st.text(st.characters(categories=["L"]), min_size=1), max_size=6), st.integers(0, 40))
def test_a_run_is_told_whole_wherever_the_stream_stopped(steps: list[str], cut: int) -> None:
    """The blob of all that was said in the run adds exactly what was not streamed."""
    whole = "".join(steps)
    untold = Untold()
    if whole[:cut]:
        untold.told(whole[:cut])
    if whole:
        untold.came(whole)
    assert whole[:cut] + "".join(rest(untold)) == whole
