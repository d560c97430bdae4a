"""Requests with one tool to back ends of each guard level, and what is counted of them."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

from tests.contract.client_answers import Seen, see
from tests.server.answers import KINDS, PATHS, question
from tests.server.harness import Gateway, Upstream, wait_until
from toolwire.config.file import BackendConfig, Guard
from toolwire.config.secret import Secret

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


RIGHT = '{"city": "Paris"}'


def backend(upstream: Upstream, dialect: str, guard: Guard, name: str = "", **more: Any) -> BackendConfig:
    kind: Any = KINDS[dialect]
    url = upstream.url + ("" if dialect == "messages" else "/v1")
    named = name or f"{dialect}-{guard}"
    return BackendConfig(name=named, kind=kind, base_url=url, key=Secret("sk-upstream"), guard=guard, retries=0, **more)


def tools(dialect: str, schema: Any = SCHEMA) -> list[Any]:
    if dialect == "chat":
        return [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    if dialect == "responses":
        return [{"type": "function", "name": "weather", "parameters": schema}]
    return [{"name": "weather", "input_schema": schema}]


class ClientAnswer:
    def __init__(self, seen: Seen, status: int, headers: dict[str, str], raw: bytes) -> None:
        self.seen = seen
        self.status = status
        self.losses = headers.get("x-toolwire-loss", "")
        self.debug = headers.get("x-toolwire-debug", "")
        self.raw = raw


def ask(server: Gateway, client: str, model: str, *, stream: bool, headers: Any = (), **more: Any) -> ClientAnswer:
    body = question(client, model, stream=stream, **({"tools": tools(client)} | more))
    if client == "chat" and stream:
        body["stream_options"] = {"include_usage": True}
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(
        "POST", PATHS[client], json.dumps(body), {"content-type": "application/json", "x-api-key": "k", **dict(headers)}
    )
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    is_stream = "event-stream" in (answer.getheader("content-type") or "")
    found = {name.lower(): value for name, value in answer.getheaders()}
    return ClientAnswer(see(client, raw, stream=is_stream), answer.status, found, raw)


def counters(server: Gateway, backend: str, model: str) -> dict[str, float]:
    """Those of this model; a client may have its answer a moment before it is counted."""
    found: dict[str, float] = {}

    def is_counted() -> bool:
        connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", "/metrics", headers={"x-api-key": "k"})
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        labels = f'{{backend="{backend}",model="{model}"}} '
        for line in lines:
            if labels in line:
                found[line.split("{")[0].removeprefix("toolwire_").removesuffix("_total")] = float(
                    line.rsplit(" ", 1)[1]
                )
        return bool(found)

    wait_until(is_counted)
    return found


def arguments(seen: Seen) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in seen.calls]
