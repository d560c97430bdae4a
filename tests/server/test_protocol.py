"""Connections: order, refusals, pipelining, clients that do not read, and requests that ask for another protocol.

tests/contract/test_http_framing.py has where requests begin and end.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import weakref
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any

import pytest

from tests.server.answers import PATHS, question, whole
from tests.server.harness import Gateway, Upstream, connected, raw, read_until, request_bytes
from tests.server.wire import Line, responses_by_h11
from toolwire.config.file import Config, ServerConfig
from toolwire.server.connections import Connections
from toolwire.server.http_request import HttpRequest

GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n"


class Slow:
    """Answers when it is released; refuses at once what does not begin with /x."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.began = 0
        self.left = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.began += 1
        waiting = asyncio.ensure_future(self.release.wait())
        leaving = asyncio.ensure_future(self._gone(receive))
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        self.left += leaving.done()
        waiting.cancel()
        leaving.cancel()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def _gone(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass


async def at_once(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """Answers without a look at the body."""
    await send({"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"no"})


def run_connection(play: Callable[[Line, Slow], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        slow = Slow()
        line = Line(slow)
        await play(line, slow)
        await line.hang_up()

    asyncio.run(main())


@pytest.mark.slow
def test_few_pipelined_requests_are_parsed_and_the_rest_is_not_read() -> None:
    """51 MB of them were held as objects, 3.4 GB, while the client read slowly."""

    async def play(line: Line, slow: Slow) -> None:
        sent = 0
        while not line.wire.is_paused:
            await line.hear(GET * 500)
            sent += 500
        assert sent * len(GET) < 200_000
        assert slow.began == 1
        assert sum(isinstance(one, HttpRequest) for one in gc.get_objects()) < 40
        slow.release.set()
        for _ in range(sent):
            await line.settle()
        assert slow.began == sent
        assert not line.wire.is_paused
        assert len(responses_by_h11(line.wire.written, ["GET"] * sent)) == sent

    run_connection(play)


def test_a_disconnect_is_noticed_behind_a_pipelined_request() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(GET + GET)
        assert not line.wire.is_paused
        line.protocol.connection_lost(None)
        await line.settle()
        assert (slow.began, slow.left) == (1, 1)

    run_connection(play)


def test_a_body_that_the_application_ignores_is_not_read() -> None:
    async def main() -> None:
        taken = asyncio.Event()

        async def late(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
            await taken.wait()
            await receive()
            await asyncio.sleep(3600)

        line = Line(late)
        await line.hear(POST.replace(b"10", b"10000000") + b"x" * 60_000)
        assert not line.wire.is_paused
        await line.hear(b"x" * 60_000)
        assert line.wire.is_paused
        taken.set()
        await line.settle()
        assert not line.wire.is_paused
        for task in list(line.connections.tasks):
            task.cancel()
        await line.hang_up()

    asyncio.run(main())


def test_a_body_that_was_not_taken_does_not_stop_the_next_request() -> None:
    async def main() -> None:
        line = Line(at_once)
        for _ in range(3):
            await line.hear(POST.replace(b"10", b"100000") + b"x" * 100_000)
            assert not line.wire.is_paused
        assert len(responses_by_h11(line.wire.written, ["POST"] * 3)) == 3
        assert not line.is_over
        await line.hang_up()

    asyncio.run(main())


def test_a_mistake_is_answered_after_the_requests_before_it() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(GET + b"NONSENSE\r\n\r\n" + GET)
        assert line.wire.written == b""
        slow.release.set()
        await line.settle()
        first, second = responses_by_h11(line.wire.written, ["GET", "GET"])
        assert (first.status, first.is_last) == (200, False)
        assert (second.status, second.is_last) == (400, True)
        assert "Invalid method" in json.loads(second.body)["error"]["message"]
        assert slow.began == 1

    run_connection(play)


def test_a_mistake_in_the_body_ends_its_own_request() -> None:
    async def play(line: Line, slow: Slow) -> None:
        start = b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"
        await line.hear(start, b"zz\r\n")
        (response,) = responses_by_h11(line.wire.written, ["POST"])
        assert (response.status, response.is_last) == (400, True)
        assert (slow.began, slow.left) == (1, 1)

    run_connection(play)


def test_a_refused_body_is_drained_within_limits() -> None:
    async def main() -> None:
        line = Line(at_once)
        await line.hear(POST.replace(b"10", b"999999999"))
        (response,) = responses_by_h11(line.wire.written, ["POST"])
        assert response.is_last
        assert line.wire.has_eof
        for _ in range(128):
            line.protocol.data_received(bytes(1 << 20))
            assert not line.wire.ended
        line.protocol.data_received(b"x")
        assert line.wire.ended == "aborted"
        await line.hang_up()

    asyncio.run(main())


def test_a_drain_ends_when_its_time_is_over() -> None:
    async def main() -> None:
        line = Line(at_once)
        await line.hear(POST, b"x" * 10)
        line.now += 29
        line.connections.sweep()
        assert not line.wire.ended
        line.now += 1
        line.connections.sweep()
        assert line.wire.ended == "aborted"
        await line.hang_up()

    asyncio.run(main())


def test_the_last_request_is_closed_without_a_drain() -> None:
    async def main() -> None:
        line = Line(at_once)
        await line.hear(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert (line.wire.ended, line.wire.has_eof) == ("closed", False)
        await line.hang_up()

    asyncio.run(main())


def test_a_client_that_reads_nothing_is_disconnected() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(GET)
        line.protocol.pause_writing()
        line.wire.unsent = 100_000
        for _ in range(3):  # it reads a little each time
            line.now += 300
            line.wire.unsent -= 1
            line.connections.sweep()
            assert not line.wire.ended
        line.now += 300
        line.connections.sweep()
        assert line.wire.ended == "aborted"

    run_connection(play)


def test_a_client_that_reads_again_has_all_the_time() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(GET)
        line.protocol.pause_writing()
        line.protocol.resume_writing()
        line.now += 10_000
        line.connections.sweep()
        assert not line.wire.ended

    run_connection(play)


def limited(play: Callable[[Line, Slow], Coroutine[Any, Any, None]], **limits: Any) -> None:
    async def main() -> None:
        slow = Slow()
        line = Line(slow, Config(server=ServerConfig(**limits)))
        await play(line, slow)
        await line.hang_up()

    asyncio.run(main())


def refused(line: Line) -> tuple[int, str]:
    """The status and the code of the only response, which ends the connection."""
    (response,) = responses_by_h11(line.wire.written, ["GET"])
    assert response.is_last
    assert line.wire.has_eof
    return response.status, json.loads(response.body)["error"]["code"]


START = b"GET /x HTTP/1.1\r\nHost: localhost\r\n"
BIG_HEADS: dict[str, bytes] = {
    "many": b"".join(b"x-%d: y\r\n" % number for number in range(20_000)),
    "one growing value": b"x: " + b"y" * 200_000,
    "one growing name": b"x" * 200_000,
    "target": b"",
    "empty lines": b"",
}


@pytest.mark.parametrize("size", [1, 100, 1460, 65536, 1 << 20])
@pytest.mark.parametrize("case", list(BIG_HEADS))
def test_a_large_head_is_refused_before_it_is_read(case: str, size: int) -> None:
    data = {"target": b"GET /" + b"x" * 200_000, "empty lines": b"\r\n" * 100_000}.get(case) or START + BIG_HEADS[case]

    async def play(line: Line, slow: Slow) -> None:
        sent = 0
        for start in range(0, len(data), size):
            line.protocol.data_received(data[start : start + size])
            sent += size
            if line.is_over:
                break
        assert sent <= (8 << 10) + 1024 + max(1024, size)
        assert refused(line) == (431, "head_too_large")
        assert slow.began == 0

    limited(play, max_head_kb=8)


def test_a_head_just_within_the_limit_is_read() -> None:
    head = START + b"x: "
    head += b"y" * (8192 - 4 - len(head)) + b"\r\n\r\n"

    async def play(line: Line, slow: Slow) -> None:
        slow.release.set()
        for cut in range(1, len(head), 97):
            await line.hear(head[:cut], head[cut:] + GET)
        assert not line.is_over

    limited(play, max_head_kb=8)


def test_many_headers_are_refused() -> None:
    fields = [b"x-%d: y\r\n" % number for number in range(127)]

    async def play(line: Line, slow: Slow) -> None:
        slow.release.set()
        await line.hear(START + b"".join(fields) + b"\r\n")
        assert slow.began == 1
        line.wire.written = b""
        await line.hear(START + b"".join(fields) + b"one: more\r\n\r\n")
        assert refused(line) == (431, "head_too_large")
        assert slow.began == 1

    limited(play)


@pytest.mark.parametrize(
    "rest", [b"0\r\nx: " + b"y" * 100_000, b"0\r\n" + b"x: y\r\n" * 20_000, b"5;" + b"x" * 100_000]
)
def test_large_trailers_and_extensions_are_refused(rest: bytes) -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(START + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n" + rest)
        assert refused(line) == (431, "head_too_large")
        assert slow.left == 1

    limited(play)


def test_a_body_of_unknown_length_may_be_as_long_as_it_likes() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(START + b"Transfer-Encoding: chunked\r\n\r\n", b"7d0\r\n" + b"x" * 2000 + b"\r\n")
        for _ in range(500):
            await line.hear(b"1\r\nx\r\n" * 200)
        assert not line.is_over
        slow.release.set()
        await line.hear(b"0\r\n\r\n")
        assert b" 200 OK" in line.wire.written

    limited(play, max_head_kb=1)


def test_a_slow_head_is_refused_however_often_a_byte_comes() -> None:
    async def play(line: Line, slow: Slow) -> None:
        for byte in START[:9]:
            await line.hear(bytes([byte]))
            line.connections.sweep()
            assert not line.is_over
            line.now += 1
        line.now += 1
        line.connections.sweep()
        assert refused(line) == (408, "request_timeout")
        assert slow.began == 0

    limited(play, head_seconds=10)


def test_a_slow_head_behind_another_request_is_refused_too() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(GET + START)
        line.now += 1000  # the first one is still being answered
        line.connections.sweep()
        assert not line.is_over
        slow.release.set()
        await line.settle()
        line.now += 10
        line.connections.sweep()
        first, second = responses_by_h11(line.wire.written, ["GET", "GET"])
        assert (first.status, second.status) == (200, 408)

    limited(play, head_seconds=10)


@pytest.mark.parametrize("sent", [b"", b"\r\n", GET])
def test_a_silent_connection_is_closed_without_an_answer(sent: bytes) -> None:
    async def play(line: Line, slow: Slow) -> None:
        slow.release.set()
        await line.hear(*([sent] if sent else []))
        answers = line.wire.written
        line.now += 5
        line.connections.sweep()
        assert (line.wire.ended, line.wire.written) == ("closed", answers)

    limited(play, idle_seconds=5)


def test_an_answer_may_take_as_long_as_it_likes() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(GET)
        line.now += 100_000
        line.connections.sweep()
        assert not line.is_over

    limited(play, idle_seconds=5, head_seconds=5)


def test_the_server_ends_idle_connections_and_finishes_answers() -> None:
    async def play(line: Line, slow: Slow) -> None:
        await line.hear(GET + GET)
        line.protocol.shutdown()
        assert not line.wire.ended
        slow.release.set()
        await line.settle()
        assert slow.began == 1
        (response,) = responses_by_h11(line.wire.written, ["GET"])
        assert response.is_last
        idle = Line(slow)
        idle.protocol.shutdown()
        assert idle.wire.ended == "closed"
        await idle.hang_up()

    run_connection(play)


def test_an_error_of_the_application_is_logged_and_closes(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        raise ZeroDivisionError("a mistake")

    async def main() -> None:
        line = Line(broken)
        await line.hear(GET)
        assert line.wire.ended == "aborted"
        await line.hang_up()

    asyncio.run(main())
    assert "ZeroDivisionError: a mistake" in caplog.text


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        [GET * 3],
        [POST, b"12345"],
        [GET.replace(b"\r\n\r\n", b"\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n")],
        [b"NONSENSE\r\n\r\n"],
        [GET + GET + b"NONSENSE\r\n\r\n"],
        [CHUNKED, b"zz"],
    ],
)
def test_a_connection_that_is_over_is_freed_at_once(pieces: list[bytes]) -> None:
    """Without the collector of cycles, which hardly runs."""

    async def main() -> None:
        line = Line(at_once, connections=Connections(ServerConfig()))
        await line.hear(*pieces)
        await line.hang_up()
        left = weakref.ref(line.protocol)
        del line
        assert left() is None

    gc.collect()
    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def test_targets_become_paths() -> None:
    seen: list[tuple[str, bytes]] = []

    async def note(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        seen.append((scope["path"], scope["query_string"]))
        await at_once(scope, receive, send)

    async def main() -> None:
        line = Line(note)
        for target in (b"/a%20b?c=%20d", b"http://localhost/x?y", b"http://localhost", b"/a?b?c", b"*"):
            await line.hear(b"OPTIONS %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
        await line.hang_up()

    asyncio.run(main())
    assert seen == [("/a b", b"c=%20d"), ("/x", b"y"), ("/", b""), ("/a", b"b?c"), ("*", b"")]


def test_a_small_answer_is_one_segment(server: Gateway) -> None:
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], question("chat", "demo/echo-tools")))
        assert b'"choices"' in connection.recv(65536)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: localhost\r\nOrigin: https://evil.example", b"403"),
        ("Host: evil.example", b"403"),
        ("Host: localhost\r\nContent-Type: text/html", b"415"),
    ],
)
def test_a_smuggled_request_does_not_run(server: Gateway, upstream: Upstream, headers: str, status: bytes) -> None:
    """The server renamed `upgrade:` to `x-upgrade:` in what came after its answer: a body got two bytes longer with each, and its end
    was read as another request."""
    upstream.on("smuggled", whole("chat"))
    smuggled = request_bytes(PATHS["chat"], question("chat", "chat/smuggled"))
    smuggled += b"\n" * (len(smuggled) % 2)
    for more in range(-3, 4):
        body = b"\r\nupgrade: x" * (len(smuggled) // 2 + more) + b"\r\n\r\n" + smuggled
        start = f"POST {PATHS['chat']} HTTP/1.1\r\n{headers}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with connected(server.port) as connection:
            connection.sendall(start)
            answer = read_until(connection, b"\r\n\r\n")
            connection.sendall(body)
            answer += b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.count(b"HTTP/1.1 ") == 1
    assert upstream.requests("smuggled") == []


def test_a_refused_client_that_sends_its_whole_body_first_reads_the_answer(server: Gateway) -> None:
    body = b"x" * (32 << 20)
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], body, origin="https://evil.example"))
        response = http.client.HTTPResponse(connection)
        response.begin()
        assert response.status == 403
        assert json.loads(response.read())["error"]["code"] == "origin_refused"


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
    assert answer.count(b"HTTP/1.1 200") == answer.count(b"HTTP/1.1 400") == 1
    assert b"HTTP/1.1 101" not in answer


def test_a_websocket_with_a_body_is_an_ordinary_request(server: Gateway) -> None:
    upgrade = b"GET /bridge HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n"
    smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw(server.port, upgrade + b"Content-Length: %d\r\n\r\n" % len(smuggled) + smuggled)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'{"windows":[]}')
    assert answer.count(b"HTTP/1.1 ") == 1


def test_empty_lines_before_a_request_are_skipped(server: Gateway) -> None:
    answer = raw(server.port, b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
