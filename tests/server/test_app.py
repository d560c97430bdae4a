"""Routes, request ids, limits, and every bad request answered in the dialect of the asker."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import socket
from typing import Any

import pytest
from msgspec.structs import replace

from tests.loop_ticks import ticking
from tests.server.answers import (
    DIALECTS,
    PATHS,
    body_text,
    error_in,
    failure_in,
    is_ended,
    question,
    streamed,
    text_of,
    whole,
)
from tests.server.conftest import backends_of
from tests.server.harness import (
    HOLD,
    LONG,
    Broken,
    Gateway,
    Upstream,
    answer_of,
    ask,
    connected,
    gateway,
    raw,
    read_until,
    reply,
    request_bytes,
    server_config,
    wait_until,
)
from toolwire.config.file import BackendConfig, Config, StoreConfig, with_backends
from toolwire.server import App

ANTHROPIC = {"anthropic-version": "2023-06-01"}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("prefix", ["/v1", ""])
@pytest.mark.parametrize("ending", ["", "/", "?beta=true"])
def test_each_dialect_answers_at_its_path(server: Gateway, dialect: str, prefix: str, ending: str) -> None:
    path = prefix + PATHS[dialect].removeprefix("/v1") + ending
    answer = ask(server.port, "POST", path, question(dialect, "demo/echo-tools", stream=True))
    assert answer.status == 200
    assert is_ended(dialect, answer.events)
    answer = ask(server.port, "POST", path, question(dialect, "demo/echo-tools", tools=[]))
    assert body_text(dialect, answer.json)


@pytest.mark.parametrize("path", ["/v1/models", "/models", "/v1/models/"])
def test_models_in_the_dialect_of_the_client(server: Gateway, path: str) -> None:
    listed = ask(server.port, "GET", path).json
    assert listed["object"] == "list"
    assert {"id": "demo/echo-tools", "object": "model"}.items() <= listed["data"][-1].items()
    assert {"chat/m", "responses/m", "messages/m", "demo/echo-tools"} <= {line["id"] for line in listed["data"]}
    listed = ask(server.port, "GET", path, headers=ANTHROPIC).json
    assert listed["has_more"] is False
    assert listed["first_id"] == listed["data"][0]["id"]
    assert listed["last_id"] == listed["data"][-1]["id"]
    assert all(line["type"] == "model" and line["display_name"] and line["created_at"] for line in listed["data"])


@pytest.mark.parametrize("prefix", ["/v1", ""])
@pytest.mark.parametrize("name", ["demo/echo-tools", "demo%2Fecho-tools", "echo-tools"])
def test_one_model_by_its_id(server: Gateway, prefix: str, name: str) -> None:
    answer = ask(server.port, "GET", f"{prefix}/models/{name}")
    assert answer.status == 200
    assert answer.json["id"] == name.replace("%2F", "/")
    assert answer.json["object"] == "model"
    assert ask(server.port, "GET", f"{prefix}/models/{name}", headers=ANTHROPIC).json["type"] == "model"


@pytest.mark.parametrize("name", ["nobody/here", "demo/", "%00", "a" * 5000, "x%0d%0ay"])
def test_a_model_that_no_back_end_lists(server: Gateway, name: str) -> None:
    answer = ask(server.port, "GET", f"/v1/models/{name}")
    assert answer.status == 404
    assert error_in("chat", answer.json)["code"] == "model_not_found"
    assert len(answer.body) < 1000
    assert error_in("messages", ask(server.port, "GET", f"/v1/models/{name}", headers=ANTHROPIC).json)


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_a_base_url_with_one_v1_too_many_is_reported(server: Gateway, dialect: str) -> None:
    answer = ask(server.port, "POST", f"/v1{PATHS[dialect]}", {})
    assert answer.status == 404
    message = error_in(dialect, answer.json)["message"]
    assert f'there is nothing at "/v1{PATHS[dialect]}"' in message
    assert f'try "{PATHS[dialect]}"' in message
    assert "try" not in error_in("chat", ask(server.port, "POST", "/v1/nowhere", {}).json)["message"]


def test_pages_for_machines(server: Gateway) -> None:
    assert ask(server.port, "GET", "/healthz").json == {"status": "ok"}
    assert ask(server.port, "GET", "/readyz").json == {"status": "ready"}
    assert ask(server.port, "GET", "/").json["name"] == "toolwire"
    metrics = ask(server.port, "GET", "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"toolwire_requests_total" in metrics.body
    head = ask(server.port, "HEAD", "/healthz")
    assert (head.status, head.body) == (200, b"")


def test_tokens_are_counted_by_the_back_end_or_estimated(server: Gateway, upstream: Upstream) -> None:
    path = "/v1/messages/count_tokens"
    asked = {"model": "messages/counted", "messages": [{"role": "user", "content": "hello"}]}
    upstream.on("counted", [reply(200, b'{"input_tokens": 4711}')])
    assert ask(server.port, "POST", path, asked).json == {"input_tokens": 4711}
    received = upstream.wait_request("counted")
    assert received.path == path
    assert received.headers["x-api-key"] == "sk-upstream"
    estimated = ask(server.port, "POST", path, asked | {"model": "chat/counted"}).json
    assert 1 <= estimated["input_tokens"] < 100
    upstream.on("counted", [reply(429, b'{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}')])
    answer = ask(server.port, "POST", path, asked)
    assert answer.status == 429
    assert "slow" in error_in("messages", answer.json)["message"]
    upstream.on("counted", [reply(404, b'{"type":"error","error":{"type":"not_found_error","message":"no"}}')])
    assert ask(server.port, "POST", path, asked).json["input_tokens"] > 0
    upstream.on("counted", [reply(200, b"<html>no count here</html>", "text/html")])
    answer = ask(server.port, "POST", path, asked)
    assert answer.status in (200, 502)
    assert isinstance(answer.json, dict)


@pytest.mark.parametrize(("method", "path", "dialect"), [
    ("GET", "/v2/chat/completions", "chat"),
    ("POST", "/v1/chat/completions/x", "chat"),
    ("GET", "/v1/responses/resp_unknown", "responses"),
    ("POST", "/v1/responses/resp_unknown/cancel", "responses"),
    ("POST", "/v1/messages/batches", "messages"),
    ("GET", "/favicon.ico", "chat"),
    ("GET", "/../../etc/passwd", "chat"),
    ("GET", "/v1/%2e%2e/%00", "chat"),
    ("POST", "/v1", "chat"),
    ("GET", "/v1v1/models", "chat"),
])  # fmt: skip
def test_unknown_paths(server: Gateway, method: str, path: str, dialect: str) -> None:
    answer = ask(server.port, method, path, b"{}" if method == "POST" else None)
    assert answer.status in (404, 405)
    error_in(dialect, answer.json)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_wrong_methods(server: Gateway, dialect: str) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = ask(server.port, method, PATHS[dialect])
        assert answer.status == 405
        assert answer.headers["allow"] == "POST"
        error_in(dialect, answer.json)
    answer = ask(server.port, "POST", "/v1/models", b"{}")
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


REQUEST_IDS = [("abc-123", True), ("a" * 128, True), ("a" * 129, False), ("", False), ("a b", False), ("x\xe9", False)]


@pytest.mark.parametrize(("given", "is_kept"), REQUEST_IDS)
def test_request_ids(server: Gateway, given: str, is_kept: bool) -> None:
    for method, path, body in (("GET", "/healthz", None), ("GET", "/nowhere", None), ("POST", PATHS["chat"], b"{")):
        answer = ask(server.port, method, path, body, {"x-request-id": given})
        found = answer.headers["x-request-id"]
        assert found == answer.headers["request-id"]
        assert (found == given) is is_kept
        assert is_kept or found.startswith("req_")


def test_request_ids_are_new_each_time(server: Gateway) -> None:
    assert len({ask(server.port, "GET", "/healthz").headers["x-request-id"] for _ in range(20)}) == 20


BAD_BODIES: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n ",
    "cut": b'{"model": "demo/echo-tools", "messa',
    "array": b"[]",
    "string": b'"x"',
    "number": b"1",
    "null": b"null",
    "no members": b"{}",
    "deep array": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "deep member": b'{"model":"demo/echo-tools","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep and whole": b'{"model":"demo/echo-tools","input":"x","messages":[{"role":"user","content":"x"}],"max_tokens":9,"metadata":'
    + b'{"a":' * 50_000
    + b"1"
    + b"}" * 50_000
    + b"}",
    "not utf-8": b'{"model": "\xff\xfe"}',
    "utf-16": '{"model": "x"}'.encode("utf-16"),
    "nul": b'{"model": "a\x00b"}',
    "nan": b'{"model": NaN}',
    "long number": b'{"model": ' + b"9" * 10_000 + b"}",
    "huge exponent": b'{"model": 1e999999999999999999}',
    "two values": b"{}{}",
    "trailing comma": b'{"model": "x",}',
    "single quotes": b"{'model': 'x'}",
    "html": b"<html></html>",
    "form": b"model=x&stream=true",
}


@pytest.mark.parametrize("dialect", [*DIALECTS, "count"])
@pytest.mark.parametrize("case", list(BAD_BODIES))
def test_bodies_that_are_no_request(server: Gateway, dialect: str, case: str) -> None:
    path = "/v1/messages/count_tokens" if dialect == "count" else PATHS[dialect]
    answer = ask(server.port, "POST", path, BAD_BODIES[case])
    assert answer.status == 400, answer.body[:300]
    error_in("messages" if dialect == "count" else dialect, answer.json)
    assert len(answer.body) < 2000


WRONG: list[Any] = [None, True, False, 0, -1, 1.5, 10**30, "", "x", [], [1], [[]], [None], {}, {"type": "x"}, "\ud800"]
MEMBERS = [
    "model", "messages", "input", "stream", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "stop", "n",
    "stop_sequences", "system", "instructions", "metadata", "response_format", "reasoning", "thinking", "text", "user",
    "stream_options", "parallel_tool_calls", "max_output_tokens", "max_completion_tokens", "logprobs", "seed", "store",
    "previous_response_id", "include", "reasoning_effort", "functions", "function_call", "modalities", "output_config",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_members_of_the_wrong_type(server: Gateway, dialect: str) -> None:
    """Each member once with each wrong value: refused in the dialect's form, or answered."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG)
    for member in MEMBERS:
        for value in WRONG:
            body = question(dialect, "demo/echo-tools") | {member: value}
            connection.request("POST", PATHS[dialect], json.dumps(body), {"content-type": "application/json"})
            answer = answer_of(connection.getresponse())
            assert answer.status in (200, 400, 404), (member, value, answer.body)
            if answer.status != 200:
                error_in(dialect, answer.json)
    connection.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_missing_members_are_named(server: Gateway, dialect: str) -> None:
    body = question(dialect, "demo/echo-tools")
    for member in ("model", "input" if dialect == "responses" else "messages"):
        answer = ask(server.port, "POST", PATHS[dialect], {key: body[key] for key in body if key != member})
        assert answer.status == 400
        assert member in error_in(dialect, answer.json)["message"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["gpt-99-turbo", "nowhere/x", "chat/", "/", "a" * 10_000, "\r\nx: y", "\u202e", "💥"])
def test_an_unknown_model_is_named(server: Gateway, dialect: str, name: str) -> None:
    for stream in (True, False):
        answer = ask(server.port, "POST", PATHS[dialect], question(dialect, name, stream=stream))
        assert answer.status == 404
        error = error_in(dialect, answer.json)
        assert name.isprintable() is False or name[:100] in error["message"]
        assert len(answer.body) < 3000


RAW_REQUESTS: list[bytes] = [
    b"NONSENSE\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS spoken to a plain port
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /\x00 HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\nbad header\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\nx: a\x00b\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\n: empty\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: abc\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999999\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
    b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: localhost\r\n" + b"x: " + b"y" * 200_000 + b"\r\nconnection: close\r\n\r\n",
    b"CONNECT example.com:443 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("data", RAW_REQUESTS)
def test_what_is_hardly_http_is_answered_all_the_same(server: Gateway, data: bytes) -> None:
    with connected(server.port, 3) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(65536)
    assert answer == b"" or b"HTTP/1.1 " in answer[:9]
    assert not answer.startswith(b"HTTP/1.1 5")
    assert ask(server.port, "GET", "/healthz").status == 200


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
def test_an_upgrade_is_declined_and_the_request_answered(server: Gateway, upgrade: str) -> None:
    """Java's own client asks for HTTP/2 this way with every request."""
    body = question("chat", "demo/echo-tools")
    data = request_bytes(
        PATHS["chat"], body, connection="Upgrade, HTTP2-Settings", upgrade=upgrade, http2_settings="AAMA"
    )
    with connected(server.port) as connection:
        connection.sendall(data)
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert answer_of(response).status == 200


def test_pipelined_requests_are_answered_in_order(server: Gateway, upstream: Upstream) -> None:
    upstream.on("slow-pipe", [0.1, *whole("chat", text="first")])
    requests = [
        request_bytes(PATHS["chat"], question("chat", "chat/slow-pipe")),
        request_bytes(PATHS["messages"], b"{"),
        request_bytes(PATHS["chat"], question("chat", "demo/echo-tools", stream=True)),
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ]
    answer = raw(server.port, b"".join(requests))
    places = [answer.index(mark) for mark in (b"first", b'"type":"error"', b"[DONE]", b'"status":"ok"')]
    assert places == sorted(places)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_connection_outlives_an_error(server: Gateway, upstream: Upstream, dialect: str) -> None:
    upstream.on("error-then", [reply(500, b"{}")])
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG)
    json_type = {"content-type": "application/json"}
    for body, status in (
        (b"{", 400),
        (json.dumps(question(dialect, f"{dialect}/error-then", stream=True)), 500),
        (json.dumps(question(dialect, "nobody")), 404),
        (json.dumps(question(dialect, "demo/echo-tools")), 200),
    ):
        connection.request("POST", PATHS[dialect], body, json_type)
        assert answer_of(connection.getresponse()).status == status
    connection.close()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_too_many_at_once_is_a_429(upstream: Upstream, dialect: str) -> None:
    backend = BackendConfig(name="b", kind="openai-chat", base_url=upstream.url, models=("m",))
    upstream.on("crowd", [HOLD])
    with gateway(with_backends(Config(server=server_config(max_streams=2)), (backend,))) as server:
        count = len(upstream.requests("crowd"))
        waiting = [connected(server.port) for _ in range(2)]
        for number, connection in enumerate(waiting):
            connection.sendall(request_bytes(PATHS[dialect], question(dialect, "b/crowd", stream=bool(number))))
        upstream.wait_request("crowd", count + 2)
        answer = ask(server.port, "POST", PATHS[dialect], question(dialect, "b/crowd"))
        assert answer.status == 429
        assert answer.headers["retry-after"] == "1"
        assert error_in(dialect, answer.json)["type"] == "rate_limit_error"
        assert ask(server.port, "GET", "/healthz").status == 200
        for connection in waiting:
            connection.close()
        upstream.on("crowd", streamed("chat"))
        wait_until(lambda: ask(server.port, "POST", PATHS[dialect], question(dialect, "b/crowd")).status == 200)


def test_a_server_that_has_not_started_raises() -> None:
    sent: list[dict[str, Any]] = []

    async def main(path: str, method: str) -> None:
        app = App(Config(server=server_config()))

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"{}"}

        async def send(message: Any) -> None:
            sent.append(message)

        await app({"type": "http", "method": method, "path": path, "headers": []}, receive, send)
        app.close_log()

    for path, method in (("/readyz", "GET"), ("/v1/chat/completions", "POST"), ("/v1/models", "GET")):
        sent.clear()
        asyncio.run(main(path, method))
        assert sent[0]["status"] == 503, path


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_internal_error_is_reported_and_logged(dialect: str, capfd: pytest.CaptureFixture[str]) -> None:
    backend = BackendConfig(name="broken", kind="scripted")
    with gateway(with_backends(Config(server=server_config()), (backend,))) as server:
        server.app._running().backends["broken"] = Broken()
        for model, stream, status in (
            ("x", True, 200),
            ("x", False, 500),
            ("at once", True, 500),
            ("at once", False, 500),
        ):
            asked = question(dialect, f"broken/{model}", stream=stream)
            answer = ask(server.port, "POST", PATHS[dialect], asked, {"x-request-id": f"mine-{stream}"})
            assert answer.status == status
            if status == 200:
                assert text_of(dialect, answer.events) == "some words"
                assert "inside the gateway" in failure_in(dialect, answer.events)
            else:
                assert "inside the gateway" in error_in(dialect, answer.json)["message"]
            assert b"mistake" not in answer.body
        metrics = ask(server.port, "GET", "/metrics").body.decode()
    assert (
        f'toolwire_requests_total{{backend="broken",dialect="{dialect}",outcome="error",status="500"}} 3.0' in metrics
    )
    said = capfd.readouterr().err
    assert said.count("ZeroDivisionError: a mistake") == 4
    assert said.count("error=internal_error") == 4
    assert "error mine-True" in said


def mutated(dice: random.Random, data: bytes) -> bytes:
    """The same bytes with a few cut, doubled, swapped or made up."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        place = dice.randrange(len(changed) + 1)
        match dice.randrange(4):
            case 0:
                del changed[place : place + dice.randint(1, 12)]
            case 1:
                changed[place:place] = dice.randbytes(dice.randint(1, 6))
            case 2:
                changed[place:place] = dice.choice(
                    [b'"', b"{", b"}", b"[", b"]", b",", b"null", b"\\ud800", b"1e400", b"\\"]
                )
            case _:
                changed[place : place + 1] = bytes([dice.randrange(256)])
    return bytes(changed)


def twisted(dice: random.Random, value: Any) -> Any:
    """The same JSON with a few values in other places or of other types."""
    if dice.random() < 0.12:
        return dice.choice([*WRONG, value, [value], {"type": value}, {"a": value}])
    if isinstance(value, dict):
        kept = {key: twisted(dice, item) for key, item in value.items() if dice.random() > 0.04}
        return kept | (
            {dice.choice([*MEMBERS, "type", "role", "content"]): dice.choice(WRONG)} if dice.random() < 0.1 else {}
        )
    return [twisted(dice, item) for item in value] if isinstance(value, list) else value


CONVERSATIONS: dict[str, dict[str, Any]] = {
    "chat": {
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        ]
    },
    "responses": {
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        ]
    },
    "messages": {
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}, {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "sunny"}]}]},
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("backend", ["demo", "chat", "responses", "messages"])
def test_mutated_requests_are_all_answered(server: Gateway, upstream: Upstream, dialect: str, backend: str) -> None:
    """2xx or 4xx, never a hang, a reset or a 5xx; the back end behind may be any."""
    dice = random.Random(f"{dialect} {backend}")
    model = "demo/echo-tools" if backend == "demo" else f"{backend}/fuzz"
    if backend != "demo":
        upstream.on("fuzz", whole(backend))
    base = question(dialect, model) | CONVERSATIONS[dialect]
    for number in range(60):
        if number % 2:
            data = mutated(dice, json.dumps(base).encode())
        else:
            data = json.dumps(twisted(dice, base | {"model": model})).encode()
        answer = ask(server.port, "POST", PATHS[dialect], data)
        assert 200 <= answer.status < 500, (data, answer.body)
        if answer.status >= 400 and b"no play" not in answer.body:
            error_in(dialect, answer.json)
    assert ask(server.port, "GET", "/healthz").status == 200


def test_mutated_heads_never_stop_the_server(server: Gateway) -> None:
    dice = random.Random(7)
    base = request_bytes(PATHS["chat"], question("chat", "demo/echo-tools"), connection="close")
    for _ in range(150):
        data = mutated(dice, base[:150]) + base[150:]
        with connected(server.port, 5) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(100)
            assert not answer.startswith(b"HTTP/1.1 5"), data
    assert ask(server.port, "GET", "/healthz").status == 200


def test_text_reaches_a_client_as_it_was_written(server: Gateway, upstream: Upstream) -> None:
    text = "naïve \u2028 \U0001f600 \x7f <|im_end|> data: x"
    upstream.on("odd-text", streamed("chat", text=text))
    for dialect in DIALECTS:
        answer = ask(server.port, "POST", PATHS[dialect], question(dialect, "chat/odd-text", stream=True))
        assert text_of(dialect, answer.events) == text


def test_a_stream_comes_piece_by_piece(server: Gateway, upstream: Upstream) -> None:
    """Nothing is held back: the first words are here while the last are not yet written."""
    play = streamed("chat")
    upstream.on("paced", [*play[:3], HOLD])
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], question("chat", "chat/paced", stream=True)))
        assert b"Hello" in read_until(connection, b"Hello")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_without_a_model_goes_to_the_default(upstream: Upstream, dialect: str) -> None:
    """To its first model, and byte by byte as it came beside the name."""
    name = {"chat": "chat-anew", "responses": "responses", "messages": "messages"}[dialect]
    upstream.on("first", whole(dialect))
    backends = tuple(replace(one, models=("first", "second")) for one in backends_of(upstream) if one.name == name)
    question_of = question(dialect, "")
    del question_of["model"]
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        before = len(upstream.requests("first"))
        assert ask(running.port, "POST", PATHS[dialect], question_of).status == 200
        assert len(upstream.requests("first")) == before + 1
        answer = ask(running.port, "POST", PATHS[dialect], {})
        assert answer.status == 400
        assert "model" not in error_in(dialect, answer.json)["message"].partition(":")[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_a_default_the_model_must_be_named(server: Gateway, dialect: str) -> None:
    question_of = question(dialect, "")
    del question_of["model"]
    answer = ask(server.port, "POST", PATHS[dialect], question_of)
    assert answer.status == 400
    assert "model" in error_in(dialect, answer.json)["message"]


def test_tools_as_chat_has_them_reach_a_responses_back_end_as_it_has_them(server: Gateway, upstream: Upstream) -> None:
    upstream.on("shaped", whole("responses"))
    function = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
    asked = question("responses", "responses/shaped", tools=[{"type": "function", "function": function}])
    assert ask(server.port, "POST", PATHS["responses"], asked).status == 200
    assert upstream.wait_request("shaped").json["tools"] == [{"type": "function", **function}]


def test_a_large_body_is_read_beside_the_loop() -> None:
    async def main() -> None:
        app = App(Config(server=server_config(), store=StoreConfig(kind="memory")))
        app.start()
        text = {"type": "text", "text": "some words"}
        messages = [{"role": "user", "content": [text] * 50}] * 1200
        body = json.dumps({"model": "none/x", "messages": messages}).encode()
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": PATHS["chat"], "headers": headers, "query_string": b""}
        async with ticking() as ticks:
            await app(scope, receive, send)
            assert ticks.count >= 5
        assert sent[0]["status"] == 404  # which is known only after it was read
        await app.stop()

    asyncio.run(main())
