"""Words of the messages dialect that both directions share."""

from __future__ import annotations

import pytest

from toolwire.dialects.messages.answer_out import STOP, citation_out, usage_out
from toolwire.dialects.messages.shapes import REASONS, citation_in, usage_in
from toolwire.types import Citation, Json, Usage


def test_every_reason_has_a_word_and_every_word_a_reason() -> None:
    assert {REASONS[word] for word in STOP.values()} == set(STOP) - {"other"}


def test_usage_counts_what_the_cache_served_as_input() -> None:
    value = {
        "input_tokens": 3,
        "cache_read_input_tokens": 10,
        "cache_creation_input_tokens": 5,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 2},
        "x": 1,
    }
    usage = usage_in(value)
    assert (usage.input, usage.cached, usage.cache_written, usage.output, usage.reasoning) == (18, 10, 5, 7, 2)
    assert usage_out(usage) == value


def test_usage_of_others_never_falls_below_zero() -> None:
    assert usage_out(Usage(input=5, cached=9))["input_tokens"] == 0


@pytest.mark.parametrize(
    "odd",
    [
        {"input_tokens": "x"},
        {"input_tokens": -5},
        {"input_tokens": None, "output_tokens_details": 5},
        {"input_tokens": 1.5},
    ],
)
def test_odd_usage_is_zero(odd: Json) -> None:
    assert usage_in(odd).input == 0


def test_citations() -> None:
    own = {"type": "char_location", "document_title": "D", "cited_text": "q", "document_index": 0}
    citation = citation_in(own)
    assert citation is not None
    assert (citation.title, citation.quote) == ("D", "q")
    assert citation_out(citation) == own
    assert citation_out(Citation(title="no address")) is None
    web = citation_out(Citation(url="https://a", title="A"))
    assert web is not None
    assert web["type"] == "web_search_result_location"
    assert citation_in("x") is None
