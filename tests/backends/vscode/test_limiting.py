"""max_tokens for models that do not keep to it: cut late, never early, and never through a call."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.vscode.limiting import BYTES, Limiting
from toolwire.events import Event, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, fold
from toolwire.types import Choice, Loss, Text, ToolCall

STARTED = Started(id="r", model="m")
FINISHED = Finished(choices=(Choice(reason="stop"),))
NOTE = Noted(note=Loss("a", "b", "c"))


def text_events(*pieces: str, index: int = 0) -> list[Event]:
    whole = Text(text="".join(pieces))
    deltas = [PartDelta(index, piece) for piece in pieces]
    return [PartStarted(index=index, part=Text(text="")), *deltas, PartEnded(index=index, part=whole)]


def call_events(raw: str, index: int = 0) -> list[Event]:
    call = ToolCall(id="c", name="f", raw=raw)
    return [
        PartStarted(index=index, part=ToolCall(id="c", name="f", raw="")),
        PartDelta(index, raw),
        PartEnded(index=index, part=call),
    ]


def test_a_short_answer_is_left_alone() -> None:
    events: list[Event] = [STARTED, NOTE, *text_events("four", "teen bytes"), FINISHED]
    limiting = Limiting(100)
    assert limiting.send(events) == events
    assert limiting.is_over
    assert not limiting.was_cut


def test_a_long_one_is_cut_where_it_is_certainly_too_long() -> None:
    limiting = Limiting(2)
    events = limiting.send([STARTED, *text_events("a" * 7, "b" * 7, "c" * 7), FINISHED])
    answer = fold(events)
    assert answer.parts[0].part == Text(text="a" * 7 + "b" * 5)
    assert answer.finished.choices == (Choice(reason="length", raw_reason="max_tokens"),)
    assert limiting.is_over
    assert limiting.was_cut
    assert limiting.send([PartDelta(0, "more"), FINISHED]) == []


def test_exactly_as_much_as_allowed_is_allowed() -> None:
    limiting = Limiting(2)
    limiting.send([STARTED, *text_events("a" * 12), FINISHED])
    assert not limiting.was_cut


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=20), st.integers(0, 20))
def test_what_is_kept_is_the_beginning_and_whole_letters(pieces: list[str], limit: int) -> None:
    whole = "".join(pieces)
    limiting = Limiting(limit)
    part = fold(limiting.send([STARTED, *text_events(*pieces), FINISHED])).parts[0].part
    assert isinstance(part, Text)
    assert whole.startswith(part.text)
    assert limit * BYTES - 3 <= len(part.text.encode()) <= limit * BYTES or part.text == whole
    assert limiting.was_cut == (part.text != whole)


def test_a_call_is_never_cut_but_counts() -> None:
    limiting = Limiting(2)
    call = call_events('{"a":"' + "x" * 50 + '"}')
    assert limiting.send([STARTED, *call]) == [STARTED, *call]
    answer = fold([STARTED, *call, *limiting.send(text_events("behind it", index=1))])
    assert answer.parts[1].part == Text(text="")
    assert answer.finished.choices[0].reason == "length"


def test_a_call_at_the_end_is_all_that_was_wanted() -> None:
    limiting = Limiting(1)
    end = Finished(choices=(Choice(reason="tool_calls"),))
    assert limiting.send([STARTED, *call_events('{"a":"long enough"}'), end])[-1] == end
