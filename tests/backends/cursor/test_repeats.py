from __future__ import annotations

import pytest

from tests.backends.cursor.stage import user
from toolwire.backends.cursor.repeats import Repeats
from toolwire.types import Message, Text, ToolCall, ToolResult

pytestmark = pytest.mark.slow


def call(call_id: str, city: str = "Rome") -> ToolCall:
    return ToolCall(id=call_id, name="look", raw=f'{{"city": "{city}"}}', args={"city": city})


def result(call_id: str, text: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=text),), is_error=is_error)


def turn(made: ToolCall, given: ToolResult) -> list[Message]:
    return [Message(role="assistant", parts=(made,)), Message(role="tool", parts=(given,))]


def test_a_call_with_the_same_arguments_has_the_latest_result() -> None:
    repeats = Repeats([user("hi"), *turn(call("1"), result("1", "old")), *turn(call("2"), result("2", "new"))])
    assert repeats.result(call("3")) == result("2", "new")
    assert repeats.result(call("3", "Paris")) is None
    loss = repeats.loss(call("3"))
    assert loss is not None
    assert (loss.feature, loss.where) == ("repeated_call", "look")
    assert repeats.loss(call("3", "Paris")) is None


def test_arguments_are_the_same_whatever_the_order_of_their_names() -> None:
    made = ToolCall(id="1", name="f", raw='{"a": 1, "b": 2}', args={"a": 1, "b": 2})
    again = ToolCall(id="2", name="f", raw='{"b":2,"a":1}', args={"b": 2, "a": 1})
    repeats = Repeats([user("hi"), *turn(made, result("1", "x"))])
    assert repeats.result(again) is not None


def test_what_failed_may_be_tried_again() -> None:
    repeats = Repeats([user("hi"), *turn(call("1"), result("1", "no", is_error=True))])
    assert repeats.loss(call("2")) is None


def test_when_the_user_has_spoken_everything_may_be_new() -> None:
    before = [user("hi"), *turn(call("1"), result("1", "x"))]
    assert Repeats([*before, user("look again")]).loss(call("2")) is None
    assert Repeats(before).loss(call("2")) is not None


def test_results_that_come_later_are_learned() -> None:
    repeats = Repeats()
    assert repeats.loss(call("1")) is None
    repeats.learn([call("1"), call("2", "Paris")], [result("2", "rain"), result("1", "sun"), result("9", "?")])
    assert repeats.result(call("3")) == result("1", "sun")
    assert repeats.result(call("3", "Paris")) == result("2", "rain")


def test_results_in_messages_of_the_user_are_results() -> None:
    told = Message(role="assistant", parts=(call("1"),))
    repeats = Repeats([user("hi"), told, Message(role="user", parts=(result("1", "x"),))])
    assert repeats.result(call("2")) == result("1", "x")
