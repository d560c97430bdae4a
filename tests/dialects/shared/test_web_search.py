"""Web searches free of any wire format: how a model is told of them, and earlier ones retold."""

from __future__ import annotations

import pytest

from toolwire.dialects.shared.web_search import (
    PastSearch,
    SearchHit,
    SearchOutcome,
    hits_text,
    outcome_text,
    with_past_searches,
)
from toolwire.types import Message, Opaque, Part, Text, ToolCall, ToolResult

USER = Message(role="user", parts=(Text(text="hi"),))


def past(part: Opaque) -> PastSearch | None:
    """A made-up dialect: its parts have the members of Past."""
    return PastSearch(**part.value) if part.dialect == "own" else None


def part(**value: str) -> Opaque:
    return Opaque(dialect="own", value=value)


def replace_searches(*parts: Part, function: str = "web_search") -> list[Message]:
    messages = with_past_searches((USER, Message(role="assistant", parts=parts)), past, function)
    assert messages[0] is USER
    return list(messages[1:])


def shapes(messages: list[Message]) -> list[tuple[str, list[str]]]:
    return [(message.role, [_shape(part) for part in message.parts]) for message in messages]


def _shape(part: Part) -> str:
    match part:
        case ToolCall():
            return f"call {part.id} {part.raw}"
        case ToolResult():
            return f"result {part.call_id} {_shape(part.parts[0])}"
        case Text():
            return part.text
        case _:
            return "?"


def test_the_prompt_of_a_model() -> None:
    text = outcome_text(SearchOutcome(hits=(SearchHit("T", "https://a.b", "words"), SearchHit("U", "https://c.d"))))
    assert text.splitlines()[2:] == ["1. T", "https://a.b", "words", "", "2. U", "https://c.d"]
    assert outcome_text(SearchOutcome()) == "The search found nothing."
    assert outcome_text(SearchOutcome(fault="unavailable", why="it is down.")) == "The search failed: it is down."


def test_the_prompt_of_a_model_is_bounded() -> None:
    assert len(hits_text([SearchHit("t" * 999, "https://a.b", "s" * 9999)] * 100)) == 64 * 1024


def test_a_conversation_without_searches_stays_the_same() -> None:
    messages = (USER, Message(role="assistant", parts=(Text(text="x"), Opaque(dialect="other", value={}))))
    assert with_past_searches(messages, past, "web_search") is messages


def test_a_search_becomes_a_call_with_its_result() -> None:
    parts = (Text(text="a"), part(id="1", query="q"), part(id="1", found="f"), Text(text="b"))
    assert shapes(replace_searches(*parts)) == [
        ("assistant", ["a", 'call 1 {"query":"q"}']),
        ("tool", ["result 1 f"]),
        ("assistant", ["b"]),
    ]


def test_several_searches_keep_their_order() -> None:
    parts = (part(id="1", query="q"), part(id="2", query="r"), part(id="1", found="f"), part(id="2", found="g"))
    assert shapes(replace_searches(*parts)) == [
        ("assistant", ['call 1 {"query":"q"}', 'call 2 {"query":"r"}']),
        ("tool", ["result 1 f"]),
        ("tool", ["result 2 g"]),
    ]


def test_a_search_without_its_result_is_answered() -> None:
    assert shapes(replace_searches(part(id="1", query="q"), Text(text="b"))) == [
        ("assistant", ['call 1 {"query":"q"}', "b"]),
        ("tool", ["result 1 The results of this search were not stored."]),
    ]


def test_a_result_without_its_search_becomes_text() -> None:
    assert shapes(replace_searches(part(id="1", found="f"))) == [("assistant", ["\n\nf\n"])]


def test_call_and_result_in_one_part() -> None:
    assert shapes(replace_searches(part(id="1", query="q", found="f"))) == [
        ("assistant", ['call 1 {"query":"q"}']),
        ("tool", ["result 1 f"]),
    ]


@pytest.mark.parametrize(
    "parts", [(part(id="1", query="q"), part(id="1", found="f")), (part(id="1", query="q", found="f"),)]
)
def test_words_where_no_function_is_offered(parts: tuple[Opaque, ...]) -> None:
    (message,) = replace_searches(*parts, function="")
    text = "".join(_shape(one) for one in message.parts)
    assert "[Searched the web: q]" in text
    assert "\nf\n" in text
