"""What is remembered of a turn, and which turns lack it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.calls.telling import assistant, call, result, tool, user
from tests.dialects.answers import ARGUMENTS, WORDS
from toolwire.calls.signatures import (
    Leading,
    Needs,
    Secrets,
    ThoughtGroup,
    is_carried,
    is_random,
    pack,
    print_of,
    restore_reasoning,
    secrets_of,
    text_print,
    texts_of,
    turns_without_reasoning,
    unpack,
)
from toolwire.types import Media, Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from toolwire.wire.exact_json import decode, encode, object_of

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
    assert found.thoughts == (ThoughtGroup(parts=(SIGNED, ran, SIGNED)),)
    assert secrets(ran, call("a")) is None


def test_H080_what_was_thought_before_the_gateway_searched_was_another_turn() -> None:
    other = Reasoning(text="then", signature="2")
    found = secrets(SIGNED, Opaque(dialect="responses", value={"type": "web_search_call"}), other, call("a"))
    assert found is not None
    assert found.thoughts == (ThoughtGroup(parts=(other,)),)


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
            ThoughtGroup,
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
def test_what_is_packed_comes_back(thoughts: tuple[ThoughtGroup, ...]) -> None:
    given_one = Secrets(turn="t", dialect="d", texts=("", "x"), thoughts=thoughts, members=({"n": Decimal("1.50")}, {}))
    back = unpack(pack(given_one))
    assert back is not None
    assert back == given_one
    assert str(back.members[0]["n"]) == "1.50"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"turn": 5, "dialect": ""}', b'{"thoughts": []}', b"\xff"])
def test_H076_what_is_damaged_is_nothing(data: bytes) -> None:
    assert unpack(data) is None


def spans(*messages: Any, needs: Needs = MESSAGES) -> list[tuple[int, int, bool]]:
    return [(span.start, span.end, span.is_thinking) for span in turns_without_reasoning(messages, needs)]


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
    assert [[call.id for call in span.calls] for span in turns_without_reasoning(history, MESSAGES)] == [
        ["a"],
        ["c", "d"],
        ["e"],
    ]


def test_a_back_end_takes_any_plain_reasoning_but_only_its_own_marked_one() -> None:
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


def written(raw: str, call_id: str = "a", name: str = "read", kind: str = "function") -> ToolCall:
    return call(call_id, name, raw=raw, args=object_of(raw) if kind == "function" else None, kind=kind)


def seen(*calls: ToolCall) -> str:
    return print_of(calls, lambda call_id: call_id.replace("/", "_"))


@given(ARGUMENTS)
def test_arguments_printed_again_are_the_same(args: dict[str, object]) -> None:
    first = json.dumps(args)
    again = json.dumps(dict(reversed(args.items())), ensure_ascii=False, indent=2)
    assert seen(written(first)) == seen(written(again))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('{"a": 1.0}', '{"a": 1}', True),
        ('{"a": 1e3}', '{"a": 1000}', True),
        ('{"a": 0.10}', '{"a": 0.1}', True),
        ('{"a": "\\u00e9"}', '{"a": "é"}', True),
        ('{"a": "\\ud800"}', '{"a":"\\ud800"}', True),
        ('{"a": 1e400}', '{"a": 1e400}', True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": "x"}', '{"a": "x "}', False),
        ('{"a": 1}', '{"a": 1, "b": null}', False),
        ('{"a": 12345678901234567}', '{"a": 12345678901234568}', False),
        ("{broken", "{broken", True),
        ("{broken", "{Broken", False),
    ],
)
def test_H079_only_what_means_the_same_is_the_same(one: str, other: str, is_same: bool) -> None:
    assert (seen(written(one)) == seen(written(other))) is is_same


def test_H079_ids_names_order_and_number_count() -> None:
    turn = [written("{}", "a"), written("{}", "b")]
    assert seen(*turn) == seen(*turn)
    others = [
        turn[::-1],
        turn[:1],
        [*turn, written("{}", "c")],
        [turn[0], written("{}", "x")],
        [turn[0], written("{}", "b", "write")],
        [written("{}", "a", "rea"), written("d{}", "b")],
    ]
    assert len({seen(*turn), *(seen(*other) for other in others)}) == 1 + len(others)


def test_an_id_that_was_fitted_is_the_same() -> None:
    assert seen(written("{}", "a/1")) == seen(written("{}", "a_1"))


def test_free_text_counts_to_the_letter() -> None:
    assert seen(written("ls", kind="custom")) != seen(written("ls ", kind="custom"))


@pytest.mark.parametrize(
    "raw", ['{"a": ' + "9" * 5000 + "}", '{"a": ' + "[" * 400 + "]" * 400 + "}", '{"a": 1e999999}']
)
def test_hostile_arguments_are_distinguished_quickly(raw: str) -> None:
    began = time.process_time()
    assert seen(written(raw)) == seen(written(raw)) != seen(written("{}"))
    assert time.process_time() - began < 1


def test_an_empty_text_has_no_print() -> None:
    assert text_print("") == ""
    assert len({text_print(text) for text in ("a", "a ", "\ud800")}) == 3


@pytest.mark.parametrize(
    ("call_id", "name", "expected"),
    [
        ("toolu_01A09q90qw90lq917835lq9", "read", True),
        ("call_00_Fd3AzQ81mnLoP2", "read", True),
        ("chatcmpl-tool-4fd1bb9c", "read", False),
        ("chatcmpl-tool-4fd1bb9c2d7e4cc0a5e6", "read", True),
        ("D681PevKs", "read", True),
        ("365174485", "read", True),
        ("call_0", "read", False),
        ("call_000000001", "read", False),
        ("functions.read:0", "read", False),
        ("functions.convert2markdown3:0", "convert2markdown3", False),
        ("convert2markdown3", "convert2markdown3", False),
        ("conversation", "read", False),
        ("", "read", False),
    ],
)
def test_which_ids_are_one_calls_alone(call_id: str, name: str, expected: bool) -> None:
    assert is_random(call_id, name) is expected


def leading(*messages: Message) -> str:
    return Leading(messages).print_of(len(messages))


def test_what_led_to_a_turn() -> None:
    history = [user("hi"), assistant(call("a")), tool(result("a", "x"))]
    same = leading(*history)
    assert leading(*history, assistant("begun")) == same
    assert Leading([*history, assistant("later"), user("more")]).print_of(3) == same
    assert leading(user("hi"), assistant("said otherwise", call("b")), tool(result("a", "x"))) == same
    others = [
        leading(user("hello"), *history[1:]),
        leading(*history[:2], tool(result("a", "y"))),
        leading(*history, user("x")),
        leading(user("hi")),
        leading(user(Media(kind="image", url="u"))),
        leading(),
    ]
    assert len({same, *others}) == 7


def test_the_ends_of_a_long_text_tell_it() -> None:
    middle = "m" * 5000
    assert leading(user("a" + middle + "b")) != leading(user("a" + middle + "c"))
    assert leading(user("a" + middle + "b")) != leading(user("x" + middle + "b"))
    assert leading(user("a" + middle + "b")) != leading(user("a" + middle + "mb"))


def test_no_user_among_many_messages_costs_little() -> None:
    messages = [assistant(Text(text="x")), tool(result("a"))] * 5000
    look = Leading(messages)
    began = time.process_time()
    assert len({look.print_of(number) for number in range(0, 10000, 2)}) == 2
    assert time.process_time() - began < 1


MESSAGES_RESTORE = Needs(dialect="messages", proofs=("signature", "redacted"))
CHAT = Needs(dialect="chat", proofs=("text",), has_members=True)
ONE = Reasoning(text="one", signature="1")
TWO = Reasoning(text="two", signature="2")
HIDDEN = Reasoning(text="", redacted="x")
RAN = Opaque(dialect="messages", value={"type": "server_tool_use"})


def said(*parts: Any) -> tuple[Part, ...]:
    return tuple(Text(text=part) if isinstance(part, str) else part for part in parts)


def brought_back(
    turn: tuple[Part, ...], *messages: Message, needs: Needs = MESSAGES_RESTORE, is_run: bool = False
) -> tuple[Message, ...]:
    """The client's turn after a way through the vault; if nothing was put back it is the same object."""
    secrets = secrets_of(turn, needs, str)
    assert secrets is not None
    history = (user("hi"), *messages, *(tool(result(part.id)) for part in turn if isinstance(part, ToolCall)))
    whole, turns = restore_reasoning(
        history, [(span, secrets) for span in turns_without_reasoning(history, needs)], str, is_run=is_run
    )
    assert (whole is history) == (turns == 0)
    assert turns <= 1
    assert whole[0] is history[0]
    return whole[1 : len(whole) - len(history) + len(messages) + 1]


def parts_of(messages: tuple[Message, ...]) -> list[Part]:
    return [part for message in messages for part in message.parts]


def is_untouched(turn: tuple[Part, ...], *messages: Message, **options: Any) -> bool:
    back = brought_back(turn, *messages, **options)
    return len(back) == len(messages) and all(one is other for one, other in zip(back, messages, strict=True))


def test_H075_thoughts_stand_before_the_calls_again() -> None:
    turn = said(ONE, "I look", call("a"), call("b"))
    (message,) = brought_back(turn, assistant("I look", call("a"), call("b")))
    assert message.parts == turn
    assert message.source is None


def test_a_message_that_gains_nothing_keeps_its_source() -> None:
    turn = said(ONE, "I look", call("a"))
    given_ones = (assistant("I look"), assistant(call("a")))
    back = brought_back(turn, *given_ones, is_run=True)
    assert back[0].parts == (ONE,)
    assert back[1] is given_ones[0]
    assert back[2] is given_ones[1]


def test_H080_interleaved_thoughts_find_their_places_in_joined_text() -> None:
    turn = said(ONE, "first. ", HIDDEN, "then. ", TWO, call("a"), ONE, call("b"))
    (message,) = brought_back(turn, assistant("first. then. ", call("a"), call("b")))
    assert message.parts == turn


def test_H080_the_providers_own_tools_come_back_with_the_thoughts() -> None:
    turn = said(ONE, RAN, TWO, call("a"))
    (message,) = brought_back(turn, assistant(call("a")))
    assert message.parts == turn
    assert is_untouched(turn, assistant(RAN, call("a")))


@pytest.mark.parametrize("text", ["", "edited", "first. "])
def test_H080_thoughts_that_would_come_together_stay_away(text: str) -> None:
    assert is_untouched(said(ONE, "first. ", TWO, call("a")), assistant(*([text] if text else []), call("a"))) is (
        text != "first. "
    )


@pytest.mark.parametrize("text", ["", "cut", "I look at it now."])
def test_words_may_change_where_the_place_is_certain(text: str) -> None:
    own = [text] if text else []
    (message,) = brought_back(said(ONE, TWO, "I look at it.", call("a")), assistant(*own, call("a")))
    assert message.parts == said(ONE, TWO, *own, call("a"))
    (message,) = brought_back(said("I look at it.", ONE, call("a")), assistant(*own, call("a")))
    assert message.parts == said(*own, ONE, call("a"))


EDITS = {
    "arguments": [call("a", raw='{"x":2}', args={"x": 2}), call("b")],
    "name": [call("a", "write", raw='{"x":1}', args={"x": 1}), call("b")],
    "id": [call("a", raw='{"x":1}', args={"x": 1}), call("c")],
    "order": [call("b"), call("a", raw='{"x":1}', args={"x": 1})],
    "one less": [call("a", raw='{"x":1}', args={"x": 1})],
    "one more": [call("a", raw='{"x":1}', args={"x": 1}), call("b"), call("c")],
}


@pytest.mark.parametrize("calls", EDITS.values(), ids=EDITS)
def test_H079_an_edited_turn_gets_nothing(calls: list[ToolCall]) -> None:
    turn = said(ONE, call("a", raw='{"x":1}', args={"x": 1}), call("b"))
    assert is_untouched(turn, assistant(*calls))
    assert not is_untouched(turn, assistant(call("a", raw='{ "x": 1 }', args={"x": 1}), call("b")))


def test_a_client_that_kept_its_reasoning_gets_nothing_added() -> None:
    turn = said(ONE, TWO, call("a"))
    assert is_untouched(turn, assistant(ONE, call("a")))
    assert is_untouched(turn, assistant(ONE, TWO, call("a")))


def test_H076_words_without_their_proof_give_way_to_the_thought() -> None:
    turn = said(ONE, TWO, HIDDEN, call("a"))
    for words in ("onetwo", "one\n\ntwo", ""):
        (message,) = brought_back(turn, assistant(Reasoning(text=words), call("a")))
        assert message.parts == turn


def test_H079_words_that_were_edited_do_not_get_the_proof() -> None:
    assert is_untouched(said(ONE, call("a")), assistant(Reasoning(text="..."), call("a")))


def test_H077_what_was_put_back_is_not_put_back_again() -> None:
    turn = said(ONE, "x", call("a"))
    back = brought_back(turn, assistant("x", call("a")))
    assert is_untouched(turn, *back)


def test_an_item_of_words_alone_is_replaced_as_a_whole() -> None:
    turn = said(ONE, call("a"))
    back = brought_back(turn, assistant(Reasoning(text="one")), assistant(call("a")), is_run=True)
    assert [message.parts for message in back] == [(ONE,), (call("a"),)]


def test_H074_members_of_calls_come_back() -> None:
    proof = {"extra_content": {"google": {"thought_signature": "s"}}}
    turn = said(call("a", extra={"chat": proof}), call("b"))
    (message,) = brought_back(turn, assistant(call("a"), call("b")), needs=CHAT)
    assert message.parts == turn
    assert is_untouched(turn, assistant(*turn), needs=CHAT)
    other = call("a", extra={"chat": {"extra_content": "its own"}, "messages": {"y": 1}})
    assert is_untouched(turn, assistant(other, call("b")), needs=CHAT)


def test_H074_members_come_back_beside_reasoning_that_the_client_kept() -> None:
    thought = Reasoning(text="hm", extra={"chat": {}})
    turn = said(thought, call("a", extra={"chat": {"proof": 1}}))
    (message,) = brought_back(turn, assistant(Reasoning(text="hm"), call("a")), needs=CHAT)
    assert message.parts == (Reasoning(text="hm"), turn[1])
    plain = replace(CHAT, proofs=())
    (message,) = brought_back(turn, assistant(Reasoning(text="hm"), call("a")), needs=plain)
    assert message.parts == (Reasoning(text="hm"), turn[1])


def test_a_client_without_members_keeps_those_of_its_own() -> None:
    turn = said(call("a", extra={"chat": {"proof": 1, "more": 2}}))
    mine = call("a", extra={"chat": {"index": 0, "more": 3}})
    (message,) = brought_back(turn, assistant(mine), needs=replace(CHAT, proofs=()))
    assert message.parts == (call("a", extra={"chat": {"proof": 1, "index": 0, "more": 3}}),)


thoughts = st.sampled_from([ONE, TWO, HIDDEN, RAN])
texts = st.sampled_from(["a", "bb", "ccc"]).map(lambda text: Text(text=text))
pieces = st.lists(thoughts | thoughts | texts, max_size=4)


@st.composite
def turns(draw: st.DrawFn) -> tuple[Part, ...]:
    """Thoughts, texts and calls in any order, a call last; among them at least one thought with proof."""
    parts: list[Part] = [draw(st.sampled_from([ONE, HIDDEN]))]
    for number in range(draw(st.integers(1, 3))):
        parts += [*draw(pieces), call(f"c{number}", extra=draw(st.sampled_from([{}, {"messages": {"caller": 1}}])))]
    start = draw(st.integers(0, 2))
    return (*draw(st.lists(texts, min_size=start, max_size=start)), *parts)


def client_has(turn: Sequence[Part]) -> list[Part]:
    return [
        replace(part, extra={}) if isinstance(part, ToolCall) else part
        for part in turn
        if not isinstance(part, Reasoning | Opaque)
    ]


def joined(parts: list[Part]) -> list[Part]:
    """Texts as one, before the calls: what a client of Chat Completions has."""
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return [*([Text(text=text)] if text else []), *(part for part in parts if isinstance(part, ToolCall))]


def merged(parts: Any) -> list[Part]:
    """Texts that stand beside each other as one."""
    out: list[Part] = []
    for part in parts:
        if isinstance(part, Text) and out and isinstance(out[-1], Text):
            part = Text(text=out.pop().text + part.text)  # type: ignore[union-attr] # the line above says so
        out.append(part)
    return out


@given(turns(), st.booleans())
def test_H075_H080_all_that_a_client_dropped_comes_back_exactly(turn: tuple[Part, ...], is_run: bool) -> None:
    has = client_has(turn)
    given_ones = [assistant(part) for part in has] if is_run else [assistant(*has)]
    assert parts_of(brought_back(turn, *given_ones, is_run=is_run)) == list(turn)


@given(turns(), st.integers(0, 2))
def test_H080_joined_or_shortened_texts_never_bring_thoughts_together(turn: tuple[Part, ...], cut: int) -> None:
    has = joined(client_has(turn))
    if cut and has and isinstance(has[0], Text):
        has = [Text(text=has[0].text[:-1] + "!"), *has[1:]] if cut == 1 else has[1:]
    (message,) = brought_back(turn, assistant(*has))
    back = list(message.parts)
    if back == has:  # they could not be told where they belong
        return
    assert merged(client_has(back)) == merged(has)
    assert groups(back) == groups(turn)
    firsts = [part for part in turn if isinstance(part, ToolCall)]
    if len(firsts) == 1 and not cut:
        assert merged(back) == merged(turn)


def groups(parts: Any) -> list[list[Part]]:
    """Thoughts that stand together."""
    found: list[list[Part]] = [[]]
    for part in parts:
        if isinstance(part, Reasoning | Opaque):
            found[-1].append(part)
        elif found[-1]:
            found.append([])
    return [group for group in found if group]


@given(turns(), st.data())
def test_H079_any_edit_of_a_call_leaves_the_turn_alone(turn: tuple[Part, ...], data: st.DataObject) -> None:
    has = client_has(turn)
    at = data.draw(st.sampled_from([number for number, part in enumerate(has) if isinstance(part, ToolCall)]))
    changed = data.draw(st.sampled_from([{"name": "x"}, {"id": "x"}, {"raw": '{"y":0}', "args": {"y": 0}}]))
    has[at] = replace(has[at], **changed)
    assert is_untouched(turn, assistant(*has))


def test_two_turns_and_only_one_known() -> None:
    secrets = secrets_of(said(ONE, call("a")), MESSAGES_RESTORE, str)
    assert isinstance(secrets, Secrets)
    history = (user("x"), assistant(call("b")), tool(result("b")), assistant(call("a")), tool(result("a")), user("y"))
    found = [(span, secrets) for span in turns_without_reasoning(history, MESSAGES_RESTORE)]
    whole, turns_back = restore_reasoning(history, found, str, is_run=False)
    assert turns_back == 1
    assert [one is other for one, other in zip(whole, history, strict=True)] == [True, True, True, False, True, True]
    assert whole[3].parts == (ONE, call("a"))
