"""Gemini: what stands in the path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import make_request
from toolwire.dialects.base import Endpoint
from toolwire.dialects.gemini import match, path_of
from toolwire.types import Request

BODY = b'{"contents": [{"parts": [{"text": "hi"}]}]}'


def of(model: str, *, is_stream: bool = False) -> str:
    return path_of(Request(model=model, messages=(), stream=is_stream))


def test_the_model_and_the_wish_for_a_stream_stand_in_the_path() -> None:
    assert of("gemini-2.5-flash") == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert of("gemini-2.5-flash", is_stream=True) == "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert of("tunedModels/x") == "/v1beta/tunedModels/x:generateContent"
    assert path_of(make_request("gemini")) == "/v1beta/models/m:streamGenerateContent?alt=sse"


def test_a_name_cannot_lead_elsewhere() -> None:
    assert of("../files?x#y z") == "/v1beta/models/..%2Ffiles%3Fx%23y%20z:generateContent"
    assert of("models/../x") == "/v1beta/models/..%2Fx:generateContent"


@pytest.mark.parametrize(
    ("path", "task", "model"),
    [
        ("/v1beta/models/gemini-3-pro:generateContent", "answer", "gemini-3-pro"),
        ("/v1/models/gemini-3-pro:streamGenerateContent", "answer", "gemini-3-pro"),
        ("/v1beta/models/ollama/qwen3:8b:countTokens", "count", "ollama/qwen3:8b"),
        ("/v1alpha/tunedModels/t:generateContent/", "answer", "tunedModels/t"),
        ("/v1beta1/projects/p/locations/eu/publishers/google/models/m:generateContent", "answer", "m"),
        ("/v1beta/models", "models", ""),
        ("/v1beta/models/", "models", ""),
        ("/v1beta/models/a/b", "model", "a/b"),
    ],
)
def test_a_path_names_a_task_and_a_model(path: str, task: str, model: str) -> None:
    found = match(path, b"")
    assert found is not None
    assert found.task == task
    assert (found.model if found.decode is None else found.decode(BODY, {}).model) == model


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "/v1/models/gpt-5",
        "/v1/models/:generateContent",
        "/v1/responses/x:generateContent",
        "/v1/chat/completions",
        "/v1beta/openai/chat/completions",
        "/models/m:generateContent",
    ],
)
def test_paths_of_other_dialects_do_not_match(path: str) -> None:
    assert match(path, b"") is None


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_a_name_comes_back_from_its_path(name: str) -> None:
    found = match(of(name).partition("?")[0], b"")
    assert found is not None
    assert found.decode is not None
    assert found.decode(BODY, {}).model == name.removeprefix("models/")


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
