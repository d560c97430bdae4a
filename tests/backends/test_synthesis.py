"""Parts as streams: whatever the cutting, the contract holds and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.event_contract import check_events, result, user
from toolwire.backends.synthesis import (
    batches,
    choice_events,
    chunk_splitter,
    estimated_usage,
    plausible_logprobs,
    requested_choices,
    results_of,
    split_words,
    text_of,
    tokens,
)
from toolwire.errors import BadRequest
from toolwire.events import Finished, PartDelta, PartEnded, Started, fold
from toolwire.types import Choice, Citation, Media, Opaque, Part, Reasoning, Refusal, Request, Sampling, Text, ToolCall

texts = st.text(max_size=60)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(lambda text: Text(text=text), texts),
    st.builds(lambda text: Text(text=text, citations=(Citation(url="https://example.com"),)), texts),
    st.builds(lambda text: Reasoning(text=text, signature="signed"), texts),
    st.builds(lambda text: Refusal(text=text), texts),
    st.builds(lambda raw: ToolCall(id="call_1", name="look", raw=raw), texts),
)


@given(st.lists(st.lists(parts, max_size=4), min_size=1, max_size=3), st.integers(0, 9))
def test_any_parts_in_any_chunks_keep_the_contract(choices: list[list[Part]], size: int) -> None:
    ends = tuple(Choice(reason="stop", index=index) for index in range(len(choices)))
    start = Started(id="gen_1", model="m")
    for cut in (chunk_splitter(size), split_words):
        events = [start, *choice_events(choices, cut), Finished(choices=ends)]
        check_events(events)
        assert [list(fold(events).parts_of(index)) for index in range(len(choices))] == choices
        assert [event for batch in batches(events) for event in batch] == events


@given(st.text())
def test_pieces_join_to_the_text(text: str) -> None:
    assert "".join(split_words(text)) == text
    for size in (0, 1, 7):
        assert "".join(chunk_splitter(size)(text)) == text
        assert "" not in chunk_splitter(size)(text)


def test_chunk_zero_is_one_piece() -> None:
    assert chunk_splitter(0)("all of it") == ["all of it"]
    assert chunk_splitter(4)("all of it") == ["all ", "of i", "t"]


def test_a_batch_ends_with_a_delta_or_an_end() -> None:
    told = list(batches(choice_events([[Text(text="one two")]], split_words)))
    assert [type(batch[-1]) for batch in told] == [PartDelta, PartDelta, PartEnded]


def test_each_piece_has_its_own_logprobs() -> None:
    part = Text(text="one two", logprobs=plausible_logprobs(["one ", "two"]))
    deltas = [event for event in choice_events([[part]], split_words) if isinstance(event, PartDelta)]
    assert [delta.logprobs[0]["token"] for delta in deltas if delta.logprobs] == ["one ", "two"]
    assert plausible_logprobs(["é"])[0]["bytes"] == [0xC3, 0xA9]


def test_usage_is_four_characters_to_a_token_and_at_least_one() -> None:
    request = Request(model="m", messages=(user("x" * 80), result("call_1", "y" * 40)))
    usage = estimated_usage(request, [[Reasoning(text="z" * 20), Text(text="w" * 20)]])
    assert (usage.input, usage.output, usage.reasoning) == (30, 10, 5)
    assert tokens(0) == 1
    assert estimated_usage(Request(model="m", messages=()), [[]]).reasoning == 0


def test_text_of_names_what_is_no_text() -> None:
    assert text_of(Media(kind="image", url="https://example.com/a.png")) == "[image]"
    assert text_of(Opaque(dialect="chat", value={})) == ""
    assert [text_of(one) for one in results_of([user("a"), result("call_1", "b")])] == ["b"]


@pytest.mark.parametrize("wanted", [0, -1, 129, 10**9])
def test_choices_without_reason_are_refused(wanted: int) -> None:
    with pytest.raises(BadRequest, match="expected 1 to 128"):
        requested_choices(Request(model="m", messages=(), sampling=Sampling(choices=wanted)))
    assert requested_choices(Request(model="m", messages=())) == 1
