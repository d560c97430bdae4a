"""What is remembered of a turn, and which turns lack it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.telling import assistant, call, result, tool, user
from tests.dialects.answers import ARGUMENTS, WORDS
from toolwire.calls.signatures.entries import (
    Needs,
    Secrets,
    Thoughts,
    is_carried,
    lacking,
    packed,
    secrets_of,
    texts_of,
    unpacked,
)
from toolwire.types import Opaque, Part, Reasoning, Refusal, Text
from toolwire.wire.exact_json import decode, encode

MESSAGES = Needs(dialect="messages", proofs=("signature", "redacted"))
RESPONSES = Needs(dialect="responses", proofs=("encrypted",), is_marked=True)
TEXTUAL = Needs(dialect="chat", proofs=("text",), has_members=True)
PLAIN = Needs(dialect="chat", has_members=True)
SIGNED = Reasoning(text="hm", signature="sig")
REDACTED = Reasoning(text="", redacted="zzz")
BARE = Reasoning(text="hm")


def secrets(*parts: Any, needs: Needs = MESSAGES) -> Secrets | None:
    said: list[Part] = [Text(text=part) if isinstance(part, str) else part for part in parts]
    return secrets_of(said, needs, str)


def places(found: Secrets | None) -> list[tuple[int, int, int]]:
    assert found is not None
    return [(group.calls, group.text, len(group.parts)) for group in found.thoughts]


def test_thoughts_with_their_places() -> None:
    found = secrets(SIGNED, "abc", REDACTED, SIGNED, call("a"), SIGNED, call("b"), "x", SIGNED, call("c"))
    assert places(found) == [(0, 0, 1), (0, 3, 2), (1, 0, 1), (2, 1, 1)]


@pytest.mark.parametrize("parts", [(SIGNED, "just text"), (call("a"),), (BARE, call("a")), (call("a"), SIGNED), ()])
def test_turns_that_leave_nothing(parts: tuple[Any, ...]) -> None:
    assert secrets(*parts) is None


def test_H081_a_thought_without_words_is_kept_by_its_signature_whole() -> None:
    signature = "x" * 100_000
    found = secrets(Reasoning(text="", signature=signature), call("a"))
    assert found is not None
    assert found.thoughts[0].parts == (Reasoning(text="", signature=signature),)


def test_an_unsigned_thought_beside_a_signed_one_is_left_out() -> None:
    found = secrets(BARE, SIGNED, call("a"))
    assert found is not None
    assert found.thoughts[0].parts == (SIGNED,)


def test_H083_all_parts_of_an_item_go_with_its_proof() -> None:
    first = Reasoning(text="a", item_id="rs_1", is_summary=True, extra={"responses": {}})
    last = Reasoning(text="b", item_id="rs_1", is_summary=True, encrypted="enc", extra={"responses": {}})
    other = Reasoning(text="c", item_id="rs_2", is_summary=True, extra={"responses": {}})
    found = secrets(first, last, other, call("a"), needs=RESPONSES)
    assert found is not None
    assert found.thoughts[0].parts == (first, last)


def test_H082_words_are_enough_for_who_takes_words() -> None:
    assert places(secrets(BARE, call("a"), needs=TEXTUAL)) == [(0, 0, 1)]
    assert secrets(BARE, call("a"), needs=PLAIN) is None


def test_H074_members_of_calls_are_kept_where_they_are_proof() -> None:
    signed = call("a", extra={"chat": {"extra_content": {"google": {"thought_signature": "s"}}}})
    found = secrets(signed, call("b"), needs=PLAIN)
    assert found is not None
    assert found.members == (signed.extra["chat"], {})
    assert secrets(call("a", extra={"messages": {"caller": {"type": "direct"}}})) is None


def test_H080_the_providers_own_tools_stay_between_thoughts() -> None:
    ran = Opaque(dialect="messages", value={"type": "server_tool_use"})
    found = secrets(SIGNED, ran, SIGNED, call("a"))
    assert found is not None
    assert found.thoughts == (Thoughts(parts=(SIGNED, ran, SIGNED)),)
    assert secrets(ran, call("a")) is None


def test_H080_what_was_thought_before_the_gateway_searched_was_another_turn() -> None:
    other = Reasoning(text="then", signature="2")
    found = secrets(SIGNED, Opaque(dialect="responses", value={"type": "web_search_call"}), other, call("a"))
    assert found is not None
    assert found.thoughts == (Thoughts(parts=(other,)),)


def test_an_empty_text_parts_nothing() -> None:
    assert places(secrets(SIGNED, "", SIGNED, call("a"))) == [(0, 0, 2)]


def test_texts_stand_before_their_calls() -> None:
    parts: list[Part] = [Text(text="a"), Refusal(text="b"), call("1"), call("2"), Text(text="c")]
    assert texts_of(parts) == ["ab", "", "c"]


def on_the_wire(value: Any) -> Any:
    return decode(encode(value))


@given(
    st.lists(
        st.builds(
            Thoughts,
            parts=st.lists(
                st.builds(
                    Reasoning,
                    text=WORDS,
                    signature=st.none() | WORDS,
                    redacted=st.none() | WORDS,
                    encrypted=st.none() | WORDS,
                    is_summary=st.booleans(),
                    extra=st.sampled_from([{}, {"chat": {}}]),
                )
                | st.builds(Opaque, dialect=st.just("messages"), value=ARGUMENTS.map(on_the_wire)),
                min_size=1,
                max_size=3,
            ).map(tuple),
            calls=st.integers(0, 3),
            text=st.integers(0, 3),
        ),
        max_size=3,
    ).map(tuple)
)
def test_what_is_packed_comes_back(thoughts: tuple[Thoughts, ...]) -> None:
    given_one = Secrets(turn="t", dialect="d", texts=("", "x"), thoughts=thoughts, members=({"n": Decimal("1.50")}, {}))
    back = unpacked(packed(given_one))
    assert back is not None
    assert back == given_one
    assert str(back.members[0]["n"]) == "1.50"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"turn": 5, "dialect": ""}', b'{"thoughts": []}', b"\xff"])
def test_H076_what_is_damaged_is_nothing(data: bytes) -> None:
    assert unpacked(data) is None


def spans(*messages: Any, needs: Needs = MESSAGES) -> list[tuple[int, int, bool]]:
    return [(span.start, span.end, span.is_thinking) for span in lacking(messages, needs)]


def test_turns_that_lack_their_reasoning() -> None:
    history = [
        user("hi"),
        assistant("I look", call("a")),
        tool(result("a")),
        assistant(SIGNED, call("b")),
        tool(result("b")),
        assistant("no call"),
        user("and"),
        assistant("a run"),
        assistant(call("c")),
        assistant(call("d")),
        tool(result("c")),
        assistant(BARE, call("e")),
    ]
    assert spans(*history) == [(1, 2, False), (7, 10, False), (11, 12, False)]
    assert [[call.id for call in span.calls] for span in lacking(history, MESSAGES)] == [["a"], ["c", "d"], ["e"]]


def test_who_takes_words_takes_anybodys_but_marked_ones_only_its_own() -> None:
    assert spans(assistant(BARE, call("a", extra={"chat": {"x": 1}})), needs=TEXTUAL) == []
    marked = Needs(dialect="responses", proofs=("encrypted", "text"), is_marked=True)
    assert spans(assistant(BARE, call("a")), needs=marked) == [(0, 1, False)]
    assert spans(assistant(Reasoning(text="x", extra={"responses": {}}), call("a")), needs=marked) == []


def test_a_thinking_turn_may_lack_members_of_its_calls() -> None:
    assert spans(assistant(BARE, call("a")), needs=TEXTUAL) == [(0, 1, True)]


def test_a_history_without_calls_lacks_nothing() -> None:
    assert spans(user("hi"), assistant("yes"), user("so")) == []


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("hi")], False),
        ([user("hi"), assistant(call("a")), tool(result("a"))], False),
        ([user("hi"), assistant(SIGNED, call("a")), tool(result("a"))], True),
        ([user("hi"), assistant(SIGNED), assistant(call("a")), tool(result("a"))], True),
        ([assistant(SIGNED, call("a")), tool(result("a")), assistant(call("b")), tool(result("b"))], False),
        ([assistant(SIGNED, call("a")), tool(result("a")), assistant("done"), user("x")], True),
        ([assistant(BARE, call("a")), tool(result("a"))], False),
    ],
)
def test_whether_a_client_carries_its_reasoning(messages: list[Any], expected: bool) -> None:
    assert is_carried(messages, MESSAGES) is expected
