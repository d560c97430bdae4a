"""Bodies that are too large, too slow, of another type, or no JSON at all."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.answers import DIALECTS, PATHS, error_in, question
from tests.server.conftest import server, upstream
from tests.server.harness import (
    LONG,
    Answer,
    Gateway,
    answer_of,
    ask,
    connected,
    gateway,
    read_until,
    request_bytes,
    server_config,
)
from toolwire.config.file import Config, with_backends
from toolwire.errors import BadRequest
from toolwire.server import app
from toolwire.server.exchange import ClientGone, check_type, read_body, with_model

__all__ = ["server", "upstream"]  # fixtures

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def narrow() -> Iterator[Gateway]:
    """A gateway that takes one megabyte."""
    with gateway(with_backends(Config(server=server_config(max_body_mb=1)), ())) as running:
        yield running


def send_all_then_read(port: int, head: bytes, pieces: Iterator[bytes]) -> Answer:
    """As simple clients do: not a look at the answer before the last byte is out."""
    with connected(port) as connection:
        connection.sendall(head)
        for piece in pieces:
            connection.sendall(piece)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return answer_of(response)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_large_body_is_refused_and_the_client_gets_to_read_it(narrow: Gateway, dialect: str) -> None:
    head = f"POST {PATHS[dialect]} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    size = 24 * MEGABYTE
    announced = f"{head}content-length: {size}\r\n\r\n".encode()
    answer = send_all_then_read(narrow.port, announced, iter([b"x" * MEGABYTE] * 24))
    assert answer.status == 413
    assert "larger than 1 MB" in error_in(dialect, answer.json)["message"]
    chunked = f"{head}transfer-encoding: chunked\r\n\r\n".encode()
    pieces = [b"100000\r\n" + b"x" * MEGABYTE + b"\r\n"] * 24 + [b"0\r\n\r\n"]
    answer = send_all_then_read(narrow.port, chunked, iter(pieces))
    assert answer.status == 413
    error_in(dialect, answer.json)


def test_a_connection_ends_after_a_large_body(narrow: Gateway) -> None:
    """Whether the rest of it is still read cannot be known to the client."""
    connection = http.client.HTTPConnection("127.0.0.1", narrow.port, timeout=LONG)
    for _ in range(3):  # this client opens another connection by itself
        connection.request("POST", PATHS["chat"], b"x" * (3 * MEGABYTE))
        answer = answer_of(connection.getresponse())
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert connection.sock is None
        connection.request("GET", "/healthz")
        assert answer_of(connection.getresponse()).status == 200
    connection.close()


def test_a_body_just_within_the_limit_is_read(narrow: Gateway) -> None:
    body = question("chat", "demo/echo-tools")
    room = MEGABYTE - len(json.dumps(body | {"user": ""}))
    assert ask(narrow.port, "POST", PATHS["chat"], body | {"user": "u" * room}).status == 200
    assert ask(narrow.port, "POST", PATHS["chat"], body | {"user": "u" * (room + 1)}).status == 413


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sent", [b"", b'{"model": '])
def test_a_body_that_stalls_is_a_408(
    narrow: Gateway, monkeypatch: pytest.MonkeyPatch, dialect: str, sent: bytes
) -> None:
    """Also one of which not a single byte comes."""
    monkeypatch.setattr(app, "_BODY_SECONDS", 0.1)
    with connected(narrow.port) as connection:
        connection.sendall(request_bytes(PATHS[dialect], b"x" * 100)[:-100] + sent)
        since = time.monotonic()
        response = http.client.HTTPResponse(connection)
        response.begin()
        answer = answer_of(response)
        assert 0.05 < time.monotonic() - since < 3
        assert answer.status == 408
        assert answer.headers["connection"] == "close"
        error_in(dialect, answer.json)
        assert connection.recv(10) == b""


def test_a_client_that_disconnects_in_its_body_is_no_error(narrow: Gateway) -> None:
    with connected(narrow.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], b"x" * 100)[:-50])
    assert ask(narrow.port, "GET", "/healthz").status == 200


def test_expect_100_continue_is_answered(narrow: Gateway) -> None:
    with connected(narrow.port) as connection:
        data = request_bytes(PATHS["chat"], question("chat", "demo/echo-tools"), expect="100-continue")
        head, _, body = data.partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_expect_100_continue_of_a_large_body_is_refused_at_once(narrow: Gateway) -> None:
    with connected(narrow.port) as connection:
        connection.sendall(
            b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\nexpect: 100-continue\r\n\r\n"
        )
        assert read_until(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_other_content_types_are_refused(server: Gateway, dialect: str) -> None:
    for kind in ("multipart/form-data; boundary=x", "garbage", "/", "text/html"):
        answer = ask(server.port, "POST", PATHS[dialect], b"{}", {"content-type": kind})
        assert answer.status == 415
        error_in(dialect, answer.json)
    body = json.dumps(question(dialect, "demo/echo-tools")).encode()
    for kind in ("application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json", ""):
        assert ask(server.port, "POST", PATHS[dialect], body, {"content-type": kind}).status == 200


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain;charset=UTF-8"])
def test_a_program_need_not_say_that_it_sends_json_but_a_page_must(server: Gateway, dialect: str, kind: str) -> None:
    """`curl -d` says the first; a page can send both of these without asking the gateway first."""
    body = json.dumps(question(dialect, "demo/echo-tools")).encode()
    assert ask(server.port, "POST", PATHS[dialect], body, {"content-type": kind}).status == 200
    signs = (
        "Origin: http://localhost:3000",
        "Sec-Fetch-Site: none",
        "Sec-Fetch-Mode: no-cors",
        "Referer: http://localhost/",
    )
    for name, _, value in (sign.partition(": ") for sign in signs):
        answer = ask(server.port, "POST", PATHS[dialect], body, {"content-type": kind, name: value})
        assert answer.status == 415
        error_in(dialect, answer.json)


def test_a_model_is_put_in_front() -> None:
    assert with_model(b'{"a":1}', "x/y") == b'{"model":"x/y","a":1}'
    assert json.loads(with_model(b" {\n }", 'a "b"')) == {"model": 'a "b"'}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "zstd", "gzip, gzip"])
def test_encoded_bodies_are_refused(server: Gateway, dialect: str, coding: str) -> None:
    body = gzip.compress(json.dumps(question(dialect, "demo/echo-tools")).encode())
    answer = ask(server.port, "POST", PATHS[dialect], body, {"content-encoding": coding})
    assert answer.status == 415
    error_in(dialect, answer.json)


def test_identity_is_no_encoding() -> None:
    check_type({"content-type": "application/json", "content-encoding": "Identity"})


def receiving(*messages: dict[str, Any]) -> Any:
    waiting = list(messages)

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.sleep(60)
        return waiting.pop(0)

    return receive


def test_pieces_are_put_together() -> None:
    pieces = [{"type": "http.request", "body": b"ab", "more_body": True}, {"type": "http.request", "body": b"c"}]
    assert asyncio.run(read_body(receiving(*pieces), {}, 3, 1.0)) == b"abc"
    with pytest.raises(BadRequest, match="larger"):
        asyncio.run(read_body(receiving(*pieces), {}, 2, 1.0))


def test_a_client_that_goes_is_noticed() -> None:
    with pytest.raises(ClientGone):
        asyncio.run(read_body(receiving({"type": "http.disconnect"}), {}, 3, 1.0))
