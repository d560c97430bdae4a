from __future__ import annotations

import pytest

from toolwire.check.questions import LABELLED, RESULT, RESULT_MARK, WEATHER, ask, with_results
from toolwire.dialects import DIALECTS
from toolwire.profiles import PLAIN


def test_half_of_the_questions_need_a_call() -> None:
    assert sum(question.needs_call for question in LABELLED) == len(LABELLED) / 2
    assert len({question.text for question in LABELLED}) == len(LABELLED)


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "gemini"])
def test_every_dialect_encodes_calls_and_results_without_a_loss(dialect: str) -> None:
    request = with_results(ask("m", "What is the weather?", (WEATHER,)), (("get_weather", {"city": "Oslo"}, RESULT),))
    encoded = DIALECTS[dialect].encode_request(request, PLAIN)
    assert not encoded.losses
    assert RESULT_MARK in encoded.body.decode()
