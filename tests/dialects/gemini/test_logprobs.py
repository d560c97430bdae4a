"""Gemini: log probabilities both ways."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.playing import answer_in, body_out, events_in, frames, out
from tests.dialects.wires import sse
from toolwire.dialects.gemini.logprobs import logprobs_in, logprobs_out
from toolwire.types import Text

RESULT = {
    "chosenCandidates": [{"token": "Hi", "logProbability": -0.5}, {"token": "!", "logProbability": 0}],
    "topCandidates": [
        {"candidates": [{"token": "Hi", "logProbability": -0.5}, {"token": "Yo", "logProbability": -2}]},
        {"candidates": []},
    ],
}


def test_two_lists_are_one_and_two_again() -> None:
    entries = logprobs_in({**RESULT, "logProbabilitySum": -1})
    assert entries[0]["token"] == "Hi"
    assert [one["token"] for one in entries[0]["top_logprobs"]] == ["Hi", "Yo"]
    assert entries[1] == {"token": "!", "logprob": 0, "bytes": None, "top_logprobs": []}
    assert logprobs_out(entries) == {"logprobsResult": RESULT}


@pytest.mark.parametrize(
    "odd", [None, 1, {}, {"chosenCandidates": 1}, {"chosenCandidates": [1, {}], "topCandidates": [1]}]
)
def test_what_is_none_is_none(odd: Any) -> None:
    assert logprobs_in(odd) == ()
    assert logprobs_out(()) == {}
    assert logprobs_out([1]) == {}


def test_they_come_with_their_text_and_leave_with_it() -> None:
    content = {"content": {"parts": [{"text": "Hi!"}], "role": "model"}, "finishReason": "STOP", "index": 0}
    wire = sse({"candidates": [{**content, "logprobsResult": RESULT}], "usageMetadata": {"promptTokenCount": 1}})
    (part,) = answer_in("gemini", wire).parts_of(0)
    assert isinstance(part, Text)
    assert [entry["token"] for entry in part.logprobs or ()] == ["Hi", "!"]
    events = events_in("gemini", wire)
    assert body_out("gemini", events)["candidates"][0]["logprobsResult"] == RESULT
    first = frames(out("gemini", events))[0][1]["candidates"][0]
    assert (first["content"]["parts"], first["logprobsResult"]) == ([{"text": "Hi!"}], RESULT)
    chat = body_out("chat", events)["choices"][0]["logprobs"]["content"]
    assert [entry["token"] for entry in chat] == ["Hi", "!"]


def test_a_signed_text_leaves_once_with_both() -> None:
    part = {"text": "Hi!", "thoughtSignature": "QQ=="}
    content = {"content": {"parts": [part], "role": "model"}, "finishReason": "STOP", "logprobsResult": RESULT}
    events = events_in("gemini", sse({"candidates": [content], "usageMetadata": {"promptTokenCount": 1}}))
    said = [value["candidates"][0] for _, value in frames(out("gemini", events))]
    assert [one["content"]["parts"] for one in said] == [[part], [{"text": ""}]]
    assert said[0]["logprobsResult"] == RESULT
