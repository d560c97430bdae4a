"""The requests of --check: every dialect accepts them, and each client has the recorded peculiarities."""

from __future__ import annotations

import json

import pytest

from toolwire.cli.clients import CLIENTS
from toolwire.cli.clients.shapes import SHAPES, TOOL, body_of, path_of, shape_of
from toolwire.dialects import DIALECTS

CASES = [(client.name, dialect) for client in CLIENTS.values() for dialect in client.dialects]


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_the_request_is_one_of_its_dialect(name: str, dialect: str) -> None:
    shape = shape_of(name, dialect)
    body = body_of(shape, dialect, "m")
    request = DIALECTS[dialect].decode_request(json.dumps(body).encode(), shape.headers)
    assert request.model == "m"
    assert request.stream == shape.is_streaming
    assert [tool.name for tool in request.tools] == ([TOOL] if shape.has_tools else [])
    assert request.messages


def test_every_recorded_shape_is_of_a_client_there_is() -> None:
    assert set(SHAPES) <= set(CASES)


def test_peculiarities() -> None:
    assert path_of(shape_of("claude-code", "messages"), "messages") == "/v1/messages?beta=true"
    codex = body_of(shape_of("codex", "responses"), "responses", "m")
    assert [item["role"] for item in codex["input"]] == ["developer", "user"]
    assert codex["tools"][0]["strict"] is False
    strict = body_of(shape_of("pydantic-ai", "chat"), "chat", "m")["tools"][0]
    assert strict["function"]["strict"] is True
    assert strict["function"]["name"] == TOOL
    assert "tools" not in body_of(shape_of("aider", "chat"), "chat", "m")
