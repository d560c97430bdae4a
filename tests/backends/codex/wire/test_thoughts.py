"""Reasoning: parts in their order, each ended once, and proofs with the item that they belong to."""

from __future__ import annotations

from toolwire.backends.codex.wire.thoughts import CodexReasoning
from toolwire.dialects.shared.answer_in import Assembly
from toolwire.events import Event, PartEnded
from toolwire.types import Reasoning


def parts(events: list[Event]) -> list[tuple[str, str, bool, str | None]]:
    found = [event.part for event in events if isinstance(event, PartEnded)]
    return [(p.item_id, p.text, p.is_summary, p.encrypted) for p in found if isinstance(p, Reasoning)]


def test_a_part_ends_where_the_next_begins_and_the_last_waits() -> None:
    thoughts = CodexReasoning(Assembly())
    events = thoughts.grow("r", "summary", 0, "a") + thoughts.grow("r", "summary", 1, "b")
    assert parts(events) == [("r", "a", True, None)]
    assert thoughts.complete("r", {"summary": ["a", "b"]}) == []
    assert parts(thoughts.prove("r", "proof")) == [("r", "b", True, "proof")]
    assert thoughts.end() == []


def test_without_a_raw_item_the_last_part_ends_with_what_follows() -> None:
    thoughts = CodexReasoning(Assembly())
    events = thoughts.grow("r", "thought", 0, "a") + thoughts.complete("r", {})
    assert parts(events + thoughts.end()) == [("r", "a", False, None)]


def test_a_proof_never_goes_to_another_item() -> None:
    thoughts = CodexReasoning(Assembly())
    thoughts.grow("r", "summary", 0, "a")
    thoughts.complete("r", {})
    events = thoughts.grow("s", "summary", 0, "b")
    assert parts(events + thoughts.prove("r", "proof of r")) == [("r", "a", True, None), ("s", "b", True, None)]


def test_a_proof_alone_is_a_part() -> None:
    thoughts = CodexReasoning(Assembly())
    assert thoughts.complete("r", {"summary": []}) == []
    assert parts(thoughts.prove("r", "proof")) == [("r", "", True, "proof")]
    assert thoughts.grow("r", "summary", 0, "late") == []


def test_an_item_without_text_and_proof_is_nothing() -> None:
    thoughts = CodexReasoning(Assembly())
    assert thoughts.complete("r", {"summary": None}) + thoughts.prove("r", None) == []


def test_a_proof_that_names_no_item_belongs_to_the_one_that_waits() -> None:
    thoughts = CodexReasoning(Assembly())
    thoughts.grow("r", "summary", 0, "a")
    thoughts.complete("r", {})
    assert parts(thoughts.prove("", "proof")) == [("r", "a", True, "proof")]
    assert parts(thoughts.prove("", "another")) == [("", "", True, "another")]
