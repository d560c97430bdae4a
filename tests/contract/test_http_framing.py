"""Request boundaries: our server and h11 agree, whatever is rejected and however the bytes are split.

A difference is request smuggling: the rest of a body that was refused would run as a request of its own.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server.wire import Line, Response, requests_by_h11, responses_by_h11
from tests.thorough import examples, thin_out
from toolwire.config.file import BackendConfig, Config, ServerConfig, StoreConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.server import App

PATH = "/v1/chat/completions"
CHAT = json.dumps({"model": "demo/echo-tools", "messages": [{"role": "user", "content": "run"}]}).encode()
# An `upgrade:` line gets two bytes longer where a server renames it on the wire: the end of the body then is read as a request.
SMUGGLED = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (PATH.encode(), len(CHAT), CHAT)
ATTACK = b"\r\n".join([b"\r\nUpgrade: a", b"upgrade: b", b"", b"", b"0", b"", SMUGGLED])
NEXT = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

# status: what refuses it, and the request.
REFUSALS: dict[str, tuple[int, str, str, dict[str, str]]] = {
    "no key": (401, "POST", PATH, {}),
    "wrong key": (401, "POST", PATH, {"authorization": "Bearer wrong"}),
    "origin": (403, "POST", PATH, {"origin": "https://evil.example"}),
    "host": (403, "POST", PATH, {"host": "evil.example"}),
    "path": (404, "POST", "/v1/nowhere", {}),
    "method": (405, "PUT", PATH, {}),
    "type": (415, "POST", PATH, {"content-type": "text/html"}),
    "encoding": (415, "POST", PATH, {"content-encoding": "gzip"}),
    "busy": (429, "POST", PATH, {}),
    "preflight": (403, "OPTIONS", PATH, {"origin": "https://evil.example", "access-control-request-method": "POST"}),
    "page": (200, "GET", "/healthz", {}),
}


def head(method: str, path: str, headers: dict[str, str], framing: str) -> bytes:
    given = {"host": "localhost", "content-type": "application/json"} | headers
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), framing]
    return "\r\n".join([*lines, "", ""]).encode()


def attack(case: str, *, is_chunked: bool) -> bytes:
    _, method, path, headers = REFUSALS[case]
    if is_chunked:
        body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (ATTACK[:20], ATTACK[20:])) + b"0\r\n\r\n"
        return head(method, path, headers, "transfer-encoding: chunked") + body + NEXT
    return head(method, path, headers, f"content-length: {len(ATTACK)}") + ATTACK + NEXT


class Counted:
    """The real application, and which requests it has got."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.seen: list[tuple[str, str]] = []

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        self.seen.append((scope["method"], scope["raw_path"].decode()))
        await self._app(scope, receive, send)


@asynccontextmanager
async def gateway(case: str) -> AsyncIterator[App]:
    keys = (Secret("right"),) if "key" in case else ()
    server = ServerConfig(log="warning", keys=keys, max_body_mb=1, max_streams=1)
    scripted = BackendConfig(name="scripted", kind="scripted")
    app = App(with_backends(Config(server=server, store=StoreConfig(kind="memory")), (scripted,)))
    app._log.close()  # thousands of refusals
    app.start()
    occupied = Line(app)
    if case == "busy":
        mark = base64.b64encode(json.dumps({"text": "late", "delay": 3600}).encode()).decode()
        body = {"model": "scripted/scripted", "messages": [{"role": "user", "content": f"[[script:{mark}]]"}]}
        data = json.dumps(body).encode()
        await occupied.hear(head("POST", PATH, {}, f"content-length: {len(data)}") + data)
    yield app
    await occupied.hang_up()
    await app.stop()


async def play(app: App, *pieces: bytes) -> list[Response]:
    """Asserts that what the application saw is what h11 sees, up to a response that ends the connection."""
    counted = Counted(app)
    line = Line(counted)
    await line.hear(*pieces)
    framed = [(method, target) for method, target, _ in requests_by_h11(b"".join(pieces))]
    assert counted.seen == framed[: len(counted.seen)], pieces
    responses = responses_by_h11(line.wire.written, [method for method, _ in counted.seen])
    is_cut_short = len(counted.seen) < len(framed)
    assert responses[-1].is_last == is_cut_short == line.is_over, pieces
    await line.hang_up()
    return responses


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize("case", list(REFUSALS))
def test_the_body_of_a_refused_request_is_never_a_request(case: str, is_chunked: bool) -> None:
    data = attack(case, is_chunked=is_chunked)
    assert len(requests_by_h11(data)) == 2

    async def main() -> None:
        async with gateway(case) as app:
            for cut in thin_out(range(1, len(data)), 9):
                responses = await play(app, data[:cut], data[cut:])
                assert responses[0].status == REFUSALS[case][0]
            whole = await play(app, data)
            assert len(whole) == 2, "the body came with the head, so that the connection can be kept"
            for size in (1, 2, 7, 64):
                await play(app, *(data[start : start + size] for start in range(0, len(data), size)))

    asyncio.run(main())


def test_the_body_that_is_too_large_is_never_a_request() -> None:
    body = b"x" * (1 << 20) + ATTACK
    start = head("POST", PATH, {}, f"content-length: {len(body)}")
    data = start + body + NEXT

    async def main() -> None:
        async with gateway("size") as app:
            places = [*range(1, 40), *range(len(start) - 2, len(start) + 9), *range(len(data) - len(ATTACK), len(data))]
            for cut in thin_out(places, 9):
                responses = await play(app, data[:cut], data[cut:])
                assert responses[0].status == 413

    asyncio.run(main())


class Echo:
    """Answers each request with what it was."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bytes]] = []

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        self.seen.append((scope["method"], target.decode(), body))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body or b"empty"})


async def echoed(*pieces: bytes) -> tuple[list[tuple[str, str, bytes]], Line]:
    echo = Echo()
    line = Line(echo)
    await line.hear(*pieces)
    return echo.seen, line


HOST = b"POST /a?b=c HTTP/1.1\r\nHost: localhost\r\n"
OFFER = b"\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n"
ACCEPTED: dict[str, bytes] = {
    "length": HOST + b"Content-Length: 5\r\n\r\nhello",
    "zero": HOST + b"Content-Length: 0\r\n\r\n",
    "chunks": HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\n",
    "trailers": HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\nHost: evil\r\n\r\n",
    "h2c with a length": HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\nContent-Length: 5\r\n\r\nhello",
    "h2c with chunks": HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    "h2c without a body": b"GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
    "websocket elsewhere": b"GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "upgrade without connection": HOST + b"Upgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
    "upgrade in the body": HOST + b"Content-Length: %d\r\n\r\n" % len(OFFER) + OFFER,
}  # fmt: skip


@pytest.mark.parametrize("case", list(ACCEPTED))
def test_requests_are_framed_as_h11_does_in_all_packet_cuts(case: str) -> None:
    data = ACCEPTED[case] + NEXT + ACCEPTED[case] + NEXT
    expected = requests_by_h11(data)
    assert len(expected) == 4

    async def main() -> None:
        for cut in thin_out(range(len(data)), 9):
            seen, line = await echoed(*((data[:cut], data[cut:]) if cut else (data,)))
            assert seen == expected, cut
            responses = responses_by_h11(line.wire.written, [method for method, _, _ in seen])
            assert [one.status for one in responses] == [200] * 4
            assert not line.is_over
            await line.hang_up()

    asyncio.run(main())


REFUSED: dict[str, bytes] = {
    "length and chunks": HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "h2c, chunks and length": HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "the same length twice": HOST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "list of lengths": HOST + b"Content-Length: 5, 5\r\n\r\nhello",
    "signed length": HOST + b"Content-Length: +5\r\n\r\nhello",
    "length after a trailer": HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 7\r\n\r\n",
    "unknown coding": HOST + b"Transfer-Encoding: gzip\r\n\r\nhello",
    "h2c with an unknown coding": HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: gzip\r\n\r\nhello",
    "compressed chunks": HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks and more": HOST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "space before the colon": HOST + b"Content-Length : 5\r\n\r\nhello",
    "folded value": HOST + b"X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    "folded coding": HOST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "bare LF": HOST.replace(b"\r\n", b"\n") + b"\n",
    "bare LF in the head": HOST + b"X: y\nContent-Length: 5\r\n\r\nhello",
    "bare CR": HOST + b"X: y\rContent-Length: 5\r\n\r\nhello",
    "bare LF after a chunk's size": HOST + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    "chunk longer than its size": HOST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n",
    "chunk size too large": HOST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello",
    "two hosts": HOST + b"Host: evil.example\r\n\r\n",
    "NUL": HOST + b"X: a\0b\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "other version": b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "tunnel": b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("case", list(REFUSED))
def test_requests_with_two_readings_are_refused_in_all_packet_cuts(case: str) -> None:
    data = NEXT + REFUSED[case] + SMUGGLED

    async def main() -> None:
        for cut in thin_out(range(len(data)), 9):
            seen, line = await echoed(*((data[:cut], data[cut:]) if cut else (data,)))
            assert seen == [("GET", "/healthz", b"")], cut
            first, refusal = responses_by_h11(line.wire.written, ["GET", "POST"])
            assert not first.is_last
            assert refusal.status in (400, 405, 505)
            assert json.loads(refusal.body)["error"]["message"]
            assert refusal.is_last
            assert line.is_over
            await line.hang_up()

    asyncio.run(main())


LAST: dict[str, bytes] = {
    "close": b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "close with a body": HOST + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi",
    "HTTP/1.0": b"GET / HTTP/1.0\r\n\r\n",
    "HTTP/1.0 that is to be kept": b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "HTTP/1.0 with chunks": HOST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("case", list(LAST))
def test_nothing_is_executed_after_the_last_request(case: str) -> None:
    data = NEXT + LAST[case] + SMUGGLED

    async def main() -> None:
        for cut in thin_out(range(len(data)), 9):
            seen, line = await echoed(*((data[:cut], data[cut:]) if cut else (data,)))
            assert [method for method, _, _ in seen] == ["GET", data[len(NEXT) :].split()[0].decode()], cut
            assert b"connection: close\r\n" in line.wire.written
            assert line.is_over
            await line.hang_up()

    asyncio.run(main())


def messages() -> st.SearchStrategy[bytes]:
    body = st.one_of(st.binary(max_size=40), st.sampled_from([SMUGGLED, ATTACK, NEXT, b"\r\n\r\n", b"0\r\n\r\n"]))
    offers = [b"", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b"Upgrade: websocket\r\n", b"Expect: 100-continue\r\n"]
    return st.builds(message, st.sampled_from([b"POST", b"GET", b"PUT"]), st.sampled_from(offers), body, st.booleans())


def message(method: bytes, offer: bytes, body: bytes, is_chunked: bool) -> bytes:
    start = method + b" /x HTTP/1.1\r\nHost: localhost\r\n" + offer
    if is_chunked:
        chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:9], body[9:]) if part]
        return start + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks) + b"0\r\n\r\n"
    return start + b"Content-Length: %d\r\n\r\n" % len(body) + body


@examples(150)
@given(st.lists(messages(), min_size=1, max_size=5), st.lists(st.integers(1, 90), max_size=12))
def test_any_requests_in_any_pieces(requests: list[bytes], sizes: list[int]) -> None:
    data = b"".join(requests)
    expected = requests_by_h11(data)
    assert len(expected) == len(requests)

    async def main() -> None:
        seen, line = await echoed(*pieces_of(data, sizes))
        assert seen == expected
        assert len(responses_by_h11(line.wire.written, [method for method, _, _ in seen])) == len(expected)
        await line.hang_up()

    asyncio.run(main())


def pieces_of(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    for size in sizes:
        if len(data) > size:
            yield data[:size]
            data = data[size:]
    yield data
