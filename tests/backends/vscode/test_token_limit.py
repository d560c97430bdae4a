"""max_tokens for models that do not keep to it: cut late, never early, and never through a call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.vscode.token_limit import BYTES, LEAST, TokenLimiter
from toolwire.events import Event, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, fold
from toolwire.types import Choice, Loss, Text, ToolCall, Usage

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
    limiter = TokenLimiter(100)
    assert limiter.send(events) == events
    assert limiter.is_over
    assert not limiter.was_cut


def test_a_long_one_is_cut_where_it_is_certainly_too_long() -> None:
    limiter = TokenLimiter(20)
    events = limiter.send([STARTED, *text_events("a" * 300, "b" * 30, "c" * 7), FINISHED])
    answer = fold(events)
    assert answer.parts[0].part == Text(text="a" * 300 + "b" * 20)
    assert answer.finished.choices == (Choice(reason="length", raw_reason="max_tokens"),)
    assert limiter.is_over
    assert limiter.was_cut
    assert limiter.send([PartDelta(0, "more"), FINISHED]) == []


def test_exactly_as_much_as_allowed_is_allowed() -> None:
    limiter = TokenLimiter(20)
    limiter.send([STARTED, *text_events("a" * 320), FINISHED])
    assert not limiter.was_cut


@pytest.mark.parametrize(
    ("tokens", "text"),
    [  # as o200k_base counts them
        (
            20,
            "В начале было слово. Московский государственный университет является крупнейшим образовательным "
            "учреждением Российской Федерации.",
        ),
        (21, "भारत एक विशाल देश है और इसकी राजधानी नई दिल्ली है। यहाँ अनेक भाषाएँ बोली जाती हैं।"),
        (1, "Congratulations"),
        (2, "-" * 100),
    ],
)
def test_no_text_of_that_many_tokens_is_cut(tokens: int, text: str) -> None:
    for times in (1, 30 if tokens > 2 else 1):
        limiter = TokenLimiter(tokens * times)
        limiter.send([STARTED, *text_events(*[text] * times), FINISHED])
        assert not limiter.was_cut


def test_an_answer_that_was_counted_is_judged_by_its_count() -> None:
    events: list[Event] = [STARTED, *text_events("-" * 999), FINISHED]
    assert TokenLimiter(20).send(events, Usage(output=20)) == events
    over = TokenLimiter(20)
    over.send(events, Usage(output=21))
    assert over.was_cut


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), max_size=20), st.integers(0, 30))
def test_what_is_kept_is_the_beginning_and_whole_letters(pieces: list[str], limit: int) -> None:
    whole = "".join(pieces)
    limiter = TokenLimiter(limit)
    part = fold(limiter.send([STARTED, *text_events(*pieces), FINISHED])).parts[0].part
    assert isinstance(part, Text)
    assert whole.startswith(part.text)
    most = max(LEAST, limit * BYTES)
    assert most - 3 <= len(part.text.encode()) <= most or part.text == whole
    assert limiter.was_cut == (part.text != whole)


def test_a_call_is_never_cut_but_counts() -> None:
    limiter = TokenLimiter(2)
    call = call_events('{"a":"' + "x" * LEAST + '"}')
    assert limiter.send([STARTED, *call]) == [STARTED, *call]
    answer = fold([STARTED, *call, *limiter.send(text_events("behind it", index=1))])
    assert answer.parts[1].part == Text(text="")
    assert answer.finished.choices[0].reason == "length"


def test_a_call_at_the_end_is_all_that_was_wanted() -> None:
    limiter = TokenLimiter(1)
    end = Finished(choices=(Choice(reason="tool_calls"),))
    assert limiter.send([STARTED, *call_events('{"a":"long enough"}'), end])[-1] == end
