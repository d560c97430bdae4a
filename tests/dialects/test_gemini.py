"""Gemini: what stands in the path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.playing import asking
from toolwire.dialects.base import Endpoint
from toolwire.dialects.gemini import COUNT, GENERATE, STREAM, Asked, asked_in, match, path_of
from toolwire.types import Request

BODY = b'{"contents": [{"parts": [{"text": "hi"}]}]}'


def of(model: str, *, is_stream: bool = False) -> str:
    return path_of(Request(model=model, messages=(), stream=is_stream))


def test_the_model_and_the_wish_for_a_stream_stand_in_the_path() -> None:
    assert of("gemini-2.5-flash") == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert of("gemini-2.5-flash", is_stream=True) == "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert of("tunedModels/x") == "/v1beta/tunedModels/x:generateContent"
    assert path_of(asking("gemini")) == "/v1beta/models/m:streamGenerateContent?alt=sse"


def test_a_name_cannot_lead_elsewhere() -> None:
    assert of("../files?x#y z") == "/v1beta/models/..%2Ffiles%3Fx%23y%20z:generateContent"
    assert of("models/../x") == "/v1beta/models/..%2Fx:generateContent"


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", Asked("gemini-3-pro", GENERATE)),
        ("/v1/models/gemini-3-pro:streamGenerateContent", Asked("gemini-3-pro", STREAM)),
        ("/v1beta/models/ollama/qwen3:8b:countTokens", Asked("ollama/qwen3:8b", COUNT)),
        ("/v1alpha/tunedModels/t:generateContent/", Asked("tunedModels/t", GENERATE)),
        (
            "/v1beta1/projects/p/locations/eu/publishers/google/models/m:generateContent",
            Asked("m", GENERATE),
        ),
        ("/v1beta/models", Asked("")),
        ("/v1beta/models/", Asked("")),
        ("/v1beta/models/a/b", Asked("a/b")),
        ("/v1/models", None),
        ("/v1/models/gpt-5", None),
        ("/v1/models/:generateContent", None),
        ("/v1/responses/x:generateContent", None),
        ("/v1/chat/completions", None),
        ("/v1beta/openai/chat/completions", None),
        ("/models/m:generateContent", None),
    ],
)
def test_what_a_path_asks_for(path: str, asked: Asked | None) -> None:
    assert asked_in(path) == asked


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_a_name_comes_back_from_its_path(name: str) -> None:
    path = of(name).partition("?")[0]
    found = asked_in(path)
    assert found is not None
    assert found.model == name.removeprefix("models/")


def test_the_path_and_the_query_say_how_to_decode_a_request() -> None:
    streamed = match("/v1beta/models/m:streamGenerateContent", b"key=secret&alt=sse")
    assert streamed is not None
    assert (streamed.task, streamed.methods, streamed.key, streamed.is_array) == ("answer", ("POST",), "secret", False)
    assert streamed.decode is not None
    request = streamed.decode(BODY, {})
    assert (request.model, request.stream) == ("m", True)
    assert match("/v1/chat/completions", b"") is None


def test_a_stream_without_server_sent_events_is_an_array() -> None:
    found = match("/v1beta/models/m:streamGenerateContent", b"")
    assert found is not None
    assert found.is_array
    assert found.decode is not None
    assert not found.decode(BODY, {}).stream


def test_counts_and_models_have_endpoints_of_their_own() -> None:
    count = match("/v1beta/models/m:countTokens", b"")
    assert count is not None
    assert count.task == "count"
    assert count.decode is not None
    assert count.decode(BODY, {}).model == "m"
    models = match("/v1beta/models", b"key=k")
    assert models == Endpoint(task="models", key="k")
    assert models.methods == ("GET", "HEAD")
    assert match("/v1beta/models/a/b", b"") == Endpoint(task="model", model="a/b")
