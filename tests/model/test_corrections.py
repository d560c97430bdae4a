"""Invalid calls are corrected by a real model under a grammar: whatever was wrong with a call, one round makes it valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import jsonschema
import pytest

from tests.model.conftest import ModelServer
from tests.server.harness import ask, gateway, server_config
from toolwire.config.file import BackendConfig, Config, with_backends

pytestmark = pytest.mark.slow  # a real model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"},
        "day": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "size": {"enum": ["small", "large"]},
    },
    "required": ["code", "day", "count", "size"],
    "additionalProperties": False,
}
RIGHT = {"code": "AB-123", "day": "2026-01-02", "count": 2, "size": "small"}
INVALID = {
    "no arguments": ("order", "{}"),
    "other patterns": ("order", json.dumps({**RIGHT, "code": "x", "day": "tomorrow"})),
    "a bound and a fixed value": ("order", json.dumps({**RIGHT, "count": 99, "size": "huge"})),
    "two objects": ("order", json.dumps(RIGHT) + json.dumps({**RIGHT, "count": 3})),
    "an unknown tool": ("rent", json.dumps(RIGHT)),
}
TOOLS = {"order": SCHEMA, "now": {"type": "object", "properties": {}, "additionalProperties": False}}


class _Handler(BaseHTTPRequestHandler):
    """Answers a request with tools with a given call, and passes one without tools, a correction under a grammar, to the model."""

    protocol_version = "HTTP/1.1"
    model: ModelServer
    call = ("", "")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body.get("tools"):
            content = json.dumps(_answer(*_Handler.call)).encode()
        else:
            given = json.dumps({**body, "temperature": 0}).encode()
            url = f"{self.model.address}{self.path}"
            with urlopen(Request(url, given, {"content-type": "application/json"}), timeout=240) as reply:
                content = reply.read()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _answer(name: str, raw: str) -> dict[str, Any]:
    call = {"id": "call_0", "type": "function", "function": {"name": name, "arguments": raw}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    named = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return {**named, "choices": [choice], "usage": usage}


@pytest.fixture(scope="module")
def port(model_server: ModelServer) -> Iterator[int]:
    _Handler.model = model_server
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    backend = BackendConfig(
        name="model",
        kind="openai-chat",
        base_url=f"http://127.0.0.1:{server.server_port}/v1",
        profile="llamacpp",
        guard="retry",
        retries=0,
        max_corrections=1,
    )
    try:
        with gateway(with_backends(Config(server=server_config()), (backend,))) as running:
            yield running.port
    finally:
        server.shutdown()
        server.server_close()
        thread.join(20)


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_call_is_valid_after_one_round(port: int, kind: str) -> None:
    _Handler.call = INVALID[kind]
    functions = [{"name": name, "parameters": schema} for name, schema in TOOLS.items()]
    body = {
        "model": "model/m",
        "messages": [{"role": "user", "content": "Order two small ones."}],
        "tools": [{"type": "function", "function": function} for function in functions],
    }
    answer = ask(port, "POST", "/v1/chat/completions", body, timeout=300.0)
    assert answer.status == 200, answer.body
    [call] = json.loads(answer.body)["choices"][0]["message"]["tool_calls"]
    function = call["function"]
    jsonschema.validate(json.loads(function["arguments"]), TOOLS[function["name"]])
    assert call["id"] == "call_0"
    assert "x-toolwire-loss" not in answer.headers, answer.headers
