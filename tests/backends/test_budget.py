from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.backends.cursor.stage import request, user
from toolwire.backends.budget import ConversationBudget, conversation_of
from toolwire.errors import UpstreamError
from toolwire.types import Message, Text, ToolCall, ToolResult


def wait_of(budget: ConversationBudget, now: float, conversation: str = "a") -> int:
    """Seconds that the client is told to wait; 0 where it is let through."""
    try:
        budget.ask(conversation, now)
    except UpstreamError as error:
        return int(error.headers["retry-after"])
    return 0


def test_so_many_requests_a_minute_and_no_more() -> None:
    budget = ConversationBudget(3, 0)
    assert [wait_of(budget, now) for now in (0.0, 10.0, 20.0)] == [0, 0, 0]
    assert wait_of(budget, 30.0) == 30
    assert wait_of(budget, 59.9) == 1
    assert wait_of(budget, 60.0) == 0
    assert wait_of(budget, 60.0) == 10
    assert budget.refused == 3


def test_the_refusal_is_a_429_that_says_what_to_do() -> None:
    budget = ConversationBudget(1, 0)
    budget.ask("a", 0.0)
    with pytest.raises(UpstreamError) as caught:
        budget.ask("a", 0.0)
    error = caught.value
    assert (error.status, error.code, error.retryable) == (429, "budget_exceeded", False)
    assert "max_requests_per_minute" in error.sentence()


def test_a_refused_request_does_not_make_the_wait_longer() -> None:
    budget = ConversationBudget(1, 0)
    assert wait_of(budget, 0.0) == 0
    assert [wait_of(budget, now) for now in (1.0, 30.0, 59.0)] == [59, 30, 1]
    assert wait_of(budget, 60.0) == 0


def test_so_many_tokens_a_minute_and_no_more() -> None:
    budget = ConversationBudget(0, 100)
    assert wait_of(budget, 0.0) == 0
    budget.count(budget.account("a"), 60, 1.0)
    assert wait_of(budget, 2.0) == 0
    budget.count(budget.account("a"), 60, 3.0)
    assert wait_of(budget, 4.0) == 57
    assert wait_of(budget, 61.0) == 0


def test_conversations_do_not_share_a_budget_and_zero_is_no_limit() -> None:
    budget = ConversationBudget(1, 0)
    assert [wait_of(budget, 0.0, name) for name in "abc"] == [0, 0, 0]
    unlimited = ConversationBudget(0, 0)
    assert [wait_of(unlimited, 0.0) for _ in range(1000)] == [0] * 1000


def test_what_is_watched_is_bounded_and_the_most_silent_conversation_is_forgotten_first() -> None:
    budget = ConversationBudget(1, 0)
    for number in range(10_000):
        budget.ask(str(number), 0.0)
    assert len(budget._accounts) <= 4096
    assert wait_of(budget, 1.0, "9999") > 0
    assert wait_of(budget, 1.0, "0") == 0


def test_a_first_request_is_no_conversation_yet() -> None:
    budget = ConversationBudget(3, 10)
    first = conversation_of(request("hi"))
    assert first == ""
    for _ in range(200):
        budget.ask(first, 0.0)
        budget.count(budget.account(first), 1000, 0.0)
    assert budget.refused == 0


def test_a_conversation_keeps_its_name_as_it_grows() -> None:
    call = ToolCall(id="call_1", name="look", raw="{}", args={})
    text_in = Message(role="assistant", parts=(call,))
    result = Message(role="tool", parts=(ToolResult(call_id="call_1", parts=(Text(text="x"),)),))
    started = request("hi", text_in, result)
    name = conversation_of(started)
    assert name
    assert conversation_of(request("hi", text_in, result, Message(role="assistant", parts=(Text(text="so"),)))) == name
    assert conversation_of(request("ho", text_in, result)) != name
    assert conversation_of(replace(started, owner="b")) != name
    assert conversation_of(replace(started, model="m")) != name
    other = Message(role="assistant", parts=(replace(call, id="call_2"),))
    assert conversation_of(request("hi", other, user("x"))) != name


@pytest.mark.parametrize("tokens", [0, -5])
def test_an_answer_that_cost_nothing_is_not_counted(tokens: int) -> None:
    budget = ConversationBudget(0, 1)
    budget.count(budget.account("a"), tokens, 0.0)
    assert wait_of(budget, 0.0) == 0
