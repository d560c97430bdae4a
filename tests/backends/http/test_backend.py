"""The back end over HTTP: retries before the first byte and never after, headers, addresses, lists."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.server.answers import KINDS, PATHS, question, streamed, whole
from tests.server.harness import CLOSE, RESET, Step, Upstream, chunk, reply, stream_head
from toolwire.backends.http.backend import HttpBackend, HttpReply, shown_headers
from toolwire.backends.http.connection import TransportError
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.config.secret import Secret
from toolwire.dialects import DIALECTS
from toolwire.errors import RUNAWAY, BadRequest, UpstreamError
from toolwire.types import LOOP_HEADER, REACHED_BOUND, Request


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


def request_for(model: str, dialect: str = "chat", **headers: str) -> Request:
    wire = json.dumps(question(dialect, model, stream=True)).encode()
    return DIALECTS[dialect].decode_request(wire, headers)


class Bench:
    """A back end with a transport of its own, for one event loop."""

    def __init__(self, upstream: Upstream, kind: str = "openai-chat", **fields: Any) -> None:
        self.transport = Transport()
        config = BackendConfig(
            name="b",
            kind=kind,  # type: ignore[arg-type] # one of the kinds
            **({"base_url": f"{upstream.url}/v1", "key": Secret("sk-1"), "retries": 2} | fields),
        )
        self.backend = HttpBackend(config, self.transport)

    async def open(self, model: str, dialect: str = "chat", **headers: str) -> HttpReply:
        return await self.backend.open(request_for(model, dialect, **headers), is_verbatim=True)

    async def text(self, model: str) -> bytes:
        answer = await self.open(model)
        pieces = []
        while piece := await answer.read():
            pieces.append(piece)
        return b"".join(pieces)


def on_loop(upstream: Upstream, model: str, **fields: Any) -> tuple[bytes | UpstreamError, int, float]:
    """What came of one request, how often the back end was asked, and how long it took."""
    before, since = len(upstream.requests(model)), time.monotonic()

    async def main() -> bytes | UpstreamError:
        bench = Bench(upstream, **fields)
        try:
            return await bench.text(model)
        except UpstreamError as error:
            return error
        finally:
            await bench.transport.close()

    found = asyncio.run(main())
    return found, len(upstream.requests(model)) - before, time.monotonic() - since


@pytest.mark.parametrize("status", [429, 502, 503, 504, 529])
def test_a_passing_refusal_is_tried_again(upstream: Upstream, status: int) -> None:
    refusal: list[Step] = [reply(status, b"{}", retry_after="0.02")]
    upstream.on("again", refusal, refusal, streamed("chat"))
    found, asked, _ = on_loop(upstream, "again")
    assert isinstance(found, bytes)
    assert found.endswith(b"[DONE]\n\n")
    assert asked == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 500, 501])
def test_a_final_refusal_is_not(upstream: Upstream, status: int) -> None:
    upstream.on("final", [reply(status, b'{"error": {"message": "no"}}')])
    found, asked, _ = on_loop(upstream, "final")
    assert isinstance(found, UpstreamError)
    assert (found.status, found.message, asked) == (status, "no", 1)


@pytest.mark.parametrize(
    ("key", "advice"), [("sk-test-1", "check the key of"), ("", "which wants a key: set key under")]
)
def test_a_refused_key_names_the_back_end(upstream: Upstream, key: str, advice: str) -> None:
    upstream.on("keyless", [reply(401, b'{"error": {"message": "Incorrect API key."}}')])
    found, _, _ = on_loop(upstream, "keyless", key=Secret(key))
    assert isinstance(found, UpstreamError)
    assert found.message == "Incorrect API key."
    assert 'This is from the back end "b"' in found.sentence()
    assert f"{advice} [backends.b]." in found.sentence()
    assert "sk-test-1" not in found.sentence()


def test_tries_are_counted(upstream: Upstream) -> None:
    upstream.on("never", [reply(503, b"{}", retry_after="0")])
    for retries, expected in ((0, 1), (1, 2), (3, 4)):
        found, asked, _ = on_loop(upstream, "never", retries=retries)
        assert isinstance(found, UpstreamError)
        assert asked == expected


def test_a_short_retry_after_is_honoured(upstream: Upstream) -> None:
    upstream.on("short", [reply(429, b"{}", retry_after="0.25")], streamed("chat"))
    found, asked, seconds = on_loop(upstream, "short")
    assert isinstance(found, bytes)
    assert asked == 2
    assert seconds >= 0.24
    upstream.on("short-ms", [reply(429, b"{}", retry_after_ms="30", retry_after="9")], streamed("chat"))
    found, asked, seconds = on_loop(upstream, "short-ms")
    assert asked == 2
    assert seconds < 5


@pytest.mark.parametrize("value", ["11", "3600", "Wed, 21 Oct 2026 07:28:00 GMT", "inf", "soon"])
def test_a_long_retry_after_is_the_clients_to_wait_for(upstream: Upstream, value: str) -> None:
    upstream.on("long", [reply(429, b"{}", retry_after=value)])
    found, asked, seconds = on_loop(upstream, "long")
    assert isinstance(found, UpstreamError)
    assert found.headers["retry-after"] == value
    assert (found.status, asked) == (429, 1)
    assert seconds < 2


def test_a_gateway_alone_is_sent_why_a_request_is_the_last_and_once(upstream: Upstream) -> None:
    async def main() -> None:
        for profile, expected in (("anthropic-toolwire", ["max_iterations", None]), ("", [None, None])):
            model = upstream.on(f"last-{profile}", [reply(503, b"{}", retry_after="0")], whole("messages"))
            bench = Bench(upstream, "anthropic", base_url=upstream.url, profile=profile)
            await bench.open(model, "messages", **{LOOP_HEADER: REACHED_BOUND})
            assert [request.headers.get(LOOP_HEADER) for request in upstream.requests(model)] == expected
            await bench.transport.close()

    asyncio.run(main())


def test_a_model_that_ran_in_circles_is_not_asked_again(upstream: Upstream) -> None:
    error = UpstreamError("it runs in circles.", status=429, details=RUNAWAY)
    model = upstream.on("circles", [reply(429, DIALECTS["messages"].encode_error(error, "r"))])

    async def main() -> None:
        bench = Bench(upstream, "anthropic", base_url=upstream.url)
        with pytest.raises(UpstreamError) as caught:
            await bench.open(model, "messages")
        assert caught.value.is_runaway
        assert len(upstream.requests(model)) == 1
        await bench.transport.close()

    asyncio.run(main())


@pytest.mark.parametrize("value", ["-5", "nan", "0"])
def test_an_odd_retry_after_does_no_harm(upstream: Upstream, value: str) -> None:
    upstream.on("odd", [reply(429, b"{}", retry_after=value)], streamed("chat"))
    found, asked, seconds = on_loop(upstream, "odd")
    assert isinstance(found, bytes)
    assert asked == 2
    assert seconds < 2


@pytest.mark.parametrize("ending", [CLOSE, RESET])
def test_H159_nothing_is_sent_twice_once_it_was_read(upstream: Upstream, ending: str) -> None:
    """On a fresh connection the back end had the request: it may be at work."""
    upstream.on("read-and-gone", [ending])
    found, asked, _ = on_loop(upstream, "read-and-gone")
    assert isinstance(found, UpstreamError)
    assert (found.code, asked) == ("upstream_cut", 1)
    upstream.on("begun-and-gone", [stream_head(), chunk(b"data: {}\n\n"), 0.02, ending])
    found, asked, _ = on_loop(upstream, "begun-and-gone")
    assert isinstance(found, UpstreamError)
    assert (found.code, asked) == ("upstream_cut", 1)


def test_a_refused_port_is_tried_again(upstream: Upstream) -> None:
    """Nothing was sent, so nothing can be done twice: a server that comes up in between is reached."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]

    async def main() -> bytes:
        bench = Bench(upstream, base_url=f"http://127.0.0.1:{port}/v1", retries=4)
        asking = asyncio.create_task(bench.text("up-again"))
        await asyncio.sleep(0.05)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply(200, b"data: up\n\n", "text/event-stream"))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", port)
        try:
            return await asking
        finally:
            server.close()
            await bench.transport.close()

    assert asyncio.run(main()) == b"data: up\n\n"


@pytest.mark.parametrize("kind", list(KINDS.values()))
def test_a_missing_key_is_said_before_anything_is_sent(upstream: Upstream, kind: str) -> None:
    async def main() -> None:
        bench = Bench(upstream, kind, missing="MY_KEY is not set")
        dialect = bench.backend.dialect
        for work in (bench.open("x", dialect), bench.backend.models()):
            with pytest.raises(UpstreamError, match="MY_KEY is not set") as raised:
                await work
            assert raised.value.status == 401
        await bench.transport.close()

    before = len(upstream.received)
    asyncio.run(main())
    assert len(upstream.received) == before


@pytest.mark.parametrize(
    ("kind", "base", "path"),
    [
        ("openai-chat", "/v1", "/v1/chat/completions"),
        ("openai-chat", "/v1/", "/v1/chat/completions"),
        ("openai-chat", "/api/openai", "/api/openai/chat/completions"),
        ("openai-responses", "/v1", "/v1/responses"),
        ("anthropic", "", "/v1/messages"),
        ("anthropic", "/", "/v1/messages"),
        ("anthropic", "/v1", "/v1/messages"),
        ("anthropic", "/proxy/anthropic", "/proxy/anthropic/v1/messages"),
    ],
)
def test_where_a_request_goes(upstream: Upstream, kind: str, base: str, path: str) -> None:
    async def main() -> None:
        bench = Bench(upstream, kind, base_url=upstream.url + base)
        dialect = bench.backend.dialect
        upstream.on("address", whole(dialect))
        await bench.open("address", dialect)
        await bench.transport.close()

    asyncio.run(main())
    assert upstream.requests("address")[-1].path == path
    assert PATHS["chat"].startswith("/v1/")


def test_what_goes_with_a_request(upstream: Upstream) -> None:
    async def main() -> None:
        bench = Bench(upstream, headers={"X-Title": "mine", "user-agent": "own"})
        upstream.on("headers", streamed("chat"))
        await bench.open("headers", authorization="Bearer client", cookie="c", **{"openai-beta": "x=1"})
        await bench.transport.close()

    asyncio.run(main())
    seen = upstream.requests("headers")[-1].headers
    assert seen["authorization"] == "Bearer sk-1"
    assert seen["x-title"] == "mine"
    assert seen["user-agent"] == "own"
    assert seen["accept"] == "text/event-stream"
    assert seen["content-type"] == "application/json"
    assert seen["openai-beta"] == "x=1"
    assert "cookie" not in seen


def test_configured_models_are_not_asked_for(upstream: Upstream) -> None:
    async def main() -> list[str]:
        bench = Bench(upstream, models=("a", "b"), missing="no key needed for this")
        found = [model.id for model in await bench.backend.models()]
        await bench.transport.close()
        return found

    before = len(upstream.received)
    assert asyncio.run(main()) == ["a", "b"]
    assert len(upstream.received) == before


@pytest.mark.parametrize(("created", "kept"), [(1, 1), (0, 0), (-1, 0), (10**20, 0), (1 << 36, 1 << 36)])
def test_a_list_with_impossible_times(upstream: Upstream, created: int, kept: int) -> None:
    upstream.on("/v1/models", [reply(200, json.dumps({"data": [{"id": "m", "created": created}]}).encode())])

    async def main() -> int:
        bench = Bench(upstream)
        (model,) = await bench.backend.models()
        await bench.transport.close()
        return model.created

    assert asyncio.run(main()) == kept


@pytest.mark.parametrize("status", [301, 302, 307, 304, 600, 799, 999])
def test_a_status_that_is_no_answer_is_a_502(upstream: Upstream, status: int) -> None:
    upstream.on("odd-status", [reply(status, b"", location="http://127.0.0.1:1/")])
    found, asked, _ = on_loop(upstream, "odd-status")
    assert isinstance(found, UpstreamError)
    assert (found.status, asked) == (502, 1)


def test_an_endless_error_is_not_read_to_its_end(upstream: Upstream) -> None:
    head = b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n"
    upstream.on("endless-error", [head, *[chunk(b"x" * 100_000)] * 50, "hold"])
    found, asked, seconds = on_loop(upstream, "endless-error")
    assert isinstance(found, UpstreamError)
    assert asked == 1
    assert seconds < 5


def test_which_headers_a_client_may_see() -> None:
    given = {
        "retry-after": "1",
        "x-ratelimit-limit": "2",
        "anthropic-ratelimit-x": "3",
        "openai-processing-ms": "4",
        "request-id": "5",
        "set-cookie": "6",
        "server": "7",
        "content-length": "8",
    }
    assert set(shown_headers(given)) == {
        "retry-after", "x-ratelimit-limit", "anthropic-ratelimit-x", "openai-processing-ms", "request-id",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "status"), [("refused", 502), ("connect_timeout", 504), ("first_byte_timeout", 504), ("cut", 502)]
)
def test_faults_of_the_transport_have_a_status(kind: Any, status: int) -> None:
    error = TransportError(kind, "words", sent=False)
    assert (error.status, error.message, error.retryable) == (status, "words", True)
    assert TransportError(kind, "words", sent=True).retryable is False


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_a_back_end_keeps_is_asked_of_it(upstream: Upstream, method: str) -> None:
    path = "/v1/responses/resp_1?stream=true"
    upstream.on(path, [reply(200, b'{"id":"resp_1"}')])
    upstream.on("/v1/responses/resp_2", [reply(404, b'{"error":{"message":"gone, sk-upstream-key"}}')])
    config = BackendConfig(
        name="b", kind="openai-responses", base_url=f"{upstream.url}/v1", key=Secret("sk-upstream-key"), retries=0
    )

    async def main() -> None:
        transport = Transport()
        backend = HttpBackend(config, transport)
        answer = await backend.relay(method, "/responses/resp_1", "?stream=true", {"authorization": "Bearer client"})
        assert await answer.read() == b'{"id":"resp_1"}'
        with pytest.raises(UpstreamError) as caught:
            await backend.relay(method, "/responses/resp_2", "", {})
        assert caught.value.status == 404
        assert "sk-upstream-key" not in caught.value.message
        await transport.close()

    asyncio.run(main())
    received = upstream.requests(path)[-1]
    assert received.method == method
    assert received.headers["authorization"] == "Bearer sk-upstream-key"


REFUSED = b'{"error": {"message": "reasoning `encrypted_content` was not issued to this caller"}}'


@pytest.mark.parametrize("is_verbatim", [True, False])
def test_H084_reasoning_of_another_account_is_left_out_once(upstream: Upstream, is_verbatim: bool) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    wire = json.dumps({"model": "pooled", "input": [{"role": "user", "content": "x"}, thought]}).encode()
    request = DIALECTS["responses"].decode_request(wire, {})

    async def main() -> HttpReply:
        bench = Bench(upstream, "openai-responses")
        try:
            return await bench.backend.open(request, is_verbatim=is_verbatim)
        finally:
            await bench.transport.close()

    before = len(upstream.requests("pooled"))
    upstream.on("pooled", [reply(400, REFUSED)], whole("responses"))
    assert [loss.feature for loss in asyncio.run(main()).losses] == ["refused.reasoning"]
    first, second = upstream.requests("pooled")[before:]
    assert first.json["input"][1] == thought
    assert second.json["input"] == first.json["input"][:1]
    upstream.on("pooled", [reply(400, REFUSED)])
    with pytest.raises(UpstreamError, match="not issued"):
        asyncio.run(main())
    assert len(upstream.requests("pooled")) == before + 4


def test_H147_too_many_tools_never_travel(upstream: Upstream) -> None:
    async def main() -> None:
        bench = Bench(upstream, profile="openai")
        tools = [{"type": "function", "function": {"name": f"f{number}"}} for number in range(129)]
        wire = json.dumps(question("chat", "many") | {"tools": tools}).encode()
        with pytest.raises(BadRequest, match="129 tools"):
            await bench.backend.open(DIALECTS["chat"].decode_request(wire, {}), is_verbatim=True)
        await bench.transport.close()

    asyncio.run(main())
    assert not upstream.requests("many")


@pytest.mark.parametrize("status", [429, 529])
def test_H163_without_a_retry_after_the_pause_is_our_own(upstream: Upstream, status: int) -> None:
    upstream.on("no-pause-told", [reply(status, b"{}")], streamed("chat"))
    found, asked, seconds = on_loop(upstream, "no-pause-told")
    assert isinstance(found, bytes)
    assert asked == 2
    assert 0.15 < seconds < 2


def test_H111_H112_a_template_that_refuses_twice_is_retried_twice_in_plainer_forms(upstream: Upstream) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "r"},
        {"role": "system", "content": "S"},
    ]
    request = DIALECTS["chat"].decode_request(json.dumps({"model": "jinja", "messages": asked}).encode(), {})
    refusals: list[list[Step]] = [
        [reply(500, b'{"error": {"message": "Cannot subscript null"}}')],
        [reply(400, b'{"error": {"message": "System message must be at the beginning."}}')],
    ]

    async def main(**fields: Any) -> HttpReply:
        bench = Bench(upstream, **fields)
        try:
            return await bench.backend.open(request, is_verbatim=True)
        finally:
            await bench.transport.close()

    upstream.on("jinja", *refusals, whole("chat"))
    losses = asyncio.run(main()).losses
    assert [loss.feature for loss in losses] == ["refused.texts", "refused.roles"]
    sent = upstream.requests("jinja")[-1].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]
    assert (sent[1]["content"], sent[3]["content"]) == ("", "<system>\nS\n</system>")
    upstream.on("jinja", *refusals)
    with pytest.raises(UpstreamError, match="Cannot subscript null"):
        asyncio.run(main(guard="off"))
    assert len(upstream.requests("jinja")) == 4


@pytest.mark.parametrize(
    "body", [b'{"error": {"message": "error parsing tool call: raw=x"}}', b'{"error parsing tool call": "raw=x"}']
)
def test_H113_a_call_that_its_server_could_not_read_is_asked_for_again_within_bounds(
    upstream: Upstream, body: bytes
) -> None:
    refusal: list[Step] = [reply(500, body, retry_after="0.01")]
    upstream.on("unread", refusal, streamed("chat"))
    found, asked, _ = on_loop(upstream, "unread")
    assert isinstance(found, bytes)
    assert asked == 2
    upstream.on("unread", refusal)
    found, asked, _ = on_loop(upstream, "unread", retries=1)
    assert isinstance(found, UpstreamError)
    assert "error parsing tool call" in found.message
    assert asked == 2


@pytest.mark.parametrize(
    "play", [[reply(400, b"{}")], [reply(503, b"{}", retry_after="0")], [CLOSE], [b"SSH-2.0\r\n\r\n"]]
)
def test_a_refused_body_is_freed_at_once(upstream: Upstream, play: list[Step]) -> None:
    """Without the garbage collector: a body can have 40 MB."""
    upstream.on("refused", play)

    async def main() -> tuple[int, int]:
        bench = Bench(upstream, retries=1)
        request = request_for("refused")
        before = sys.getrefcount(request.wire)
        with suppress(UpstreamError):
            await bench.backend.open(request, is_verbatim=True)
        after = sys.getrefcount(request.wire)
        await bench.transport.close()
        return before, after

    gc.disable()
    try:
        before, after = asyncio.run(main())
    finally:
        gc.enable()
    assert after == before
