"""Losses in the same words everywhere."""

from __future__ import annotations

from toolwire.dialects.foreign import foreign_members, lose_thinking, whole_schema
from toolwire.types import Loss, Reasoning, Request


def test_only_members_that_mean_something_are_lost() -> None:
    losses: list[Loss] = []
    members = {"logit_bias": {"1": 1}, "store": True, "modalities": None, "functions": [], "audio": {}, "x" * 99: 1}
    request = Request(model="m", messages=(), extra={"chat": members, "messages": {"container": "own"}})
    foreign_members(request, "messages", losses)
    assert losses == [
        Loss("request.logit_bias", "logit_bias", "messages has no such member"),
        Loss("request." + "x" * 60, "x" * 60, "messages has no such member"),
    ]


def test_H076_thoughts_of_others_are_never_rewritten() -> None:
    losses: list[Loss] = []
    lose_thinking(Reasoning(text="hm"), "messages[3]", losses)
    assert losses == [Loss("reasoning", "messages[3]", "reasoning of another dialect cannot be handed on")]


def test_a_schema_says_that_it_is_an_object() -> None:
    assert whole_schema(None) == whole_schema({}) == {"type": "object", "properties": {}}
    assert whole_schema({"required": ["a"]}) == {"type": "object", "properties": {}, "required": ["a"]}
    kept = {"type": "object"}
    assert whole_schema(kept) is kept
