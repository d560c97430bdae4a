"""What one answer may cost, with what is done for it here."""

from __future__ import annotations

import pytest

from toolwire.backends.budget import ConversationBudget
from toolwire.backends.cursor.allowance import MAX_DECLINED, MAX_DECLINED_WITHOUT_TOOLS, MAX_LOCAL, Allowance, Runaway
from toolwire.errors import UpstreamError


def rounds(allowance: Allowance, pause: float, most: int = 10_000, tokens: int = 0, declined: int = 0) -> int:
    """How many rounds, so many seconds apart, it takes until one is refused."""
    for number in range(most):
        try:
            allowance.check_round(declined, 1 - declined, number * pause)
        except UpstreamError:
            return number
        allowance.count_context(tokens, number * pause)
        allowance.count_context(tokens, number * pause)
    return most


def test_a_round_that_is_answered_here_counts_as_a_request() -> None:
    budget = ConversationBudget(5, 0)
    budget.ask("a", 0.0)
    assert rounds(Allowance(budget, "a"), 1.0) == 4
    with pytest.raises(UpstreamError):
        budget.ask("a", 5.0)
    budget.ask("b", 5.0)


def test_a_conversation_without_a_name_has_a_budget_of_its_own() -> None:
    budget = ConversationBudget(5, 0)
    assert rounds(Allowance(budget), 1.0) == 5
    assert rounds(Allowance(budget), 1.0) == 5


def test_the_context_of_each_round_is_counted_once() -> None:
    assert rounds(Allowance(ConversationBudget(0, 1000)), 1.0, tokens=300) == 4


def test_what_is_wanted_together_is_one_round() -> None:
    allowance = Allowance(ConversationBudget(2, 0))
    for now in (0.0, 0.01, 0.2, 3.0, 3.2):
        allowance.check_round(0, 1, now)
    with pytest.raises(UpstreamError):
        allowance.check_round(0, 1, 4.0)


def test_the_refusal_says_what_was_too_much() -> None:
    allowance = Allowance(ConversationBudget(0, 0))
    with pytest.raises(UpstreamError) as caught:
        allowance.check_round(MAX_DECLINED + 1, 0, 0.0)
    error = caught.value
    assert (error.status, error.code, error.retryable) == (429, "budget_exceeded", False)
    assert f"{MAX_DECLINED} refused requests" in error.sentence()


def test_an_answer_for_which_nothing_is_offered_has_a_smaller_bound() -> None:
    assert (
        rounds(Allowance(ConversationBudget(0, 0), max_declined=MAX_DECLINED_WITHOUT_TOOLS), 1.0, declined=1)
        == MAX_DECLINED_WITHOUT_TOOLS
    )
    with pytest.raises(Runaway):
        Allowance(ConversationBudget(0, 0), max_declined=1).check_round(2, 0, 0.0)


def test_a_fast_circle_is_several_rounds_all_the_same() -> None:
    assert rounds(Allowance(ConversationBudget(120, 0)), 0.05) * 0.05 < 60


def test_a_long_task_with_tools_of_ours_stays_within_an_ordinary_budget() -> None:
    allowance = Allowance(ConversationBudget(120, 5_000_000), "a")
    for step in range(180):  # ten reads at once every two seconds, on a context of 100,000 tokens
        for number in range(10):
            allowance.check_round(0, 1, step * 2 + number / 50)
        allowance.count_context(100_000, step * 2 + 1)


def test_there_are_bounds_without_a_budget_too() -> None:
    assert rounds(Allowance(ConversationBudget(0, 0)), 1.0, declined=1) == MAX_DECLINED
    assert rounds(Allowance(ConversationBudget(0, 0)), 1.0) == MAX_LOCAL


def test_tokens_of_rounds_are_not_counted_again_at_the_end() -> None:
    budget = ConversationBudget(0, 100)
    allowance = Allowance(budget, "a")
    allowance.check_round(1, 0, 0.0)
    allowance.count_context(60, 0.0)
    allowance.count_answer(90, 0.0)
    budget.ask("a", 1.0)
    allowance = Allowance(budget, "a")
    allowance.count_answer(10, 1.0)
    with pytest.raises(UpstreamError):
        budget.ask("a", 1.0)
