"""Stop sequences that the gateway keeps to itself: cut at the first, whatever the chunking, and never more held back than needed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import check_events
from toolwire.calls.stop_sequences import Automaton, SequenceSearch, StopFilter
from toolwire.errors import BadRequest, UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Loss, Reasoning, Text, ToolCall, Usage

TEXTS = st.text(alphabet="abc\n", max_size=30)
STOPS = st.lists(st.text(alphabet="abc\n", min_size=1, max_size=5), min_size=1, max_size=4).map(tuple)


def pieces(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(edges) if start < end]


def answer(*deltas: str, choice: int = 0) -> list[Event]:
    text = "".join(deltas)
    return [
        Started(id="a", model="m"),
        PartStarted(index=0, part=Text(text=""), choice=choice),
        *(PartDelta(0, delta) for delta in deltas),
        PartEnded(index=0, part=Text(text=text), choice=choice),
        Finished(choices=(Choice(reason="length", index=choice),), usage=Usage(input=1)),
    ]


def stopped(events: list[Event], *stop: str) -> tuple[str, str | None, str]:
    """The text, the sequence and the reason, with the contract checked."""
    kept = StopFilter(stop).send(events)
    check_events(kept)
    finished = kept[-1]
    assert isinstance(finished, Finished)
    (part,) = [event.part for event in kept if isinstance(event, PartEnded)]
    assert isinstance(part, Text)
    return part.text, finished.choices[0].stop_sequence, finished.choices[0].reason


def plainly(text: str, stop: tuple[str, ...]) -> tuple[str, str | None]:
    """The same by trying every letter: the sequence that is complete first, the longest of those."""
    for end in range(1, len(text) + 1):
        found = [sequence for sequence in stop if text[:end].endswith(sequence)]
        if found:
            longest = max(found, key=len)
            return text[: end - len(longest)], longest
    return text, None


@given(TEXTS, STOPS, st.lists(st.integers(0, 30), max_size=8))
def test_any_cut_gives_what_a_plain_search_finds(text: str, stop: tuple[str, ...], cuts: list[int]) -> None:
    said, sequence, reason = stopped(answer(*pieces(text, cuts)), *stop)
    assert (said, sequence) == plainly(text, stop)
    assert reason == ("length" if sequence is None else "stop")


@given(TEXTS, STOPS)
def test_what_is_held_back_may_still_become_a_sequence(text: str, stop: tuple[str, ...]) -> None:
    search = SequenceSearch(Automaton(stop))
    said = ""
    for place, letter in enumerate(text, start=1):
        said += search.feed(letter)
        if search.found is not None:
            return
        ends = [text[start:place] for start in range(place + 1)]
        held = max((end for end in ends if any(sequence.startswith(end) for sequence in stop)), key=len)
        assert said + held == text[:place]
    assert said + search.close() == text


def test_the_answer_ends_at_once_and_says_which_sequence_it_was() -> None:
    stopping = StopFilter(("END", "\n\n"))
    events = stopping.send(answer("one E", "N", "D two")[:4])
    assert not stopping.is_over
    events += stopping.send([PartDelta(0, "D two"), PartDelta(0, " three")])
    assert stopping.is_over
    assert events[-2:] == [
        PartEnded(index=0, part=Text(text="one ")),
        Finished(choices=(Choice(reason="stop", raw_reason="stop_sequence", stop_sequence="END"),)),
    ]
    assert stopping.send([PartDelta(0, "more"), Finished(choices=())]) == []


def test_usage_that_was_reported_before_the_cut_is_kept() -> None:
    stopping = StopFilter(("x",))
    events = answer("ax")
    kept = stopping.send([*events[:2], Noted(note=Usage(input=5)), *events[2:]])
    assert isinstance(kept[-1], Finished)
    assert kept[-1].usage == Usage(input=5)


def test_only_text_is_looked_through() -> None:
    call = ToolCall(id="c", name="f", raw='{"a": "STOP"}', args={"a": "STOP"})
    events: list[Event] = [
        Started(id="a", model="m"),
        PartStarted(index=0, part=Reasoning(text="")),
        PartDelta(0, "STOP?"),
        PartEnded(index=0, part=Reasoning(text="STOP?")),
        PartStarted(index=1, part=ToolCall(id="c", name="f", raw="")),
        PartDelta(1, call.raw),
        PartEnded(index=1, part=call),
        Noted(note=Loss("a", "b", "c")),
        Finished(choices=(Choice(reason="tool_calls"),)),
    ]
    stopping = StopFilter(("STOP",))
    assert stopping.send(events) == events
    assert stopping.is_over


def test_parts_that_are_open_at_the_cut_end_as_they_are() -> None:
    events: list[Event] = [
        Started(id="a", model="m"),
        PartStarted(index=0, part=ToolCall(id="c", name="f", raw="")),
        PartDelta(0, '{"a"'),
        PartStarted(index=1, part=Reasoning(text="")),
        PartDelta(1, "hm"),
        PartStarted(index=2, part=Text(text="")),
        PartDelta(2, "a."),
    ]
    kept = StopFilter((".",)).send(events)
    check_events(kept)
    assert [event.part for event in kept if isinstance(event, PartEnded)] == [
        ToolCall(id="c", name="f", raw='{"a"'),
        Reasoning(text="hm"),
        Text(text="a"),
    ]


def test_each_choice_stops_by_itself_and_the_last_one_ends_the_answer() -> None:
    stopping = StopFilter((".",), choices=2)
    kept = stopping.send(
        [
            Started(id="a", model="m"),
            PartStarted(index=0, part=Text(text=""), choice=0),
            PartStarted(index=1, part=Text(text=""), choice=1),
            PartDelta(0, "a. b"),
            PartDelta(0, "c"),
            PartStarted(index=2, part=Text(text=""), choice=0),
            PartDelta(2, "dropped"),
            PartDelta(1, "one"),
            PartEnded(index=1, part=Text(text="one"), choice=1),
            PartStarted(index=3, part=Text(text=""), choice=1),
            PartDelta(3, "two. three"),
        ]
    )
    check_events(kept)
    assert stopping.is_over
    ended = [
        (event.index, event.part.text)
        for event in kept
        if isinstance(event, PartEnded) and isinstance(event.part, Text)
    ]
    assert ended == [(0, "a"), (1, "one"), (2, "two")]
    assert isinstance(kept[-1], Finished)
    assert [choice.stop_sequence for choice in kept[-1].choices] == [".", "."]


def test_logprobs_stay_with_the_letters_they_belong_to() -> None:
    stopping = StopFilter(("<end>",))
    kept = stopping.send(
        [
            Started(id="a", model="m"),
            PartStarted(index=0, part=Text(text="")),
            PartDelta(0, "<", (1,)),
            PartDelta(0, "a", (2,)),
            PartDelta(0, "<e", (3,)),
            PartEnded(index=0, part=Text(text="<a<e", logprobs=(1, 2, 3))),
            Finished(choices=(Choice(reason="stop"),)),
        ]
    )
    check_events(kept)
    deltas = [(event.text, event.logprobs) for event in kept if isinstance(event, PartDelta)]
    assert deltas == [("<a", (1, 2)), ("<e", (3,))]


def test_an_answer_that_fails_fails() -> None:
    stopping = StopFilter((".",))
    failed = Failed(error=UpstreamError("gone"))
    assert stopping.send([Started(id="a", model="m"), failed])[-1] is failed
    assert stopping.is_over


def test_empty_sequences_stop_nothing() -> None:
    assert stopped(answer("abc"), "", "") == ("abc", None, "length")


def test_sequences_beyond_reason_are_refused() -> None:
    with pytest.raises(BadRequest, match="100000 letters"):
        StopFilter(("x" * 60_000, "y" * 60_000))


def test_each_letter_is_looked_at_once_however_the_sequences_are() -> None:
    steps = 0

    class Counting(Automaton):
        def step(self, state: int, letter: str) -> int:
            nonlocal steps
            steps += 1
            return super().step(state, letter)

    search = SequenceSearch(Counting(("a" * 1000 + "b", "a" * 999 + "c")))
    steps = 0
    for _ in range(5000):
        search.feed("a")
    assert steps == 5000
    assert search.feed("c" * 10) == "a"
    assert search.found == "a" * 999 + "c"
