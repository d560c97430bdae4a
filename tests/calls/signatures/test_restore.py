"""Thoughts go back to where they stood, or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.calls.telling import assistant, call, result, tool, user
from toolwire.calls.signatures.entries import Needs, Secrets, lacking, secrets_of
from toolwire.calls.signatures.restore import restored
from toolwire.types import Message, Opaque, Part, Reasoning, Text, ToolCall

MESSAGES = Needs(dialect="messages", proofs=("signature", "redacted"))
CHAT = Needs(dialect="chat", proofs=("text",), has_members=True)
ONE = Reasoning(text="one", signature="1")
TWO = Reasoning(text="two", signature="2")
HIDDEN = Reasoning(text="", redacted="x")
RAN = Opaque(dialect="messages", value={"type": "server_tool_use"})


def said(*parts: Any) -> tuple[Part, ...]:
    return tuple(Text(text=part) if isinstance(part, str) else part for part in parts)


def brought_back(
    turn: tuple[Part, ...], *messages: Message, needs: Needs = MESSAGES, is_run: bool = False
) -> tuple[Message, ...]:
    """The client's turn after a way through the vault; if nothing was put back it is the same object."""
    secrets = secrets_of(turn, needs, str)
    assert secrets is not None
    history = (user("hi"), *messages, *(tool(result(part.id)) for part in turn if isinstance(part, ToolCall)))
    whole, turns = restored(history, [(span, secrets) for span in lacking(history, needs)], str, is_run=is_run)
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
    secrets = secrets_of(said(ONE, call("a")), MESSAGES, str)
    assert isinstance(secrets, Secrets)
    history = (user("x"), assistant(call("b")), tool(result("b")), assistant(call("a")), tool(result("a")), user("y"))
    found = [(span, secrets) for span in lacking(history, MESSAGES)]
    whole, turns_back = restored(history, found, str, is_run=False)
    assert turns_back == 1
    assert [one is other for one, other in zip(whole, history, strict=True)] == [True, True, True, False, True, True]
    assert whole[3].parts == (ONE, call("a"))
