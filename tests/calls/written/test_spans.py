"""A call that cannot be read carries what the model wrote, and nobody else sees it."""

from __future__ import annotations

from toolwire.calls.written.spans import is_open, readable, span_of, why_of, with_span, without_end
from toolwire.types import ToolCall

CALL = ToolCall(id="call_1", name="weather", raw="{", extra={"chat": {"x": 1}})


def test_a_span_comes_back_and_goes_away() -> None:
    marked = with_span(CALL, "<tool_call>{", "it has no end")
    assert (span_of(marked), why_of(marked)) == ("<tool_call>{", "it has no end")
    assert marked.extra["chat"] == {"x": 1}
    assert readable(marked) == CALL


def test_any_other_call_has_none() -> None:
    assert (span_of(CALL), why_of(CALL)) == ("", "")
    assert readable(CALL) is CALL


def test_a_call_without_its_end_says_so() -> None:
    marked = without_end(CALL)
    assert is_open(marked)
    assert (span_of(marked), why_of(marked)) == ("", "")
    assert not is_open(CALL)
    assert not is_open(with_span(CALL, "x", "y"))
    assert readable(marked) == CALL
