"""Signs of life while a back end thinks, and readers that stop reading."""

from __future__ import annotations

import asyncio
import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.answers import (
    ARGUMENTS,
    DIALECTS,
    KINDS,
    PATHS,
    arguments_of,
    cut_stream,
    failure_in,
    frames,
    is_ended,
    question,
    streamed,
    text_of,
)
from tests.server.conftest import backends_of, server, upstream
from tests.server.harness import (
    CLOSE,
    HOLD,
    LAST_CHUNK,
    Gateway,
    Step,
    Upstream,
    answer_of,
    ask,
    chunk,
    connected,
    gateway,
    process,
    read_until,
    reply,
    request_bytes,
    server_config,
    stream_head,
    wait_until,
)
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.dialects import DIALECTS as BY_NAME
from toolwire.server.reply import EventStream, Reply

__all__ = ["server", "upstream"]  # fixtures

pytestmark = pytest.mark.slow

FAMILIES = [*((dialect, dialect) for dialect in DIALECTS), ("chat", "messages"), ("responses", "chat")]
HEARTBEATS = {
    "chat": (":", "keep-alive"),
    "responses": (":", "keep-alive"),
    "messages": ("ping", {"type": "ping"}),
}


@pytest.fixture(scope="module")
def lively(upstream: Upstream) -> Iterator[Gateway]:
    """A heartbeat every twentieth of a second, and back ends that may take a few of them."""
    backends = backends_of(upstream, idle_timeout=0.25, first_byte_timeout=0.25)
    server = server_config(keep_alive_seconds=0.05)
    with gateway(with_backends(Config(server=server), backends)) as running:
        yield running


def beats_in(dialect: str, events: list[tuple[str, Any]]) -> int:
    return events.count(HEARTBEATS[dialect])


@pytest.mark.parametrize(("client", "backend"), FAMILIES)
def test_H151_heartbeats_begin_before_the_first_token(
    lively: Gateway, upstream: Upstream, client: str, backend: str
) -> None:
    play = streamed(backend, call=ARGUMENTS)
    upstream.on("thinking", [0.13, *play[:4], 0.13, *play[4:]])
    answer = ask(lively.port, "POST", PATHS[client], question(client, f"{backend}/thinking", stream=True))
    events = answer.events
    assert events[:2] == [HEARTBEATS[client]] * 2
    assert 3 <= beats_in(client, events) <= 8
    rest = [event for event in events if event != HEARTBEATS[client]]
    assert text_of(client, rest) == "Hello there"
    assert arguments_of(client, rest) == ARGUMENTS
    assert is_ended(client, rest)


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("status", [401, 429])
def test_H153_an_error_after_a_heartbeat_comes_in_the_stream(
    lively: Gateway, upstream: Upstream, client: str, status: int
) -> None:
    upstream.on("late-error", [0.11, reply(status, b'{"error": {"message": "too late for a status"}}')])
    answer = ask(lively.port, "POST", PATHS[client], question(client, f"{client}/late-error", stream=True))
    assert answer.status == 200
    assert beats_in(client, answer.events) >= 1
    hint = f' This is from the back end "{client}": check the key of [backends.{client}].' if status == 401 else ""
    assert failure_in(client, answer.events) == "too late for a status" + hint


@pytest.mark.parametrize(
    ("client", "backend", "ending"),
    [(client, backend, CLOSE if client != backend else HOLD) for client, backend in FAMILIES],
)
def test_H152_a_dead_back_end_ends_the_stream_in_spite_of_heartbeats(
    lively: Gateway, upstream: Upstream, client: str, backend: str, ending: str
) -> None:
    upstream.on("dying", [0.08, ending])
    answer = ask(lively.port, "POST", PATHS[client], question(client, f"{backend}/dying", stream=True))
    assert beats_in(client, answer.events) >= 1
    assert failure_in(client, answer.events)
    upstream.on("dying", [*cut_stream(backend)[:-2], 0.13, ending])
    answer = ask(lively.port, "POST", PATHS[client], question(client, f"{backend}/dying", stream=True))
    assert beats_in(client, answer.events) >= 1
    assert '{"city"' in arguments_of(client, answer.events)
    assert failure_in(client, answer.events)


def test_comments_of_the_back_end_are_no_answer(lively: Gateway, upstream: Upstream) -> None:
    """A router that says ": PROCESSING" every moment keeps the upstream alive; the client hears our own heartbeat."""
    comments = [chunk(b": PROCESSING\n\n"), 0.03] * 10
    upstream.on("comments", [stream_head(), *comments, *streamed("chat")[1:]])
    answer = ask(lively.port, "POST", PATHS["chat"], question("chat", "chat/comments", stream=True))
    assert beats_in("chat", answer.events) >= 2
    assert text_of("chat", answer.events) == "Hello there"


def test_a_steady_stream_has_no_heartbeats(upstream: Upstream) -> None:
    """It takes longer than the time between two heartbeats; no pause in it does."""
    steps = streamed("chat", pause=0.3)
    assert steps.count(0.3) * 0.3 > 1.0
    upstream.on("steady", steps)
    server = server_config(keep_alive_seconds=1.0)
    with gateway(with_backends(Config(server=server), backends_of(upstream))) as running:
        answer = ask(running.port, "POST", PATHS["chat"], question("chat", "chat/steady", stream=True))
    assert text_of("chat", answer.events) == "Hello there"
    assert beats_in("chat", answer.events) == 0


def test_a_client_that_disconnects_between_heartbeats_is_noticed(lively: Gateway, upstream: Upstream) -> None:
    upstream.on("leave-beat", [HOLD])
    connection = connected(lively.port)
    connection.sendall(request_bytes(PATHS["chat"], question("chat", "chat/leave-beat", stream=True)))
    read_until(connection, b"keep-alive")
    connection.close()
    since = time.monotonic()
    request = upstream.wait_request("leave-beat")
    assert request.left.wait(2)
    assert request.left_at - since < 1


class Client:
    """A client that takes nothing until it is let go."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.reading = asyncio.Event()
        self.waiting = 0

    async def send(self, message: Any) -> None:
        self.waiting += 1
        await self.reading.wait()
        self.waiting -= 1
        self.taken.append(message)


def test_heartbeats_do_not_pile_up_behind_a_reader_that_stopped() -> None:
    async def main() -> None:
        client = Client()
        loop = asyncio.get_running_loop()
        stream = EventStream(loop, Reply(client.send, BY_NAME["chat"], "req_1", None), 0.02)
        writing = asyncio.create_task(stream.write(b"data: 1\n\n"))
        await asyncio.sleep(0.2)
        assert client.waiting == 1
        client.reading.set()
        await writing
        await asyncio.sleep(0.06)
        client.reading.clear()
        await asyncio.sleep(0.2)
        assert client.waiting <= 1
        stream.close()
        bodies = [message["body"] for message in client.taken if message["type"] == "http.response.body"]
        assert bodies[0] == b"data: 1\n\n"
        assert set(bodies[1:]) <= {b": keep-alive\n\n"}

    asyncio.run(main())


FLOOD = 24 << 20


@pytest.mark.slow
@pytest.mark.parametrize(("client", "backend"), [("chat", "chat"), ("messages", "chat"), ("responses", "messages")])
def test_a_slow_reader_never_grows_memory(upstream: Upstream, tmp_path: Path, client: str, backend: str) -> None:
    toml = f'log = "warning"\n[backends.b]\nkind = "{KINDS[backend]}"\nbase_url = "{upstream.url}/v1"\nmodels = ["m"]'
    delta = next(one for one in frames(backend, text="x" * 32_000) if b"xxx" in one)
    count = FLOOD // len(delta)
    upstream.on("big-flood", flood(backend, count))
    upstream.on("warm", flood(backend, count // 16))
    before = len(upstream.requests("big-flood"))
    with process(tmp_path, toml) as running:
        for _ in range(3):
            ask(running.port, "POST", PATHS[client], question(client, "b/warm", stream=True))
        memory = running.memory
        connection = connected(running.port, 60, buffer=4096)
        connection.sendall(request_bytes(PATHS[client], question(client, "b/big-flood", stream=True)))
        start = connection.recv(1024)
        request = upstream.wait_request("big-flood", before + 1)
        wait_until_still(request)
        grown = running.memory - memory
        print(
            f"{client} from {backend}: grew by {grown / 1e6:.1f} MB, the back end wrote {request.written / 1e6:.1f} MB"
        )
        assert grown < 4 << 20
        assert request.written < FLOOD / 2
        body = body_after(connection, start)
    assert body.count(b"x" * 16_000) >= count
    assert {"chat": b"[DONE]", "messages": b"message_stop", "responses": b"response.completed"}[client] in body


def flood(backend: str, count: int) -> list[Step]:
    """A stream with its first text delta many times over."""
    every = frames(backend, text="x" * 32_000)
    first = next(place for place, one in enumerate(every) if b"xxx" in one)
    chunks = [chunk(one) for one in every]
    return [stream_head(), *chunks[:first], *[chunks[first]] * count, *chunks[first + 1 :], LAST_CHUNK]


def wait_until_still(request: Any) -> None:
    seen = -1
    while request.written != seen:
        seen = request.written
        time.sleep(0.25)


def body_after(connection: socket.socket, start: bytes) -> bytes:
    """The rest of a response whose first bytes are read already."""
    data = bytearray(start)
    while b"\r\n0\r\n\r\n" not in data[-16:]:
        piece = connection.recv(1 << 20)
        assert piece
        data += piece
    connection.close()
    return bytes(data)


@pytest.mark.slow
def test_a_reader_that_stops_for_longer_than_the_idle_timeout_is_no_fault_of_the_back_end(upstream: Upstream) -> None:
    delta = next(one for one in frames("chat", text="x" * 32_000) if b"xxx" in one)
    play = [stream_head(), *(chunk(one) for one in frames("chat")[:2]), *[chunk(delta)] * 600]
    upstream.on("patience", [*play, *streamed("chat")[-4:]])
    backend = BackendConfig(
        name="b", kind="openai-chat", base_url=upstream.url, models=("m",), idle_timeout=0.3, retries=0
    )
    server = server_config(keep_alive_seconds=0.1)
    with gateway(with_backends(Config(server=server), (backend,))) as running:
        connection = connected(running.port, buffer=4096)
        connection.sendall(request_bytes(PATHS["chat"], question("chat", "b/patience", stream=True)))
        wait_until_still(upstream.wait_request("patience"))
        time.sleep(0.3)
        time.sleep(0.3)
        response = http.client.HTTPResponse(connection)
        response.begin()
        answer = answer_of(response)
        connection.close()
        assert answer.body.endswith(b"data: [DONE]\n\n")
        assert answer.body.count(b"keep-alive") <= 2
        wait_until(lambda: b"toolwire_open_requests 0" in ask(running.port, "GET", "/metrics").body)
