from __future__ import annotations

import asyncio
import base64
import gc
import socket
import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.http.certificates import Tls
from tests.backends.http.certificates import tls as tls
from tests.backends.http.loopback import CHUNKED, Handler, Loopback, Run, run_each
from tests.backends.several_addresses import info, refusing, resolver, silent
from tests.free_port import free_port
from toolwire.backends.http import connection
from toolwire.backends.http.transport import (
    HttpRoute,
    Timeouts,
    Transport,
    TransportError,
    encode_head,
    length_field,
    parse_target,
)

HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return run_each(request.param)


class Proxying:
    """A small proxy: passes CONNECT tunnels and absolute-form requests to one port, whatever host they name."""

    def __init__(self, port: int, *, refusal: bytes = b"") -> None:
        self.heads: list[bytes] = []
        self._port = port
        self._refusal = refusal

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self._refusal:
            writer.write(self._refusal)
            await reader.read()
            return
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._port)
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            upstream_writer.write(head)
        try:
            await asyncio.gather(_pipe(reader, upstream_writer), _pipe(upstream_reader, writer))
        finally:
            upstream_writer.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


def repeating(*replies: bytes, heads: list[bytes] | None = None) -> Handler:
    """Answer one request after the other on the same connection; close after the last."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for reply in replies:
            head = await reader.readuntil(b"\r\n\r\n")
            if heads is not None:
                heads.append(head)
            writer.write(reply)
        await writer.drain()

    return handler


async def get(transport: Transport, server: Loopback, path: str = "/", **options: Any) -> bytes:
    response = await transport.send("GET", f"http://127.0.0.1:{server.port}{path}", {}, **options)
    return await response.read_all(1_000_000)


async def failure(transport: Transport, url: str, **options: Any) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await transport.send("POST", url, {"authorization": "Bearer hunter2"}, b"{}", **options)
    assert "hunter2" not in str(caught.value)
    return caught.value


def head_of(url: str, headers: dict[str, str] | None = None, *, method: str = "POST", length: int = 2) -> list[str]:
    return (
        (encode_head(method, HttpRoute(parse_target(url), None), headers or {}) + length_field(method, length))
        .decode("latin-1")
        .split("\r\n")
    )


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        ("http://model.test", "POST / HTTP/1.1", "model.test"),
        ("http://model.test:80/v1", "POST /v1 HTTP/1.1", "model.test"),
        ("https://model.test:443/v1?a=b#part", "POST /v1?a=b HTTP/1.1", "model.test"),
        ("https://MODEL.test:80/v1", "POST /v1 HTTP/1.1", "model.test:80"),
        ("http://[::1]:8080/v1", "POST /v1 HTTP/1.1", "[::1]:8080"),
        ("http://[::1]/v1", "POST /v1 HTTP/1.1", "[::1]"),
        ("http://[fe80::1%25eth0]/v1", "POST /v1 HTTP/1.1", "[fe80::1]"),
        ("http://model.test/ü?é=%20", "POST /%C3%BC?%C3%A9=%20 HTTP/1.1", "model.test"),
        ("http://bücher.test/", "POST / HTTP/1.1", "xn--bcher-kva.test"),
        ("http://model.test?a=1", "POST /?a=1 HTTP/1.1", "model.test"),
    ],
)
def test_request_line_and_host(url: str, line: str, host: str) -> None:
    assert head_of(url)[:2] == [line, f"host: {host}"]


def test_framing_headers_are_ours() -> None:
    foreign = {
        "Host": "evil",
        "Content-Length": "99",
        "Transfer-Encoding": "chunked",
        "Accept-Encoding": "br",
        "X": "1",
    }
    assert head_of("http://model.test/", foreign)[1:] == [
        "host: model.test",
        "X: 1",
        "accept-encoding: identity",
        "content-length: 2",
        "",
        "",
    ]
    assert "content-length: 0" in head_of("http://model.test/", length=0)
    assert not any(line.startswith("content-length") for line in head_of("http://model.test/", method="GET", length=0))


def test_user_and_password_of_a_url_become_authorization() -> None:
    url = "http://us%20er:pass@model.test/"
    assert "authorization: Basic " + base64.b64encode(b"us er:pass").decode() in head_of(url)
    assert "authorization: mine" in head_of(url, {"authorization": "mine"})
    assert len(head_of(url, {"Authorization": "mine"})) == len(head_of(url))
    assert "pass" not in repr(parse_target(url))


@pytest.mark.parametrize("evil", ["a\r\nb", "a\nb", "a\rb", "a\0b"])
def test_injection_is_refused(evil: str) -> None:
    for call in (
        {"method": evil},
        {"url": f"http://model.test/{evil}"},
        {"url": f"http://{evil}/"},
        {"headers": {evil: "value"}},
        {"headers": {"name": evil}},
    ):
        request: dict[str, Any] = {"method": "POST", "url": "http://model.test/", "headers": {}} | call

        async def main(request: dict[str, Any] = request) -> None:
            await Transport(environ={}).send(**request)

        with pytest.raises(ValueError):
            asyncio.run(main())


@pytest.mark.parametrize("name", ["", "a b", "a:b", "ü"])
def test_header_names_are_tokens(name: str) -> None:
    with pytest.raises(ValueError, match="not an HTTP token"):
        head_of("http://model.test/", {name: "x"})


def test_header_value_that_cannot_be_sent_is_not_quoted() -> None:
    with pytest.raises(ValueError, match="outside Latin-1") as caught:
        head_of("http://model.test/", {"authorization": "Bearer hunter2€"})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "model.test",
        "ftp://model.test/",
        "http://",
        "http://h:99999/",
        "http://[::1/",
        "http://a..b/",
        "http://a b/",
    ],
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(ValueError, match="The URL has"):
        parse_target(url)


@given(st.text(max_size=30), st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3))
def test_any_head_is_one_head(path: str, headers: dict[str, str]) -> None:
    try:
        head = encode_head("POST", HttpRoute(parse_target(f"http://model.test/{path}"), None), headers)
        head += length_field("POST", 0)
    except ValueError:
        return
    assert head.count(b"\r\n\r\n") == 1
    assert head.endswith(b"\r\n\r\n")
    assert head.count(b"\n") == head.count(b"\r") == head.count(b"\r\n") <= len(headers) + 5


def test_each_request_has_its_own_head(run: Run) -> None:
    heads: list[bytes] = []

    async def main() -> None:
        async with Loopback(repeating(*[HELLO] * 5, heads=heads)) as server:
            transport = Transport(environ={})
            for value, method in (("one", "GET"), ("two", "GET"), ("one", "GET"), ("one", "DELETE"), ("three", "POST")):
                url = f"http://127.0.0.1:{server.port}/"
                await (await transport.send(method, url, {"x-key": value})).read_all(100)
            await transport.close()

    run(main())
    found = [(head.split(b" ")[0], head.partition(b"x-key: ")[2].partition(b"\r\n")[0]) for head in heads]
    expected = [(b"GET", b"one"), (b"GET", b"two"), (b"GET", b"one"), (b"DELETE", b"one"), (b"POST", b"three")]
    assert found[: len(expected)] == expected
    assert heads[0] == heads[2]
    assert [b"content-length: 0\r\n" in head for head in heads[:5]] == [False] * 4 + [True]


def test_connection_is_reused(run: Run) -> None:
    async def main() -> None:
        async with Loopback(repeating(*[HELLO] * 3)) as server:
            transport = Transport(environ={})
            assert [await get(transport, server) for _ in range(3)] == [b"hello"] * 3
            assert server.connections == 1
            await transport.close()

    run(main())


def test_unread_reply_that_is_here_in_full_frees_its_connection(run: Run) -> None:
    async def main() -> None:
        async with Loopback(repeating(HELLO, HELLO)) as server:
            transport = Transport(environ={})
            url = f"http://127.0.0.1:{server.port}/"
            first = await transport.send("GET", url, {})
            second = await transport.send("GET", url, {})
            assert [await second.read_all(9), await first.read_all(9)] == [b"hello", b"hello"]
            assert server.connections == 1
            await transport.close()

    run(main())


def test_idle_connections_are_closed_in_time_and_bounded_in_number(run: Run) -> None:
    async def main() -> None:
        async with Loopback(repeating(*[HELLO] * 9)) as server:
            transport = Transport(environ={}, idle_seconds=0.05, max_idle_per_host=2)
            await asyncio.gather(*(get(transport, server) for _ in range(5)))
            assert server.connections == 5
            await asyncio.sleep(0)
            assert len(transport._live) == 2
            await asyncio.sleep(0.15)
            assert not transport._live
            assert not transport._idle
            assert await get(transport, server) == b"hello"
            assert server.connections == 6
            await transport.close()

    run(main())


def test_stale_connection_is_replaced_once(run: Run) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HELLO)
        # Reads the second request and closes without an answer: seen from outside, the connection died on its way.
        await reader.readuntil(b"\r\n\r\n")

    async def main() -> None:
        async with Loopback(handler) as server:
            transport = Transport(environ={})
            assert [await get(transport, server) for _ in range(3)] == [b"hello"] * 3
            assert server.connections == 3
            await transport.close()

    run(main())


def test_connection_that_closed_while_idle_is_not_used(run: Run) -> None:
    async def main() -> None:
        async with Loopback(repeating(HELLO)) as server:
            transport = Transport(environ={})
            for expected in range(1, 4):
                assert await get(transport, server) == b"hello"
                assert server.connections == expected
                await asyncio.sleep(0.02)
                assert not transport._live
            await transport.close()

    run(main())


def test_stale_retry_happens_only_once_and_never_on_a_fresh_connection(run: Run) -> None:
    async def main() -> None:
        answers = [[HELLO, b""], [b""], [HELLO]]

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await repeating(*answers[server.connections - 1])(reader, writer)

        async with Loopback(handler) as server:
            transport = Transport(environ={})
            assert await get(transport, server) == b"hello"
            error = await failure(transport, f"http://127.0.0.1:{server.port}/")
            assert (error.kind, error.sent, server.connections) == ("cut", True, 2)
            await transport.close()

    run(main())


def test_kept_connection_that_dies_late_is_not_stale(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_STALE_SECONDS", 0.02)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HELLO)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.06)

    async def main() -> None:
        async with Loopback(handler) as server:
            transport = Transport(environ={})
            assert await get(transport, server) == b"hello"
            error = await failure(transport, f"http://127.0.0.1:{server.port}/")
            assert (error.kind, error.sent, server.connections) == ("cut", True, 1)
            await transport.close()

    run(main())


def test_H159_half_an_answer_on_a_kept_connection_is_not_sent_again(run: Run) -> None:
    async def main() -> None:
        async with Loopback(repeating(HELLO, b"HTTP/1.1 200 OK\r\nx")) as server:
            transport = Transport(environ={})
            assert await get(transport, server) == b"hello"
            error = await failure(transport, f"http://127.0.0.1:{server.port}/")
            assert (error.kind, error.sent, server.connections) == ("cut", True, 1)
            await transport.close()

    run(main())


def test_refused(run: Run) -> None:
    async def main() -> None:
        port = free_port()
        error = await failure(Transport(environ={}), f"http://127.0.0.1:{port}/")
        assert (error.kind, error.sent) == ("refused", False)
        assert error.message == f"127.0.0.1:{port} refused the connection."

    run(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_dead_address_does_not_stand_in_the_way_of_one_that_works(run: Run, tls: Tls, scheme: str) -> None:
    async def main() -> None:
        handler = repeating(HELLO)
        async with SecureLoopback(handler, tls.server) if scheme == "https" else Loopback(handler) as server:
            with silent() as dead:
                resolve = resolver(dead, info(server.port))
                transport = Transport(environ={}, ssl_context=tls.client, resolve=resolve)
                response = await transport.send("GET", f"{scheme}://127.0.0.1:{server.port}/", {})
                assert await response.read_all(9) == b"hello"
                await transport.close()

    run(main())


def test_a_proxy_may_have_several_addresses_too(run: Run) -> None:
    async def main() -> None:
        async with Loopback(repeating(HELLO)) as server:
            with refusing() as closed:
                transport = Transport(
                    environ={"http_proxy": "http://proxy.test:1"}, resolve=resolver(closed, info(server.port))
                )
                response = await transport.send("GET", "http://model.test/", {})
                assert await response.read_all(9) == b"hello"
                await transport.close()

    run(main())


def test_an_error_names_all_addresses(run: Run) -> None:
    async def main() -> None:
        with refusing() as one, refusing() as two:
            transport = Transport(environ={}, resolve=resolver(one, two))
            error = await failure(transport, "http://model.test/")
            assert (error.kind, error.sent) == ("refused", False)
            assert error.message.startswith("model.test:80 refused the connection. Tried 127.0.0.1:")
            assert all(str(address[4][1]) in error.message for address in (one, two))

    run(main())


def test_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def main() -> None:
        # A real question would go to a name server outside of this machine.
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", fail)
        error = await failure(Transport(environ={}), "http://model.invalid/")
        assert (error.kind, error.sent) == ("dns", False)
        assert error.message == "model.invalid:80 has a host name that does not resolve."

    asyncio.run(main())


def test_connect_timeout(run: Run, tls: Tls) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await reader.read()

    async def main() -> None:
        async with Loopback(silent) as server:
            transport = Transport(environ={}, ssl_context=tls.client)
            error = await failure(transport, f"https://127.0.0.1:{server.port}/", timeouts=Timeouts(connect=0.1))
            assert (error.kind, error.sent) == ("connect_timeout", False)
            await asyncio.wait_for(server.closed.wait(), 1)
            await transport.close()

    run(main())


def test_timeouts_of_one_request(run: Run) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/stall" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(CHUNKED + b"1\r\nx\r\n")
        await reader.read()

    async def main() -> None:
        async with Loopback(handler) as server:
            transport = Transport(environ={})
            error = await failure(transport, f"http://127.0.0.1:{server.port}/", timeouts=Timeouts(first_byte=0.05))
            assert (error.kind, error.sent) == ("first_byte_timeout", True)
            with pytest.raises(TransportError) as caught:
                await get(transport, server, "/stall", timeouts=Timeouts(idle=0.05))
            assert caught.value.kind == "idle_timeout"
            await asyncio.sleep(0.01)
            assert not transport._live

    run(main())


def test_200_requests_at_once(run: Run) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
            await asyncio.sleep(0.001)
            writer.write(CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(path), path))

    async def main() -> None:
        async with Loopback(handler) as server:
            transport = Transport(environ={})
            for _ in range(2):
                paths = [f"/{number}" for number in range(200)]
                bodies = await asyncio.gather(*(get(transport, server, path) for path in paths))
                assert bodies == [path.encode() for path in paths]
            await transport.close()
            assert not transport._live

    run(main())


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.01, 0.05])
def test_cancelling_leaks_nothing(run: Run, delay: float) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.02)
        writer.write(CHUNKED)
        await reader.read()

    async def main() -> None:
        async with Loopback(handler) as server:
            transport = Transport(environ={})
            tasks = [asyncio.ensure_future(get(transport, server)) for _ in range(10)]
            await asyncio.sleep(delay)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
            await asyncio.sleep(0.02)
            assert not transport._live
            assert not transport._idle
            await transport.close()
        gc.collect()

    run(main())


def test_close_ends_requests_under_way(run: Run) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nuntil the connection closes")
        await reader.read()

    async def main() -> None:
        async with Loopback(handler) as server:
            transport = Transport(environ={})
            response = await transport.send("GET", f"http://127.0.0.1:{server.port}/", {})
            assert await response.read()
            pending = asyncio.ensure_future(response.read())
            await asyncio.sleep(0)
            await transport.close()
            with pytest.raises(TransportError) as caught:
                await pending
            assert caught.value.kind == "cut"
            with pytest.raises(RuntimeError, match="closed"):
                await get(transport, server)

    run(main())


class SecureLoopback(Loopback):
    """The same over TLS."""

    def __init__(self, handler: Handler, context: ssl.SSLContext) -> None:
        super().__init__(handler)
        self._context = context

    async def __aenter__(self) -> SecureLoopback:
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self


def test_tls(run: Run, tls: Tls) -> None:
    async def main() -> None:
        async with SecureLoopback(repeating(HELLO, CHUNKED + b"2\r\nhi\r\n0\r\n\r\n"), tls.server) as server:
            transport = Transport(environ={}, ssl_context=tls.client)
            url = f"https://127.0.0.1:{server.port}/"
            assert await (await transport.send("GET", url, {})).read_all(9) == b"hello"
            assert await (await transport.send("GET", url, {})).read_all(9) == b"hi"
            assert server.connections == 1
            await transport.close()

    run(main())


def test_tls_abort_closes_the_server_side_at_once(run: Run, tls: Tls) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED + b"2\r\nhi\r\n")
        await reader.read()

    async def main() -> None:
        async with SecureLoopback(handler, tls.server) as server:
            transport = Transport(environ={}, ssl_context=tls.client)
            response = await transport.send("GET", f"https://127.0.0.1:{server.port}/", {})
            assert await response.read() == b"hi"
            response.abort()
            await asyncio.wait_for(server.closed.wait(), 0.05)
            await transport.close()

    run(main())


def test_tls_flood_is_held_back_and_arrives_whole(run: Run, tls: Tls) -> None:
    body = bytes(range(256)) * 20_000

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + body)
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with SecureLoopback(flood, tls.server) as server:
            transport = Transport(environ={}, ssl_context=tls.client)
            response = await transport.send("GET", f"https://127.0.0.1:{server.port}/", {})
            await asyncio.sleep(0.1)
            assert response._buffered < 1_000_000
            assert await response.read_all(len(body)) == body
            await transport.close()

    run(main())


def test_untrusted_certificate(run: Run, tls: Tls) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the server's half of the failure
        async with SecureLoopback(repeating(HELLO), tls.server) as server:
            transport = Transport(environ={})
            error = await failure(transport, f"https://127.0.0.1:{server.port}/")
            assert (error.kind, error.sent) == ("tls", False)
            assert "not trusted" in error.message
            assert f"127.0.0.1:{server.port}" in error.message
            await transport.close()

    run(main())


def test_tls_with_a_server_that_speaks_plain_http(run: Run, tls: Tls) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async def main() -> None:
        async with Loopback(handler) as server:
            transport = Transport(environ={}, ssl_context=tls.client)
            error = await failure(transport, f"https://127.0.0.1:{server.port}/")
            assert (error.kind, error.sent) == ("tls", False)

    run(main())


def test_http_through_a_proxy(run: Run) -> None:
    async def main() -> None:
        heads: list[bytes] = []
        async with Loopback(repeating(HELLO, HELLO, heads=heads)) as server, Loopback(Proxying(server.port)) as proxy:
            transport = Transport(environ={"HTTP_PROXY": f"http://me:pw@127.0.0.1:{proxy.port}"})
            for _ in range(2):
                response = await transport.send("GET", "http://model.test:8080/v1?a=b", {})
                assert await response.read_all(9) == b"hello"
            assert (proxy.connections, server.connections) == (1, 1)
            lines = heads[0].split(b"\r\n")
            assert lines[:2] == [b"GET http://model.test:8080/v1?a=b HTTP/1.1", b"host: model.test:8080"]
            assert b"proxy-authorization: Basic " + base64.b64encode(b"me:pw") in lines
            await transport.close()

    run(main())


@pytest.mark.parametrize("is_tls_proxy", [False, True], ids=["http proxy", "https proxy"])
def test_https_through_a_proxy(run: Run, tls: Tls, is_tls_proxy: bool) -> None:
    async def main() -> None:
        heads: list[bytes] = []
        async with SecureLoopback(repeating(HELLO, HELLO, heads=heads), tls.server) as server:
            relay = Proxying(server.port)
            async with SecureLoopback(relay, tls.server) if is_tls_proxy else Loopback(relay) as proxy:
                scheme = "https" if is_tls_proxy else "http"
                environ = {"https_proxy": f"{scheme}://me:pw@127.0.0.1:{proxy.port}"}
                transport = Transport(environ=environ, ssl_context=tls.client)
                for _ in range(2):
                    response = await transport.send("POST", "https://model.test/v1", {}, b"{}")
                    assert await response.read_all(9) == b"hello"
                assert (proxy.connections, server.connections, len(transport._live)) == (1, 1, 1)
                assert relay.heads[0].split(b"\r\n")[:2] == [
                    b"CONNECT model.test:443 HTTP/1.1",
                    b"host: model.test:443",
                ]
                assert b"proxy-authorization: Basic " in relay.heads[0]
                assert heads[0].startswith(b"POST /v1 HTTP/1.1\r\nhost: model.test\r\n")
                assert b"proxy-authorization" not in heads[0]
                await transport.close()
                await asyncio.wait_for(server.closed.wait(), 1)

    run(main())


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (b"HTTP/1.1 407 Who?\r\ncontent-length: 0\r\n\r\n", "answered 407 to CONNECT"),
        (b"HTTP/1.1 200 OK\r\n\r\nsurplus", "bytes of its own"),
        (b"garbage", "failed"),
    ],
)
def test_proxy_that_refuses(run: Run, tls: Tls, refusal: bytes, words: str) -> None:
    async def main() -> None:
        async with Loopback(Proxying(0, refusal=refusal)) as proxy:
            environ = {"https_proxy": f"http://me:hunter2@127.0.0.1:{proxy.port}"}
            transport = Transport(environ=environ, ssl_context=tls.client)
            error = await failure(transport, "https://model.test/v1")
            assert (error.kind, error.sent) == ("refused", False)
            assert words in error.message
            assert "model.test:443" in error.message
            assert f"127.0.0.1:{proxy.port}" in error.message
            await asyncio.wait_for(proxy.closed.wait(), 1)
            assert not transport._live
            assert not transport._idle

    run(main())


def test_wrong_certificate_inside_a_tunnel_closes_it(run: Run, tls: Tls) -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # the server's half of the failure
        async with SecureLoopback(repeating(HELLO), tls.server) as server, Loopback(Proxying(server.port)) as proxy:
            environ = {"all_proxy": f"http://127.0.0.1:{proxy.port}"}
            transport = Transport(environ=environ, ssl_context=tls.client)
            error = await failure(transport, "https://other.test/v1")
            assert (error.kind, error.sent) == ("tls", False)
            assert "other.test:443" in error.message
            await asyncio.wait_for(proxy.closed.wait(), 1)
            assert not transport._live

    run(main())


def test_proxy_that_is_down(run: Run) -> None:
    async def main() -> None:
        port = free_port()
        transport = Transport(environ={"all_proxy": f"http://me:hunter2@127.0.0.1:{port}"})
        error = await failure(transport, "http://model.test/")
        assert (error.kind, error.message) == ("refused", f"The proxy 127.0.0.1:{port} refused the connection.")

    run(main())
