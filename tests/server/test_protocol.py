"""Head and body in one write, and requests that ask for another protocol."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.answers import PATHS, question
from tests.server.harness import Gateway, connected, raw, request_bytes
from toolwire.server.protocol import HeadKeeper, without_upgrade


class Written:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.pieces.append(data)

    def close(self) -> None:
        self.is_closed = True


def keeper() -> tuple[Any, Written]:
    written = Written()
    return HeadKeeper(written), written  # type: ignore[arg-type] # it writes and closes


def test_a_head_leaves_with_the_start_of_its_body() -> None:
    held, written = keeper()
    held.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert written.pieces == []
    held.write(b"body")
    held.write(b"more")
    assert written.pieces == [b"HTTP/1.1 200 OK\r\n\r\nbody", b"more"]


def test_a_head_without_a_body_leaves_at_the_end() -> None:
    held, written = keeper()
    held.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    held.release()
    held.release()
    assert written.pieces == [b"HTTP/1.1 204 No Content\r\n\r\n"]
    held.write(b"HTTP/1.1 400 Bad Request\r\n\r\nx")
    held.close()
    assert written.pieces[1:] == [b"HTTP/1.1 400 Bad Request\r\n\r\nx"]
    assert written.is_closed


def test_an_interim_response_leaves_at_once() -> None:
    held, written = keeper()
    held.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert written.pieces == [b"HTTP/1.1 100 Continue\r\n\r\n"]


def test_a_small_answer_is_one_segment(server: Gateway) -> None:
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], question("chat", "demo/echo-tools")))
        assert b'"choices"' in connection.recv(65536)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n", b"GET / HTTP/1.1\r\nx-upgrade: h2c\r\n\r\n"),
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n\r\nupgrade: h2c", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n\r\nupgrade: h2c"),
        (b"GET / HTTP/1.1\r\nupgrade: h2c\r\n", b"GET / HTTP/1.1\r\nupgrade: h2c\r\n"),
        (b"", b""),
    ],
)
def test_an_upgrade_is_not_asked_for_any_more(data: bytes, expected: bytes) -> None:
    assert without_upgrade(data) == expected


@pytest.mark.parametrize("cut", [0, 8, 30])
def test_only_one_path_becomes_a_websocket_wherever_its_head_is_cut(
    server: Gateway, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused here for want of a token; any other path answers as if nothing had been asked for."""
    monkeypatch.setenv("TOOLWIRE_BRIDGE_TOKEN", "a-token-that-is-long-enough")
    rest = b"Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\nSec-WebSocket-Version: 13\r\n"
    rest += b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    for path, status in ((b"/bridge", b"401"), (b"/bridge?a=b", b"401"), (b"/healthz", b"200"), (b"/bridges", b"404")):
        head = b"GET " + path + b" HTTP/1.1\r\n" + rest
        answer = raw(server.port, *((head[:cut], head[cut:]) if cut else (head,)))
        assert answer.startswith(b"HTTP/1.1 " + status), path


def test_a_websocket_is_not_begun_while_an_answer_is_under_way(server: Gateway) -> None:
    upgrade = b"GET /bridge HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    answer = raw(server.port, request_bytes(PATHS["chat"], question("chat", "demo/echo-tools")) + upgrade)
    assert b"101" not in answer[:15]
    assert b"HTTP/1.1 101" not in answer
