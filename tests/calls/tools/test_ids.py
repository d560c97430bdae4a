"""Ids that a back end takes: pairs stay pairs, others stay apart, and what was sent before is sent again to the byte."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.calls.ledger.repair import settle
from toolwire.calls.tools.ids import fit_ids, ids_in
from toolwire.profiles import CHAT_IDS, KIMI_IDS, MESSAGES_IDS, MISTRAL_IDS, OPENAI_IDS, RESPONSES_IDS, IdRule
from toolwire.types import Message, Opaque, Request, Source, Text, ToolCall, ToolResult

pytestmark = pytest.mark.slow

RULES = [CHAT_IDS, OPENAI_IDS, RESPONSES_IDS, MESSAGES_IDS, MISTRAL_IDS]
ODD = [IdRule(letters="base62"), IdRule(letters="word", longest=20), IdRule(length=30), IdRule(letters="word")]
FOREIGN = [
    "functions.Bash:0",
    "portkey-" + "0f" * 18,
    "ws_" + "a" * 48,
    "call_" + "x" * 78,
    "é" * 20,
    "a b",
    "\ud800",
    "abcDEF123",
    "",
    "call_1",
    "sig__thought__" + "A+/=" * 30,
]

one_id = st.sampled_from(FOREIGN) | st.text(min_size=1, max_size=70) | st.text("abc123_-", min_size=1, max_size=10)
entry = st.tuples(st.booleans(), one_id)
history = st.lists(entry, max_size=12)


def call(call_id: str, name: str = "f", **members: object) -> ToolCall:
    return ToolCall(id=call_id, name=name, raw="{}", args={}, **members)  # type: ignore[arg-type]


def result(call_id: str) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text="ok"),))


def talk(entries: Iterable[tuple[bool, str]]) -> tuple[Message, ...]:
    """A history that may be anything: results before calls, without calls, twice."""
    return tuple(
        Message(role="assistant", parts=(Text(text="t"), call(call_id)), source=Source("chat", {"id": call_id}))
        if is_call
        else Message(role="tool", parts=(result(call_id),), source=Source("chat", {"tool_call_id": call_id}))
        for is_call, call_id in entries
    )


def exchange(*ids: str, name: str = "f") -> tuple[Message, ...]:
    messages = [Message(role="user", parts=(Text(text="go"),))]
    for call_id in ids:
        messages.append(Message(role="assistant", parts=(call(call_id, name),)))
        messages.append(Message(role="tool", parts=(result(call_id),)))
    return tuple(messages)


def listed(messages: tuple[Message, ...]) -> list[str]:
    parts = [part for message in messages for part in message.parts]
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for part in parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def mapped(entries: Iterable[tuple[bool, str]], rule: IdRule) -> dict[str, str]:
    messages = talk(entries)
    return dict(zip(listed(messages), listed(fit_ids(messages, rule)), strict=True))


def is_legal(call_id: str, rule: IdRule) -> bool:
    """By other means than the code under test."""
    if rule.kept and rule.kept in call_id:
        return True
    letters = {"any": r"[\s\S]", "word": "[a-zA-Z0-9_-]", "base62": "[a-zA-Z0-9]"}[rule.letters]
    size = f"{{{rule.length}}}" if rule.length else f"{{1,{rule.longest or ''}}}"
    return re.fullmatch(letters + size, call_id) is not None


@settings(max_examples=250)
@given(st.sampled_from([*RULES, *ODD]), history)
def test_H043_H044_H045_H046_calls_and_results_get_the_same_legal_id_and_different_ones_stay_apart(
    rule: IdRule, entries: list[tuple[bool, str]]
) -> None:
    before, after = listed(talk(entries)), listed(fit_ids(talk(entries), rule))
    pairs = set(zip(before, after, strict=True))
    assert len(pairs) == len(set(before)) == len(set(after))
    assert all(is_legal(call_id, rule) for call_id in after)


@settings(max_examples=250)
@given(st.sampled_from([*RULES, *ODD]), history, history)
def test_what_comes_later_never_changes_what_was_sent(
    rule: IdRule, entries: list[tuple[bool, str]], more: list[tuple[bool, str]]
) -> None:
    short, long = fit_ids(talk(entries), rule), fit_ids(talk([*entries, *more]), rule)
    assert long[: len(entries)] == short


@settings(max_examples=250)
@given(st.sampled_from([*RULES, *ODD, KIMI_IDS]), history)
def test_fitting_again_changes_nothing(rule: IdRule, entries: list[tuple[bool, str]]) -> None:
    once = fit_ids(talk(entries), rule)
    assert fit_ids(once, rule) is once
    assert fit_ids(talk(entries), rule) == once


@pytest.mark.parametrize(
    ("rule", "call_id"),
    [
        (CHAT_IDS, "functions.Bash:0"),
        (CHAT_IDS, "x" * 40),
        (CHAT_IDS, "call_1__thought__" + "A+/=" * 100),
        (RESPONSES_IDS, "ä" * 64),
        (MESSAGES_IDS, "toolu_01A-b"),
        (MESSAGES_IDS, "x" * 64),
        (MISTRAL_IDS, "abcDEF123"),
        (KIMI_IDS, "functions.f:0"),
        (IdRule(), "anything at all: " * 50),
    ],
)
def test_legal_ids_leave_the_same_object(rule: IdRule, call_id: str) -> None:
    messages = exchange(call_id)
    assert fit_ids(messages, rule) is messages
    assert fit_ids(messages, rule, ids_in(messages)) is messages


@pytest.mark.parametrize("rule", [*RULES, KIMI_IDS])
def test_a_conversation_without_calls_stays_the_same_object(rule: IdRule) -> None:
    messages = (Message(role="user", parts=(Text(text="hi"), Opaque(dialect="x", value={"id": "a b"}))),)
    assert fit_ids(messages, rule) is messages
    assert fit_ids(messages, rule, frozenset()) is messages


def test_H043_foreign_ids_are_told_alike_to_call_and_result_and_can_be_found_again() -> None:
    messages = fit_ids(exchange("functions.Bash:0"), MESSAGES_IDS)
    first, second = listed(messages)
    assert first == second
    assert first.startswith("functions_Bash_0_")


def test_H045_a_long_id_is_mapped_and_a_thought_in_an_id_is_left_to_who_reads_it() -> None:
    long, thought = "call_" + "x" * 78, "call_1__thought__" + "A+/=" * 30
    fitted = listed(fit_ids(exchange(long, thought), CHAT_IDS))
    assert [len(call_id) for call_id in fitted[:2]] == [40, 40]
    assert fitted[2:] == [thought, thought]
    assert listed(fit_ids(exchange(thought), OPENAI_IDS))[0] != thought


def test_H046_H047_mistral_gets_nine_letters_whoever_made_the_ids() -> None:
    fitted = listed(fit_ids(exchange("call_abc", "0f8fad5b-d9cb-469f-a165-70867728950e", "D681PevKs"), MISTRAL_IDS))
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call_id) for call_id in fitted)
    assert fitted[4] == "D681PevKs"


def test_H048_an_id_used_again_is_another_call_by_the_time_it_is_mapped() -> None:
    messages = exchange("call_0", "call_0", "call_0")
    settled = settle(Request(model="m", messages=messages)).request.messages
    fitted = listed(fit_ids(settled, MISTRAL_IDS))
    assert fitted[::2] == fitted[1::2]
    assert len(set(fitted)) == 3


@pytest.mark.parametrize("rule", [MESSAGES_IDS, MISTRAL_IDS, CHAT_IDS])
def test_a_legal_id_that_was_given_to_another_call_already_is_mapped_itself(rule: IdRule) -> None:
    foreign = "a b" * 30
    taken = mapped([(True, foreign)], rule)[foreign]
    later = mapped([(True, foreign), (False, foreign), (True, taken), (False, taken)], rule)
    assert later[foreign] == taken
    assert later[taken] != taken
    assert is_legal(later[taken], rule)


@pytest.mark.parametrize("rule", [MESSAGES_IDS, MISTRAL_IDS, CHAT_IDS])
def test_an_id_whose_place_is_taken_from_the_start_tries_on(rule: IdRule) -> None:
    foreign = "a b" * 30
    entries, made = [], mapped([(True, foreign)], rule)[foreign]
    for _ in range(5):  # each of them legal, there first, and what the foreign one would have become
        entries.append((True, made))
        made = mapped([*entries, (True, foreign)], rule)[foreign]
        assert made not in {call_id for _, call_id in entries}
    found = mapped([*entries, (True, foreign)], rule)
    assert all(found[call_id] == call_id for _, call_id in entries)
    assert is_legal(found[foreign], rule)


def test_ids_are_given_in_the_order_of_parts_within_a_message_too() -> None:
    both = Message(role="assistant", parts=(call("a b"), call("functions.c:1")))
    alone = fit_ids((Message(role="assistant", parts=(call("a b"),)),), MESSAGES_IDS)
    assert listed(fit_ids((both,), MESSAGES_IDS))[0] == listed(alone)[0]


def test_a_changed_message_has_no_source_and_the_others_keep_theirs() -> None:
    messages = talk([(True, "a b"), (True, "fine"), (False, "a b"), (False, "fine")])
    fitted = fit_ids(messages, MESSAGES_IDS)
    assert [message.source is None for message in fitted] == [True, False, True, False]
    assert fitted[1] is messages[1]
    assert fitted[0].parts[0] is messages[0].parts[0]


def test_item_ids_stay_and_what_only_a_source_can_tell_becomes_a_function() -> None:
    long = "c" * 90
    messages = (
        Message(role="assistant", parts=(call(long, item_id="fc_" + "1" * 80),)),
        Message(role="assistant", parts=(call(long + "t", kind="typed", item_id="lsh_1"),)),
        Message(role="tool", parts=(ToolResult(call_id=long + "t", parts=(), kind="typed"),)),
        Message(role="assistant", parts=(call(long + "c", kind="custom"),)),
    )
    first, typed, told, custom = (message.parts[0] for message in fit_ids(messages, RESPONSES_IDS))
    assert isinstance(first, ToolCall)
    assert first.item_id == "fc_" + "1" * 80
    assert isinstance(typed, ToolCall)
    assert (typed.kind, typed.item_id) == ("function", "")
    assert isinstance(told, ToolResult)
    assert (told.kind, told.call_id) == ("function", typed.id)
    assert isinstance(custom, ToolCall)
    assert custom.kind == "custom"


def test_H118_H119_ids_tell_the_tool_and_the_number_of_the_call_whatever_they_were() -> None:
    messages = (
        Message(role="user", parts=(Text(text="go"),)),
        Message(role="assistant", parts=(call("functions.read:4", "read"), call("toolu_1", "bash"))),
        Message(role="tool", parts=(result("functions.read:4"), result("toolu_1"))),
        Message(role="assistant", parts=(call("functions.bash:1", "read"),)),
        Message(role="tool", parts=(result("functions.bash:1"),)),
    )
    assert listed(fit_ids(messages, KIMI_IDS)) == [
        "functions.read:0",
        "functions.bash:1",
        "functions.read:0",
        "functions.bash:1",
        "functions.read:2",
        "functions.read:2",
    ]


def test_H118_numbers_go_on_over_the_conversation_and_never_change() -> None:
    ids = [f"call_{number}" for number in range(30)]
    long = listed(fit_ids(exchange(*ids, name="a_b"), KIMI_IDS))
    assert long[::2] == long[1::2] == [f"functions.a_b:{number}" for number in range(30)]
    for cut in range(30):
        assert listed(fit_ids(exchange(*ids[:cut], name="a_b"), KIMI_IDS)) == long[: 2 * cut]


def test_H048_H118_a_result_follows_the_last_call_of_its_id() -> None:
    assert listed(fit_ids(exchange("call_0", "call_0"), KIMI_IDS)) == [
        "functions.f:0",
        "functions.f:0",
        "functions.f:1",
        "functions.f:1",
    ]
    early = talk([(False, "x"), (True, "x")])
    assert listed(fit_ids(early, KIMI_IDS)) == ["functions.f:0", "functions.f:0"]


@given(history)
def test_H118_numbered_ids_are_given_to_calls_alone(entries: list[tuple[bool, str]]) -> None:
    messages = talk(entries)
    fitted = listed(fit_ids(messages, KIMI_IDS))
    numbered = [call_id for (is_call, _), call_id in zip(entries, fitted, strict=True) if is_call]
    assert numbered == [f"functions.f:{number}" for number in range(len(numbered))]
    called = {call_id for is_call, call_id in entries if is_call}
    for (is_call, before), after in zip(entries, fitted, strict=True):
        assert is_call or (after in numbered) == (before in called)


def test_a_result_without_a_call_is_not_taken_for_one_that_is_there() -> None:
    messages = talk([(False, "functions.f:0"), (False, "lost"), (True, "a"), (False, "a")])
    stray, lost, *rest = listed(fit_ids(messages, KIMI_IDS))
    assert stray.startswith("call_")
    assert lost == "lost"
    assert rest == ["functions.f:0", "functions.f:0"]


def test_a_thousand_legal_ids_cost_next_to_nothing_and_hostile_ones_cost_in_proportion() -> None:
    legal, hostile = (
        exchange(*(f"toolu_{n:020d}" for n in range(1000))),
        exchange(*(f"{n} " * 2000 for n in range(500))),
    )
    started = time.process_time()
    for _ in range(20):
        fit_ids(legal, MESSAGES_IDS)
    fit_ids(hostile, MESSAGES_IDS)
    assert time.process_time() - started < 1.0
