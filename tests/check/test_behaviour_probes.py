from __future__ import annotations

import pytest

from tests.check.damages import check_damaged, faults_of, ignore_none


@pytest.mark.slow
def test_a_tool_choice_without_effect_is_a_fault(good: str) -> None:
    assert "choice.ignored" in faults_of(good, "chat", ignore_none)


@pytest.mark.slow
def test_decisions_to_call_are_compared_with_the_labels(good: str) -> None:
    decision = check_damaged(good, "chat", lambda answer: None).decision
    assert decision is not None
    assert decision.right_calls + decision.missed_calls + decision.extra_calls + decision.right_texts == 6
    assert 0.5 <= decision.f1 <= 1.0
