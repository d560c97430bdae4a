"""Sealed summaries."""

from __future__ import annotations

from toolwire.pipeline.compaction.summary import Summary, SummarySeals, storable
from toolwire.types import Message, Source, Text, ToolCall

CALL = ToolCall(id="c", name="look", raw='{"a": 1.50}', args={"a": 1.5})


def test_what_follows_the_text_comes_back_as_it_was() -> None:
    seals = SummarySeals(lambda: (b"a secret",))
    message = Message(role="assistant", parts=(Text(text="é"), CALL), source=Source("chat", {}))
    sealed = seals.seal(Summary(text="all of it", tail=(storable(message),)), "me")
    opened = seals.open(sealed, "me")
    assert opened is not None
    first, second = opened.messages()
    assert isinstance(first.parts[0], Text)
    assert first.parts[0].text.endswith("all of it")
    call = second.parts[1]
    assert isinstance(call, ToolCall)
    assert (call.raw, str(call.args)) == (CALL.raw, "{'a': Decimal('1.50')}")
    assert second.source is None


def test_the_same_summary_is_never_sealed_alike() -> None:
    seals = SummarySeals(lambda: (b"a secret",))
    assert seals.seal(Summary(text="x"), "me") != seals.seal(Summary(text="x"), "me")


def test_what_is_no_sealed_summary_does_not_open() -> None:
    seals = SummarySeals(lambda: (b"a secret",))
    sealed = seals.seal(Summary(text="x"), "me")
    for wrong in ("", "twc1.", "twc1.%%", "twc1.AAAA", sealed[5:], sealed[:-4], "twc2" + sealed[4:]):
        assert seals.open(wrong, "me") is None
