"""Models as tools: a call is a request to the gateway with the caller's key, and its failure is a result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

from toolwire.server.exchange import ClientGone
from toolwire.server.mcp.models import ModelTools


class Gateway:
    """Answers with this status and body; None: the caller has disconnected."""

    def __init__(self, status: int | None, answer: Any) -> None:
        self.status, self.answer = status, answer
        self.path, self.headers, self.body = "", dict[str, str](), dict[str, Any]()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.path = scope["path"]
        self.headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.body = json.loads((await receive())["body"] or b"{}")
        if self.status is None:
            assert (await receive())["type"] == "http.disconnect"
            return
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        body = json.dumps(self.answer).encode()
        await send({"type": "http.response.body", "body": body[:5], "more_body": True})
        await send({"type": "http.response.body", "body": body[5:]})


async def gone() -> MutableMapping[str, Any]:
    return {"type": "http.disconnect"}


def call(gateway: Gateway, name: str, **arguments: Any) -> tuple[str, bool]:
    headers = {"authorization": "Bearer k", "cookie": "c", "content-length": "999"}
    result = asyncio.run(ModelTools(gateway, headers, gone).call(name, arguments))
    return result["content"][0]["text"], result["isError"]


def answered(**message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", **message}}]}


def test_a_prompt_becomes_a_request_with_the_callers_key() -> None:
    gateway = Gateway(200, answered(content="Hi!"))
    assert call(gateway, "ask_model", prompt="hello", model="m", system="be brief", max_tokens=5) == ("Hi!", False)
    roles = [(message["role"], message["content"]) for message in gateway.body["messages"]]
    assert roles == [("system", "be brief"), ("user", "hello")]
    assert (gateway.body["model"], gateway.body["max_tokens"]) == ("m", 5)
    assert gateway.headers["authorization"] == "Bearer k"
    assert "cookie" not in gateway.headers


def test_models_are_listed() -> None:
    gateway = Gateway(200, {"data": [{"id": "a/b"}, {"id": "c/d"}]})
    assert call(gateway, "list_models") == ("a/b\nc/d", False)
    assert gateway.path == "/v1/models"


@pytest.mark.parametrize("name", ["ask_model", "list_models"])
def test_an_error_of_the_gateway_is_a_result(name: str) -> None:
    text, is_error = call(Gateway(403, {"error": {"message": "not allowed"}}), name, prompt="x")
    assert is_error
    assert "403" in text
    assert "not allowed" in text


def test_a_call_that_needs_approval_is_named() -> None:
    calls = [{"function": {"name": "files__write_file", "arguments": "{}"}}]
    text, _ = call(Gateway(200, answered(content="Wait.", tool_calls=calls)), "ask_model", prompt="x")
    assert text.startswith("Wait.")
    assert "files__write_file" in text


@pytest.mark.parametrize(
    "arguments",
    [{}, {"prompt": ""}, {"prompt": 5}, {"prompt": "x", "model": 5}, {"prompt": "x", "max_tokens": 0}, {"prompt": "x", "tools": []}, {"prompt": "x", "max_tokens": True}],
)  # fmt: skip
def test_wrong_arguments_are_not_sent(arguments: dict[str, Any]) -> None:
    gateway = Gateway(200, {})
    text, is_error = call(gateway, "ask_model", **arguments)
    assert is_error
    assert "xpected" in text
    assert gateway.path == ""


def test_a_caller_that_disconnects_stops_the_request() -> None:
    with pytest.raises(ClientGone):
        call(Gateway(None, {}), "ask_model", prompt="x")
