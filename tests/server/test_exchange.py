"""One model request end to end: back ends that fail in every way, clients that leave at every moment."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import time
from typing import Any

import pytest

from tests.garbage import held_by_cycles
from tests.server.answers import (
    ARGUMENTS,
    DIALECTS,
    PATHS,
    arguments_of,
    body_text,
    cut_stream,
    error_in,
    failure_in,
    frames,
    is_ended,
    question,
    streamed,
    text_of,
    whole,
)
from tests.server.conftest import backends_of
from tests.server.harness import (
    CLOSE,
    HOLD,
    LAST_CHUNK,
    RESET,
    Answer,
    Broken,
    Gateway,
    Step,
    Upstream,
    ask,
    chunk,
    connected,
    gateway,
    read_until,
    reply,
    request_bytes,
    server_config,
    stream_head,
    wait_until,
)
from toolwire.config.file import BackendConfig, Config, with_backends

BACKENDS = [f"{name}{ending}" for name in DIALECTS for ending in ("", "-anew")]
# Between two dialects every byte is written anew in any case.
PAIRS = [
    (client, backend)
    for client in DIALECTS
    for backend in BACKENDS
    if not backend.endswith("-anew") or backend == f"{client}-anew"
]
WAYS = [pytest.param(True, id="stream"), pytest.param(False, id="whole")]


def spoken(backend: str) -> str:
    return backend.removesuffix("-anew")


def send(server: Gateway, client: str, backend: str, model: str, *, stream: bool, **more: Any) -> Answer:
    return ask(server.port, "POST", PATHS[client], question(client, f"{backend}/{model}", stream=stream, **more))


def upstream_error(dialect: str, words: str, kind: str = "some_error") -> bytes:
    error = {"type": kind, "message": words}
    return json.dumps({"type": "error", "error": error} if dialect == "messages" else {"error": error}).encode()


@pytest.mark.parametrize(("client", "backend"), PAIRS)
def test_every_pair_carries_text_and_a_call(server: Gateway, upstream: Upstream, client: str, backend: str) -> None:
    upstream.on("fine-stream", streamed(spoken(backend), call=ARGUMENTS))
    answer = send(server, client, backend, "fine-stream", stream=True)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert text_of(client, answer.events) == "Hello there"
    assert arguments_of(client, answer.events) == ARGUMENTS
    assert is_ended(client, answer.events)
    upstream.on("fine-whole", whole(spoken(backend), call=ARGUMENTS))
    answer = send(server, client, backend, "fine-whole", stream=False)
    assert answer.headers["content-type"] == "application/json"
    assert body_text(client, answer.json) == "Hello there"
    assert "x-toolwire-loss" not in answer.headers


@pytest.mark.slow
@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize(("client", "backend"), PAIRS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
def test_H153_a_refusal_keeps_its_status_and_message(
    server: Gateway, upstream: Upstream, client: str, backend: str, status: int, stream: bool
) -> None:
    words = f"the words of {status}"
    upstream.on("refusal", [reply(status, upstream_error(spoken(backend), words), retry_after="77")])
    answer = send(server, client, backend, "refusal", stream=stream)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["retry-after"] == "77"
    assert words in error_in(client, answer.json)["message"]


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_dead_port_is_a_502_with_the_reason(server: Gateway, client: str, stream: bool) -> None:
    answer = send(server, client, "dead", "x", stream=stream)
    assert answer.status == 502
    assert "refused the connection" in error_in(client, answer.json)["message"]


BAD_REPLIES: dict[str, list[Step]] = {
    "html": [reply(200, b"<html><body>Welcome to the Wi-Fi</body></html>", "text/html")],
    "html as a stream": [reply(200, b"<html><body>Welcome to the Wi-Fi</body></html>", "text/event-stream")],
    "html as json": [reply(200, b"<html><body>Welcome to the Wi-Fi</body></html>")],
    "empty": [reply(200, b"")],
    "empty stream": [stream_head(), LAST_CHUNK],
    "closed unanswered": [CLOSE],
    "reset unanswered": [RESET],
    "closed after the head": [stream_head(), CLOSE],
    "not http": [b"SSH-2.0-OpenSSH_9.6\r\n", CLOSE],
    "array": [reply(200, b"[1, 2, 3]")],
    "null": [reply(200, b"null")],
    "empty object": [reply(200, b"{}")],
    "redirect": [reply(302, b"", location="http://127.0.0.1:1/")],
    "strange status": [reply(799, b"{}")],
    "deep": [reply(200, b"[" * 100_000)],
    "deep event": [stream_head(), chunk(b"data: " + b'{"a":' * 100_000 + b"\n\n"), LAST_CHUNK],
    "not utf-8": [reply(200, b'{"id": "\xff\xfe"}')],
    "not utf-8 stream": [stream_head(), chunk(b'data: {"id": "\xff\xfe"}\n\n'), LAST_CHUNK],
}


@pytest.mark.slow
@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize(("client", "backend"), PAIRS)
@pytest.mark.parametrize("case", list(BAD_REPLIES))
def test_garbage_is_a_502_in_the_dialect_of_the_client(
    server: Gateway, upstream: Upstream, client: str, backend: str, case: str, stream: bool
) -> None:
    upstream.on("garbage", BAD_REPLIES[case])
    before = len(upstream.requests("garbage"))
    answer = send(server, client, backend, "garbage", stream=stream)
    assert answer.status == 502, answer.body[:300]
    message = error_in(client, answer.json)["message"]
    if "html" in case:
        assert "Wi-Fi" in message
    # A kept connection may turn out to be closed just as the request goes out; then it goes out once more.
    assert before < len(upstream.requests("garbage")) <= before + 1 + ("unanswered" in case)


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize(("client", "backend"), PAIRS)
def test_an_error_inside_a_200_is_an_error(
    server: Gateway, upstream: Upstream, client: str, backend: str, stream: bool
) -> None:
    error = upstream_error(spoken(backend), "the model fell over", "overloaded_error")
    event = b"event: error\ndata: " + error + b"\n\n" if spoken(backend) == "messages" else b"data: " + error + b"\n\n"
    for play in ([stream_head(), chunk(event), LAST_CHUNK], [reply(200, error)]):
        upstream.on("error-in-200", play)
        answer = send(server, client, backend, "error-in-200", stream=stream)
        assert answer.status >= 400
        assert "the model fell over" in error_in(client, answer.json)["message"]


@pytest.mark.parametrize("ending", [CLOSE, RESET])
@pytest.mark.parametrize(("client", "backend"), PAIRS)
def test_a_cut_in_a_calls_arguments_ends_in_the_dialects_own_error(
    server: Gateway, upstream: Upstream, client: str, backend: str, ending: str
) -> None:
    play = cut_stream(spoken(backend))[:-1]
    upstream.on("cut", [*play, ending])
    before = len(upstream.requests("cut"))
    answer = send(server, client, backend, "cut", stream=True)
    assert answer.status == 200
    assert text_of(client, answer.events) == "Hello there"
    written = arguments_of(client, answer.events)
    assert ARGUMENTS.startswith(written)
    assert '{"city"' in written
    assert "closed the connection in the middle" in failure_in(client, answer.events)
    assert len(upstream.requests("cut")) == before + 1
    answer = send(server, client, backend, "cut", stream=False)
    assert answer.status == 502
    assert "closed the connection in the middle" in error_in(client, answer.json)["message"]


@pytest.mark.parametrize(("client", "backend"), PAIRS)
def test_a_stream_that_just_ends_early_is_no_success(
    server: Gateway, upstream: Upstream, client: str, backend: str
) -> None:
    """The transport ended in order, but the last events never came."""
    upstream.on("short", [*cut_stream(spoken(backend))[:-2], LAST_CHUNK])
    answer = send(server, client, backend, "short", stream=True)
    assert answer.status == 200
    assert failure_in(client, answer.events)
    assert '{"city"' in arguments_of(client, answer.events)


@pytest.mark.parametrize("kind", ["application/octet-stream", "text/plain", "", "Text/Event-Stream"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wrong_content_type_does_not_hide_a_good_stream(
    server: Gateway, upstream: Upstream, backend: str, kind: str
) -> None:
    upstream.on("odd-type", [stream_head(kind), *streamed(spoken(backend))[1:]])
    for client in DIALECTS:
        answer = send(server, client, backend, "odd-type", stream=True)
        assert text_of(client, answer.events) == "Hello there"
        assert is_ended(client, answer.events)


@pytest.mark.parametrize(("client", "backend"), PAIRS)
def test_a_whole_answer_to_a_client_that_wanted_a_stream(
    server: Gateway, upstream: Upstream, client: str, backend: str
) -> None:
    upstream.on("swapped", whole(spoken(backend), call=ARGUMENTS))
    answer = send(server, client, backend, "swapped", stream=True)
    assert text_of(client, answer.events) == "Hello there"
    assert json.loads(arguments_of(client, answer.events)) == json.loads(ARGUMENTS)
    upstream.on("swapped", streamed(spoken(backend)))
    answer = send(server, client, backend, "swapped", stream=False)
    assert body_text(client, answer.json) == "Hello there"


@pytest.fixture(scope="module")
def hasty(upstream: Upstream) -> Any:
    """A gateway that waits only a moment for its back ends."""
    backends = backends_of(upstream, idle_timeout=0.1, first_byte_timeout=0.15)
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield running


@pytest.mark.parametrize(("client", "backend"), PAIRS)
def test_a_stall_ends_by_the_idle_timeout(hasty: Gateway, upstream: Upstream, client: str, backend: str) -> None:
    upstream.on("stall", [*cut_stream(spoken(backend))[:-2], HOLD])
    answer = send(hasty, client, backend, "stall", stream=True)
    assert answer.status == 200
    assert "sent nothing for 0.1 s" in failure_in(client, answer.events)
    assert '{"city"' in arguments_of(client, answer.events)
    assert upstream.requests("stall")[-1].left.wait(2)


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("client", DIALECTS)
def test_H164_silence_ends_by_the_first_byte_timeout(
    hasty: Gateway, upstream: Upstream, client: str, stream: bool
) -> None:
    upstream.on("silence", [HOLD])
    before = len(upstream.requests("silence"))
    answer = send(hasty, client, client, "silence", stream=stream)
    assert answer.status == 504
    assert "did not answer in 0.15 s" in error_in(client, answer.json)["message"]
    assert len(upstream.requests("silence")) == before + 1


def test_the_connection_to_the_back_end_is_used_again(server: Gateway, upstream: Upstream) -> None:
    """The end of the chunked body comes after the answer is over; it must not cost the connection."""
    held: list[Step] = [*streamed("chat")[:-1], 0.05, LAST_CHUNK]
    upstream.on("kept", held)
    ports = set()
    for _ in range(4):
        answer = send(server, "chat", "chat", "kept", stream=True)
        assert is_ended("chat", answer.events)
        time.sleep(0.1)
        ports.add(upstream.requests("kept")[-1].peer)
    assert len(ports) == 1


def metric(server: Gateway, name: str) -> float:
    lines = ask(server.port, "GET", "/metrics").body.decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def test_an_answer_whose_last_bytes_are_late_is_a_success(server: Gateway, upstream: Upstream) -> None:
    upstream.on("late", [*streamed("chat")[:-1], 0.1, LAST_CHUNK])
    name = 'toolwire_requests_total{backend="chat",dialect="chat",outcome="client_gone"'
    before = metric(server, name)
    send(server, "chat", "chat", "late", stream=True)
    time.sleep(0.2)
    assert metric(server, name) == before


def left_after(upstream: Upstream, name: str, count: int, since: float) -> float:
    request = upstream.wait_request(name, count)
    assert request.left.wait(3), "the back end still has its connection"
    print(f"the back end was left after {(request.left_at - since) * 1000:.1f} ms")
    return request.left_at - since


def hang_up(connection: socket.socket, *, hard: bool) -> float:
    if hard:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return time.monotonic()


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(("client", "backend"), PAIRS)
def test_client_disconnects_in_mid_stream(
    server: Gateway, upstream: Upstream, client: str, backend: str, hard: bool
) -> None:
    upstream.on("mid", [*cut_stream(spoken(backend))[:-2], HOLD])
    count = len(upstream.requests("mid")) + 1
    connection = connected(server.port)
    connection.sendall(request_bytes(PATHS[client], question(client, f"{backend}/mid", stream=True)))
    read_until(connection, b"city")
    assert left_after(upstream, "mid", count, hang_up(connection, hard=hard)) < 1


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("client", DIALECTS)
def test_H158_client_disconnects_before_the_first_byte(
    server: Gateway, upstream: Upstream, client: str, stream: bool
) -> None:
    for play in ([HOLD], [stream_head(), HOLD]):
        upstream.on("mute", play)
        count = len(upstream.requests("mute")) + 1
        connection = connected(server.port)
        connection.sendall(request_bytes(PATHS[client], question(client, f"{client}/mute", stream=stream)))
        upstream.wait_request("mute", count)
        assert left_after(upstream, "mute", count, hang_up(connection, hard=False)) < 1


def test_client_disconnects_while_tokens_are_counted(server: Gateway, upstream: Upstream) -> None:
    upstream.on("count-mute", [HOLD])
    connection = connected(server.port)
    asked = {"model": "messages/count-mute", "messages": [{"role": "user", "content": "x"}]}
    connection.sendall(request_bytes("/v1/messages/count_tokens", asked))
    upstream.wait_request("count-mute")
    assert left_after(upstream, "count-mute", 1, hang_up(connection, hard=False)) < 1


@pytest.mark.slow
def test_H158_client_disconnects_between_two_attempts(upstream: Upstream) -> None:
    backend = BackendConfig(name="b", kind="openai-chat", base_url=upstream.url, retries=3, models=("m",))
    upstream.on("busy", [reply(429, b"{}", retry_after="0.3")])
    with gateway(with_backends(Config(server=server_config()), (backend,))) as server:
        connection = connected(server.port)
        connection.sendall(request_bytes(PATHS["chat"], question("chat", "b/busy")))
        upstream.wait_request("busy")
        hang_up(connection, hard=False)
        time.sleep(0.3)
        time.sleep(0.2)
        assert len(upstream.requests("busy")) == 1
        wait_until(lambda: metric(server, "toolwire_open_requests") == 0)


def test_client_disconnects_while_we_connect() -> None:
    """A listener whose queue is full takes no connection: the dial hangs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        backend = BackendConfig(name="b", kind="openai-chat", base_url=url, models=("m",))
        with gateway(with_backends(Config(server=server_config()), (backend,))) as server:
            connection = connected(server.port)
            connection.sendall(request_bytes(PATHS["chat"], question("chat", "b/m")))
            wait_until(lambda: metric(server, "toolwire_open_requests") == 1)
            since = hang_up(connection, hard=False)
            wait_until(lambda: metric(server, "toolwire_open_requests") == 0)
            assert time.monotonic() - since < 1
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize("backend", DIALECTS)
def test_a_stopped_reader_that_closes_frees_the_back_end(server: Gateway, upstream: Upstream, backend: str) -> None:
    flood: list[Step] = [stream_head(), *(chunk(one) for one in frames(spoken(backend))[:-4])]
    delta = next(one for one in frames(spoken(backend), text="x" * 20_000) if b"xxx" in one)
    upstream.on("flood", [*flood, *[chunk(delta * 10)] * 200, HOLD])
    count = len(upstream.requests("flood")) + 1
    connection = connected(server.port, buffer=4096)
    connection.sendall(request_bytes(PATHS["chat"], question("chat", f"{backend}/flood", stream=True)))
    connection.recv(1024)
    request = upstream.wait_request("flood", count)
    wait_until_still(request)
    assert left_after(upstream, "flood", count, hang_up(connection, hard=False)) < 1


def wait_until_still(request: Any) -> None:
    """Until back pressure has reached the back end."""
    seen = -1
    while request.written != seen:
        seen = request.written
        time.sleep(0.1)


def test_losses_are_in_a_header(server: Gateway, upstream: Upstream) -> None:
    upstream.on("lossy", whole("messages"))
    answer = send(server, "chat", "messages", "lossy", stream=False, n=2, logprobs=True, top_logprobs=2)
    lost = answer.headers["x-toolwire-loss"].split(", ")
    assert "sampling.n" in lost
    assert "sampling.logprobs" in lost
    upstream.on("lossy", streamed("messages"))
    answer = send(server, "chat", "messages", "lossy", stream=True, n=2)
    assert answer.headers["x-toolwire-loss"] == "sampling.n"


@pytest.mark.parametrize("name", ["a\r\nset-cookie: a=b", "\ud800", "\x00", "naïve", "a" * 5000, "x, y;n=9"])
def test_a_lost_members_name_cannot_break_the_header_or_the_metrics(
    server: Gateway, upstream: Upstream, name: str
) -> None:
    upstream.on("lossy", whole("messages"))
    answer = send(server, "chat", "messages", "lossy", stream=False, **{name: 1})
    assert answer.status == 200
    assert "set-cookie" not in answer.headers
    assert "request." in answer.headers["x-toolwire-loss"]
    assert ask(server.port, "GET", "/metrics").status == 200


def test_rate_limit_headers_pass(server: Gateway, upstream: Upstream) -> None:
    content = whole("chat")[0]
    assert isinstance(content, bytes)
    extra = b"x-ratelimit-remaining-requests: 41\r\nset-cookie: secret=1\r\nx-request-id: up-1\r\n"
    upstream.on("limits", [content.replace(b"content-type", extra + b"content-type", 1)])
    answer = send(server, "chat", "chat", "limits", stream=False)
    assert answer.headers["x-ratelimit-remaining-requests"] == "41"
    assert answer.headers["x-upstream-x-request-id"] == "up-1"
    assert "set-cookie" not in answer.headers


def test_a_strange_upstream_header_cannot_break_the_answer(server: Gateway, upstream: Upstream) -> None:
    content = whole("chat")[0]
    assert isinstance(content, bytes)
    upstream.on("odd-header", [content.replace(b"content-type", b"x-ratelimit-a: \xff\xc3\t b\r\ncontent-type", 1)])
    answer = send(server, "chat", "chat", "odd-header", stream=False)
    assert answer.status == 200


def test_answers_come_in_order_on_one_kept_connection(server: Gateway, upstream: Upstream) -> None:
    upstream.on("again", streamed("chat"))
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for stream in (True, False, True):
        connection.request("POST", PATHS["chat"], json.dumps(question("chat", "chat/again", stream=stream)))
        response = connection.getresponse()
        assert response.status == 200
        assert b"Hello" in response.read()
    connection.close()


FAILURES: dict[str, list[Step]] = {
    "400": [reply(400, b'{"error":{"message":"no"}}')],
    "500": [reply(500, b'{"error":{"message":"no"}}')],
    "closed": [CLOSE],
    "not HTTP": [b"SSH-2.0-x\r\n\r\n", CLOSE],
    "not a stream": [stream_head(), chunk(b"data: {}\n\n"), CLOSE],
    "cut": cut_stream("chat"),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_request_needs_no_garbage_collector(
    server: Gateway, upstream: Upstream, failure: str, dialect: str, stream: bool
) -> None:
    upstream.on("failing", FAILURES[failure])

    def fail() -> None:
        for _ in range(3):
            ask(server.port, "POST", PATHS[dialect], question(dialect, "chat/failing", stream=stream))

    assert held_by_cycles(fail) == []


def test_a_fault_of_our_own_needs_no_garbage_collector() -> None:
    backend = BackendConfig(name="broken", kind="scripted")
    with gateway(with_backends(Config(server=server_config()), (backend,))) as server:
        server.app._running().backends["broken"] = Broken()

        def fail() -> None:
            for model in ("x", "at once") * 2:
                for stream in (True, False):
                    asked = question("chat", f"broken/{model}", stream=stream)
                    ask(server.port, "POST", PATHS["chat"], asked)

        assert held_by_cycles(fail) == []
