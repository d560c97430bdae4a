from __future__ import annotations

import pytest

from toolwire.dialects.routes import dialect_of, find, without_version


@pytest.mark.parametrize(
    ("path", "headers", "dialect"),
    [
        ("/chat/completions", {}, "chat"),
        ("/responses/x", {"anthropic-version": "1"}, "responses"),
        ("/conversations/x", {}, "responses"),
        ("/messages/count_tokens", {}, "messages"),
        ("/models", {}, "chat"),
        ("/models", {"anthropic-version": "1"}, "messages"),
        ("/models", {"x-api-key": "k"}, "messages"),
        ("/api/nothing", {}, "ollama"),
        ("/models", {"x-api-key": "k", "authorization": "Bearer k"}, "chat"),
    ],
)
def test_the_dialect_of_a_path(path: str, headers: dict[str, str], dialect: str) -> None:
    assert dialect_of(path, headers).name == dialect


@pytest.mark.parametrize(
    ("path", "dialect", "task", "model"),
    [
        ("/v1/chat/completions", "chat", "answer", ""),
        ("/responses/", "responses", "answer", ""),
        ("/v1/messages", "messages", "answer", ""),
        ("/v1/messages/count_tokens", "messages", "count", ""),
        ("/v1/models", "chat", "models", ""),
        ("/v1/models/a/b:c", "chat", "model", "a/b:c"),
        ("/v1/models/m:generateContent", "gemini", "answer", ""),
        ("/v1beta/models", "gemini", "models", ""),
        ("/v1beta/models/m", "gemini", "model", "m"),
        ("/v1beta/models/m:countTokens", "gemini", "count", ""),
        ("/v1beta/interactions", "interactions", "answer", ""),
        ("/v1/embeddings", "chat", "embed", ""),
        ("/api/chat", "ollama", "answer", ""),
        ("/api/generate/", "ollama", "answer", ""),
        ("/api/embed", "ollama", "embed", ""),
        ("/api/tags", "ollama", "models", ""),
        ("/api/ps", "ollama", "fixed", ""),
        ("/api/version", "ollama", "fixed", ""),
    ],
)
def test_endpoints(path: str, dialect: str, task: str, model: str) -> None:
    found, endpoint = find(path, without_version(path), b"", {})
    assert endpoint is not None
    assert (found.name, endpoint.task, endpoint.model) == (dialect, task, model)
    assert endpoint.methods == (("POST",) if task in ("answer", "count", "embed") else ("GET", "HEAD"))


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/v1beta/interactions/int_1", ("interactions", "int_1")),
        ("/v1/interactions/int%5F1/", ("interactions", "int_1")),
        ("/v1alpha/interactions/int_1/cancel", ("interactions", "int_1", "cancel")),
    ],
)
def test_paths_of_stored_interactions(path: str, place: tuple[str, ...]) -> None:
    dialect, endpoint = find(path, without_version(path), b"key=k", {})
    assert endpoint is not None
    assert (dialect.name, endpoint.task, endpoint.place, endpoint.key) == ("interactions", "state", place, "k")
    assert find("/v1beta/interactions/a/b", "beta/interactions/a/b", b"", {})[1] is None


def test_a_model_that_the_body_names_is_a_post() -> None:
    dialect, endpoint = find("/api/show", "/api/show", b"", {})
    assert endpoint is not None
    assert (dialect.name, endpoint.task, endpoint.methods) == ("ollama", "model", ("POST",))


@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/v1/chat/completions", "/v1/responses/resp_1", "/nothing"])
def test_paths_without_an_endpoint(path: str) -> None:
    assert find(path, without_version(path), b"", {})[1] is None


def test_a_long_query_is_cut() -> None:
    path = "/v1/models/m:generateContent"
    _, endpoint = find(path, without_version(path), b"key=" + b"x" * 100_000, {})
    assert endpoint is not None
    assert len(endpoint.key) < 20_000
