"""A call that cannot be read carries what the model wrote, and nobody else sees it."""

from __future__ import annotations

from toolwire.calls.spans import readable, span_of, why_of, with_span
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
