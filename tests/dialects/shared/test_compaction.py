"""Summaries in a history, of either dialect."""

from __future__ import annotations

from toolwire.dialects.shared.compaction import FoundSummary, found_summary, is_trigger
from toolwire.types import Opaque, Text


def test_a_summary_is_found_by_its_type() -> None:
    item = Opaque(dialect="responses", value={"type": "compaction", "encrypted_content": "twc1.x"})
    assert found_summary(item) == FoundSummary("twc1.x", "")
    assert FoundSummary("twc1.x", "").is_ours
    block = Opaque(dialect="messages", value={"type": "compaction", "content": "text", "encrypted_content": "of them"})
    assert found_summary(block) == FoundSummary("of them", "text")
    assert not FoundSummary("of them", "text").is_ours
    assert found_summary(Text(text="compaction")) is None


def test_a_failed_compaction_is_void() -> None:
    found = found_summary(Opaque(dialect="messages", value={"type": "compaction", "content": None}))
    assert found is not None
    assert found.is_void


def test_a_trigger_is_found_by_its_type() -> None:
    assert is_trigger(Opaque(dialect="responses", value={"type": "compaction_trigger"}))
    assert not is_trigger(Text(text="compaction_trigger"))
