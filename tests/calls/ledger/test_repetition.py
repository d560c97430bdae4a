"""Rounds that repeat themselves: told from the third on, never blocked, never mistaken for waiting."""

from __future__ import annotations

import pytest

from toolwire.calls.ledger.repetition import MOST, count_repeats, with_loop_notices
from toolwire.types import Message, Text, ToolCall, ToolResult


def user(text: str = "do it") -> Message:
    return Message(role="user", parts=(Text(text=text),))


def called(number: int, *results: str, raw: str = '{"a":1}') -> list[Message]:
    """One round: as many calls as results, ids new each time."""
    args = {"a": int(raw[5])}
    calls = tuple(ToolCall(id=f"c{number}_{place}", name="f", raw=raw, args=args) for place in range(len(results)))
    answers = [
        Message(role="tool", parts=(ToolResult(call_id=call.id, parts=(Text(text=text),)),))
        for call, text in zip(calls, results, strict=True)
    ]
    return [Message(role="assistant", parts=calls), *answers]


def notices(messages: tuple[Message, ...]) -> list[int]:
    return [
        place
        for place, message in enumerate(with_loop_notices(messages))
        for part in message.parts
        if isinstance(part, ToolResult) and len(part.parts) > 1
    ]


def test_H137_the_third_round_and_all_after_it_are_reported() -> None:
    messages = (user(), *(message for number in range(5) for message in called(number, "same")))
    assert notices(messages) == [6, 8, 10]
    result = with_loop_notices(messages)[6].parts[0]
    assert isinstance(result, ToolResult)
    assert result.parts[0] == Text(text="same")
    assert isinstance(result.parts[1], Text)
    assert f"the last {MOST} rounds" in result.parts[1].text


def test_H137_what_stands_before_is_the_same_whatever_follows() -> None:
    messages = (user(), *(message for number in range(6) for message in called(number, "same")))
    for end in range(1, len(messages)):
        assert with_loop_notices(messages)[:end] == with_loop_notices(messages[:end])


@pytest.mark.parametrize(
    "rounds",
    [
        [("1",), ("2",), ("3",), ("4",)],
        [("1",), ("1",), ("2",), ("1",), ("1",)],
        [("1",), ("1",)],
        [("1", "1"), ("1",), ("1", "1"), ("1",)],
    ],
)
def test_H138_a_result_that_changes_restarts_the_count(rounds: list[tuple[str, ...]]) -> None:
    messages = (user(), *(message for number, results in enumerate(rounds) for message in called(number, *results)))
    assert with_loop_notices(messages) is messages


def test_H138_other_arguments_or_a_word_of_the_user_restart_it() -> None:
    other = (*called(1, "x"), *called(2, "x"), *called(3, "x", raw='{"a":2}'), *called(4, "x"), *called(5, "x"))
    assert with_loop_notices((user(), *other)) == (user(), *other)
    spoken = (user(), *called(1, "x"), *called(2, "x"), user("again"), *called(3, "x"), *called(4, "x"))
    assert with_loop_notices(spoken) is spoken


def test_parallel_calls_are_one_round() -> None:
    messages = (user(), *(message for number in range(3) for message in called(number, "a", "b")))
    assert notices(messages) == [9]


def test_a_history_without_calls_is_not_touched() -> None:
    messages = (user(), Message(role="assistant", parts=(Text(text="hello"),)), user())
    assert with_loop_notices(messages) is messages


def test_how_often_the_last_round_was_made() -> None:
    same = [message for number in range(4) for message in called(number, "same")]
    assert count_repeats(()) == 0
    assert count_repeats((user(),)) == 0
    assert count_repeats((user(), *called(0, "a"))) == 1
    assert count_repeats((user(), *same)) == 4
    assert count_repeats((user(), *same, *called(9, "other"))) == 1
    assert count_repeats((user(), *same, user("go on"))) == 0
    assert count_repeats((user(), *same, user("go on"), *called(9, "same"))) == 1
    assert count_repeats(tuple(same)) == 4
