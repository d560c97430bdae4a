"""Gemini: shared words."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from tests.dialects.codec_harness import answer_in, body_out, events_in, frames, out
from tests.dialects.upstream_events import sse
from toolwire.dialects.gemini.shapes import (
    FINISH,
    REASONS,
    camel,
    citation_out,
    citations_in,
    logprobs_in,
    logprobs_out,
    name_in,
    name_out,
    plain_name,
    usage_in,
    usage_out,
)
from toolwire.dialects.shared.sealed_reasoning import seal, sealed_in, sealed_out, unseal
from toolwire.types import Citation, Reasoning, Text, Usage


def test_members_may_be_spelled_either_way() -> None:
    given = {"function_call": {"some_arg": 1}, "thought_signature": "s", "text": "t", "x_y": 1}
    assert camel(given) == {"functionCall": {"some_arg": 1}, "thoughtSignature": "s", "text": "t", "x_y": 1}
    plain = {"functionCall": {}}
    assert camel(plain) is plain


@pytest.mark.parametrize("name", ["weather", "_x", "X-y.z:1"])
def test_names_that_begin_well_stay(name: str) -> None:
    assert name_out(name) == name
    assert name_in(name, frozenset()) == name


@pytest.mark.parametrize("name", ["3d_view", "-x", "9"])
def test_H054_a_name_begins_with_a_letter_or_an_underscore_and_comes_back(name: str) -> None:
    assert name_out(name) == f"_{name}"
    assert name_in(f"_{name}", frozenset({name})) == name
    assert name_in(f"_{name}", frozenset({f"_{name}"})) == f"_{name}"


def test_usage_counts_thoughts_and_the_tools_of_the_provider() -> None:
    wire = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 7,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 157,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 100}],
    }
    usage = usage_in(wire)
    assert (usage.input, usage.output, usage.cached, usage.reasoning) == (107, 50, 40, 30)
    assert usage_out(usage) == wire
    assert usage_out(Usage(input=5, output=3)) == {
        "promptTokenCount": 5,
        "candidatesTokenCount": 3,
        "totalTokenCount": 8,
    }
    assert usage_in({"promptTokenCount": "x", "candidatesTokenCount": -1}).output == 0


def test_H074_a_seal_survives_both_alphabets_of_base64() -> None:
    part = Reasoning(text="why?>>>", signature="s/+g", extra={"messages": {}})
    wire = sealed_out(part)
    assert unseal(sealed_in(wire), ["why?>>>"]) == [part]
    assert sealed_in(urlsafe_b64encode(seal([part]).encode()).decode()) == seal([part])
    assert sealed_in(wire.rstrip("=")) == seal([part])
    assert sealed_out(Reasoning(text="unproven")) == ""


@pytest.mark.parametrize("signature", ["", "c2ln", "dHcxL", "dHcxLgé", "dHcxL!!!!", "dHcxMg=="])
def test_what_is_no_seal_is_the_providers_own(signature: str) -> None:
    assert sealed_in(signature) == ""


def test_sources_count_bytes_and_we_count_letters() -> None:
    text = "Grüße aus Zürich."
    grounding = {
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}, {"retrievedContext": {}}],
        "groundingSupports": [
            {
                "segment": {"startIndex": 8, "endIndex": 19, "text": "aus Zürich"},
                "groundingChunkIndices": [0, 1, 7, "x"],
            }
        ],
    }
    quoted = {"citations": [{"uri": "https://b.example", "startIndex": 0, "endIndex": 7}, "x", {"endIndex": 999}]}
    found = citations_in({"groundingMetadata": grounding, "citationMetadata": quoted}, text)
    assert (found[0].url, text[found[0].start : found[0].end]) == ("https://b.example", "Grüße")
    assert found[2].end is None
    assert (found[-1].url, found[-1].title, found[-1].quote) == ("https://a.example", "A", "aus Zürich")
    assert text[found[-1].start : found[-1].end] == "aus Zürich"
    assert citation_out(found[0], text) == {"uri": "https://b.example", "startIndex": 0, "endIndex": 7}
    assert citation_out(Citation(title="no address"), text) is None
    assert citations_in({"groundingMetadata": [], "citationMetadata": 1}, text) == []


def test_every_reason_has_a_word_and_every_word_a_reason() -> None:
    assert {FINISH[reason] for reason in REASONS.values() if reason is not None} <= {
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "OTHER",
    }
    assert REASONS["MALFORMED_FUNCTION_CALL"] is None


def test_the_folder_models_is_removed() -> None:
    assert plain_name("models/m") == "m"
    assert plain_name("tunedModels/m") == "tunedModels/m"
    assert plain_name("a%2Fb") == "a/b"


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


def test_a_signed_text_is_sent_once_with_both() -> None:
    part = {"text": "Hi!", "thoughtSignature": "QQ=="}
    content = {"content": {"parts": [part], "role": "model"}, "finishReason": "STOP", "logprobsResult": RESULT}
    events = events_in("gemini", sse({"candidates": [content], "usageMetadata": {"promptTokenCount": 1}}))
    said = [value["candidates"][0] for _, value in frames(out("gemini", events))]
    assert [one["content"]["parts"] for one in said] == [[part], [{"text": ""}]]
    assert said[0]["logprobsResult"] == RESULT
