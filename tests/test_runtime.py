"""The loop between a request and its answer: routes, model lists, many at once, and faults of our own."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.free_port import free_port
from tests.loop_ticks import ticking
from tests.server.answers import (
    ARGUMENTS,
    DIALECTS,
    PATHS,
    arguments_of,
    body,
    body_text,
    error_in,
    failure_in,
    is_ended,
    question,
    streamed,
    text_of,
    whole,
)
from tests.server.conftest import backends_of, server, upstream
from tests.server.harness import (
    HOLD,
    LAST_CHUNK,
    Answer,
    Broken,
    Gateway,
    Upstream,
    ask,
    chunk,
    events_in,
    gateway,
    reply,
    request_bytes,
    server_config,
    stream_head,
)
from toolwire.backends import Backend, EventReply
from toolwire.backends.base import ToolsUnsupported
from toolwire.catalog import models as models_module
from toolwire.catalog.router import Router
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.policy import Policy
from toolwire.dialects import DIALECTS as BY_NAME
from toolwire.errors import InternalError, UpstreamError
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted, Started
from toolwire.ids import new_id
from toolwire.pipeline import answer as answer_module
from toolwire.runtime import Runtime
from toolwire.telemetry import Record
from toolwire.types import Choice, Message, Request, Text, Tool, ToolCall

__all__ = ["server", "upstream"]  # fixtures


def listing(*names: str) -> list[Any]:
    return [reply(200, json.dumps({"object": "list", "data": [{"id": name} for name in names]}).encode())]


def http_backend(upstream: Upstream, name: str, **fields: Any) -> BackendConfig:
    return BackendConfig(name=name, kind="openai-chat", base_url=f"{upstream.url}/{name}", retries=0, **fields)


def test_bare_names_go_to_the_back_end_that_lists_them(upstream: Upstream) -> None:
    """Also where there is a default: its turn comes after the lists, which are asked for once."""
    upstream.on("/first/models", listing("alpha", "both"))
    upstream.on("/second/models", listing("beta", "both"))
    for name in ("alpha", "beta", "both", "gamma", "m-of-alias"):
        upstream.on(name, whole("chat"))
    backends = (http_backend(upstream, "first"), http_backend(upstream, "second"))
    aliases = {"fast": "second/m-of-alias", "faster": "fast"}
    for default, homes in (
        ("", {"alpha": "first", "beta": "second", "both": "first"}),
        ("second", {"beta": "second", "alpha": "first", "both": "second", "gamma": "second"}),
        ("first", {"beta": "second", "gamma": "first"}),
    ):
        config = Config(server=server_config(default=default), aliases=aliases)
        lists = len(upstream.requests("/first/models"))
        with gateway(with_backends(config, backends)) as running:
            for model, home in homes.items():
                answer = ask(running.port, "POST", PATHS["chat"], question("chat", model))
                assert answer.status == 200, (default, model, answer.body)
                assert upstream.requests(model)[-1].path == f"/{home}/chat/completions", (default, model)
            assert len(upstream.requests("/first/models")) == lists + 1
            for alias in aliases:
                ask(running.port, "POST", PATHS["messages"], question("messages", alias))
                assert upstream.received[-1].path == "/second/chat/completions"
                assert upstream.received[-1].json["model"] == "m-of-alias"
            if not default:
                answer = ask(running.port, "POST", PATHS["chat"], question("chat", "alpa"))
                assert answer.status == 404
                assert '"first/alpha"' in error_in("chat", answer.json)["message"]


def test_one_back_end_is_not_asked_for_its_list_before_it_may_answer(upstream: Upstream) -> None:
    """Where nobody else could be meant; the embedded model still goes by its bare name."""
    upstream.on("/only/models", [HOLD])
    upstream.on("unlisted", whole("chat"))
    with gateway(with_backends(Config(server=server_config()), (http_backend(upstream, "only"),))) as running:
        assert ask(running.port, "POST", PATHS["chat"], question("chat", "unlisted")).status == 200
        assert upstream.requests("/only/models") == []
        asked = question("chat", "echo-tools", tools=[])
        assert ask(running.port, "POST", PATHS["chat"], asked).json["model"] == "echo-tools"
        assert len(upstream.requests("echo-tools")) == 0


def test_a_prefix_is_a_promise(upstream: Upstream) -> None:
    upstream.on("/first/models", listing("alpha"))
    upstream.on("/second/models", listing("alpha"))
    upstream.on("alpha", whole("chat"))
    upstream.on("org/deep/name", whole("chat"))
    backends = (http_backend(upstream, "first"), http_backend(upstream, "second"))
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        for home in ("second", "first"):
            assert ask(running.port, "POST", PATHS["chat"], question("chat", f"{home}/alpha")).status == 200
            assert upstream.received[-1].path == f"/{home}/chat/completions"
        ask(running.port, "POST", PATHS["chat"], question("chat", "first/org/deep/name"))
        assert upstream.received[-1].json["model"] == "org/deep/name"
        answer = ask(running.port, "GET", "/v1/models/second/alpha")
        assert answer.json["id"] == "second/alpha"


def test_a_back_end_that_does_not_list_is_left_out(upstream: Upstream) -> None:
    dead = BackendConfig(name="dead", kind="openai-chat", base_url=f"http://127.0.0.1:{free_port()}")
    keyless = BackendConfig(name="keyless", kind="anthropic", base_url=upstream.url, missing="KEY is not set")
    odd_lists = {
        "html": [reply(200, b"<html>")],
        "odd": [
            reply(200, b'{"data": [{"id": 7}, null, {"name": "named"}, {"id": "late", "created": 99999999999999}]}')
        ],
        "refused": [reply(401, b"{}")],
        "names": [reply(200, b'{"models": [{"name": "ollama:7b"}]}')],
    }
    for name, play in odd_lists.items():
        upstream.on(f"/{name}/models", play)
    backends = (dead, keyless, *(http_backend(upstream, name) for name in odd_lists))
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        for headers in ({}, {"anthropic-version": "2023-06-01"}):
            answer = ask(running.port, "GET", "/v1/models", headers=headers)
            assert answer.status == 200
            assert {line["id"] for line in answer.json["data"]} == {
                "odd/named", "odd/late", "names/ollama:7b", "demo/echo-tools",
            }  # fmt: skip
        answer = ask(running.port, "POST", PATHS["messages"], question("messages", "keyless/x"))
        assert answer.status == 401
        assert "KEY is not set" in error_in("messages", answer.json)["message"]


def test_a_hanging_list_does_not_hold_up_the_others(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_module, "_LIST_SECONDS", 0.2)
    upstream.on("/hanging/models", [HOLD])
    upstream.on("/lively/models", listing("quick"))
    upstream.on("quick", whole("chat"))
    backends = (http_backend(upstream, "hanging"), http_backend(upstream, "lively"))
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        assert ask(running.port, "POST", PATHS["chat"], question("chat", "quick"), timeout=5).status == 200
        assert upstream.requests("/hanging/models")[-1].left.wait(2)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_same_dialect_passes_untouched(server: Gateway, upstream: Upstream, dialect: str) -> None:
    """Spacing, key order and unknown members; only the model's name changes, on the way up and back on the way down."""
    asked = json.dumps(question(dialect, f"{dialect}/as-is") | {"x_new": {"b": 1.50, "a": [1e2]}}, indent=3).encode()
    content = json.dumps(body(dialect, call=ARGUMENTS) | {"zz_unknown": {"k": 1.0}}, indent=1).encode()
    upstream.on("as-is", [reply(200, content)])
    own = f'"model": "{dialect}/as-is"'.encode()
    assert ask(server.port, "POST", PATHS[dialect], asked).body == content.replace(b'"model": "m"', own)
    assert upstream.requests("as-is")[-1].body == asked.replace(f"{dialect}/as-is".encode(), b"as-is")
    play = streamed(dialect, call=ARGUMENTS)
    upstream.on("as-is", play)
    stream = ask(server.port, "POST", PATHS[dialect], question(dialect, f"{dialect}/as-is", stream=True)).body
    sent = b"".join(one.partition(b"\r\n")[2][:-2] for one in play[1:-1] if isinstance(one, bytes))
    assert stream == sent.replace(b'"model": "m"', own)
    assert own in stream


def test_the_clients_key_and_cookies_stay_here(server: Gateway, upstream: Upstream) -> None:
    upstream.on("private", whole("messages"))
    headers = {
        "authorization": "Bearer client",
        "x-api-key": "client",
        "cookie": "a=b",
        "x-forwarded-for": "10.1.1.1",
        "anthropic-beta": "some-feature",
        "anthropic-version": "2023-06-01",
        "connection": "close, x-custom",
        "expect": "",
    }
    ask(server.port, "POST", PATHS["messages"], question("messages", "messages/private"), headers)
    seen = upstream.requests("private")[-1].headers
    assert seen["x-api-key"] == "sk-upstream"
    assert seen["anthropic-beta"] == "some-feature"
    assert "authorization" not in seen
    assert "cookie" not in seen
    assert "x-forwarded-for" not in seen
    assert seen["user-agent"] == "toolwire"


def scripted(dialect: str, stream: bool, **turn: Any) -> dict[str, Any]:
    mark = base64.b64encode(json.dumps(turn).encode()).decode()
    content = [{"role": "user", "content": f"[[script:{mark}]]"}]
    member = "input" if dialect == "responses" else "messages"
    return question(dialect, "scripted/scripted", stream=stream) | {member: content}


async def fetch(port: int, dialect: str, asked: dict[str, Any]) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(request_bytes(PATHS[dialect], asked, connection="close"))
    data = await reader.read()
    writer.close()
    head, _, content = data.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head:
        content = _unchunked(content)
    return Answer(int(head.split(b" ")[1]), {}, content)


def _unchunked(data: bytes) -> bytes:
    pieces = []
    while True:
        size, _, data = data.partition(b"\r\n")
        if not (length := int(size, 16)):
            return b"".join(pieces)
        pieces.append(data[:length])
        data = data[length + 2 :]


@pytest.mark.parametrize("stream", [True, False])
def test_two_hundred_at_once(server: Gateway, stream: bool) -> None:
    async def main() -> list[Answer]:
        asked = [
            (DIALECTS[number % 3], scripted(DIALECTS[number % 3], stream, text=f"answer {number} " * 5, pace=0.005))
            for number in range(200)
        ]
        return list(await asyncio.gather(*(fetch(server.port, dialect, body) for dialect, body in asked)))

    for number, answer in enumerate(asyncio.run(main())):
        dialect = DIALECTS[number % 3]
        assert answer.status == 200
        expected = f"answer {number} " * 5
        if stream:
            assert text_of(dialect, answer.events) == expected
            assert is_ended(dialect, answer.events)
        else:
            assert body_text(dialect, answer.json) == expected


def test_a_hundred_at_once_over_http(server: Gateway, upstream: Upstream) -> None:
    """Each through a connection of its own to the back end, none mixed up with another."""
    names = [f"many-{number}" for number in range(100)]
    for number, name in enumerate(names):
        upstream.on(name, streamed("chat", text=f"text of {name}", call=json.dumps({"n": number}), pause=0.01))

    async def main() -> list[Answer]:
        asked = [question(DIALECTS[number % 3], f"chat/{name}", stream=True) for number, name in enumerate(names)]
        return list(await asyncio.gather(*(fetch(server.port, DIALECTS[n % 3], one) for n, one in enumerate(asked))))

    for number, answer in enumerate(asyncio.run(main())):
        dialect = DIALECTS[number % 3]
        assert text_of(dialect, answer.events) == f"text of many-{number}"
        assert json.loads(arguments_of(dialect, answer.events)) == {"n": number}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
def test_H156_a_fault_of_our_own_ends_the_answer_in_order(dialect: str, stream: bool) -> None:
    async def main() -> None:
        runtime = Runtime({"broken": Broken()}, Router(["broken"], {}, "", {}), {})
        wire = json.dumps(question(dialect, "broken/x", stream=stream)).encode()
        record = Record()
        step = await runtime.step(BY_NAME[dialect].decode_request(wire, {}), record)
        pieces: list[bytes] = []

        async def gather(piece: bytes) -> None:
            pieces.append(piece)

        await step.run(gather)
        data = b"".join(pieces)
        await step.release()
        assert isinstance(step.error, InternalError)
        assert isinstance(step.error.__cause__, ZeroDivisionError)
        assert "mistake" not in step.error.sentence()
        assert (record.outcome, record.error) == ("error", "internal_error")
        if stream:
            assert text_of(dialect, events_in(data)) == "some words"
            assert "went wrong inside the gateway" in failure_in(dialect, events_in(data))

    asyncio.run(main())


class WithoutTools(Backend):
    """Finds out only at a request with tools that it takes none; its model writes a call as text."""

    name = "old"

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        self.requests.append(request)
        if request.tools:
            raise ToolsUnsupported("old takes no tools.", status=400, code="tools_unsupported")
        text = Text(text='<tool_call>{"name": "look", "arguments": {}}</tool_call>')
        parts: list[Event] = [
            PartStarted(index=0, part=Text(text="")),
            PartDelta(0, text.text),
            PartEnded(index=0, part=text),
        ]

        async def events() -> AsyncIterator[list[Event]]:
            yield [Started(id="1", model="m"), *parts, Finished(choices=(Choice(reason="stop"),))]

        return EventReply(events=events())


def test_a_back_end_that_turns_out_to_have_no_tools_gets_them_as_text() -> None:
    async def main() -> None:
        backend = WithoutTools()
        runtime = Runtime({"old": backend}, Router(["old"], {}, "", {}), {})
        request = Request(
            model="old/m",
            messages=(Message(role="user", parts=(Text(text="Look."),)),),
            tools=(Tool(name="look", schema={"type": "object"}),),
            origin="chat",
        )
        for count in (2, 3):  # the first request is sent twice, later ones are simulated at once
            answer = await runtime.answer(request, Record(), is_guarded=True)
            events = [event async for batch in answer.events() for event in batch]
            await answer.release()
            calls = [
                event.part.name for event in events if isinstance(event, PartEnded) and isinstance(event.part, ToolCall)
            ]
            assert (calls, len(backend.requests)) == (["look"], count)

        native = Runtime({"old": backend}, Router(["old"], {}, "", {}), {"old": Policy(tools="native")})
        with pytest.raises(ToolsUnsupported):
            await native.answer(request, Record())

    asyncio.run(main())


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_without_end_is_cut_off(
    server: Gateway, upstream: Upstream, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(answer_module, "MAX_ANSWER", 1 << 20)
    if stream:
        play = streamed("chat", text="x" * 200_000)
        upstream.on("endless", [*play[:3], *[play[3]] * 20, HOLD])
    else:
        upstream.on("endless", [stream_head("application/json"), *[chunk(b" " * 100_000)] * 20, HOLD])
    for client in DIALECTS:
        answer = ask(server.port, "POST", PATHS[client], question(client, "chat/endless", stream=stream))
        message = failure_in(client, answer.events) if stream else error_in(client, answer.json)["message"]
        assert "larger than 1 MB" in message
        assert upstream.requests("endless")[-1].left.wait(2)


def test_H165_state_that_is_not_stored_is_refused(server: Gateway, upstream: Upstream) -> None:
    upstream.on("stateful", whole("responses"))
    asked = question("responses", "chat/stateful", previous_response_id="resp_of_nobody")
    answer = ask(server.port, "POST", PATHS["responses"], asked)
    assert answer.status == 400
    assert error_in("responses", answer.json)["param"] == "previous_response_id"
    asked["model"] = "responses/stateful"
    answer = ask(server.port, "POST", PATHS["responses"], asked)
    assert error_in("responses", answer.json)["code"] == "previous_response_not_found"


def test_ids_are_new_and_plain() -> None:
    ids = {new_id("call_") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(one) == 29 and one[5:].isalnum() for one in ids)


def test_a_stream_that_is_empty_says_what_came(server: Gateway, upstream: Upstream) -> None:
    upstream.on("portal", [stream_head(), chunk(b"<html>Please log in</html>"), LAST_CHUNK])
    answer = ask(server.port, "POST", PATHS["chat"], question("chat", "chat/portal", stream=True))
    assert answer.status == 502
    assert "Please log in" in error_in("chat", answer.json)["message"]


def test_an_upstream_error_keeps_its_type() -> None:
    assert UpstreamError("x").retryable is False


def test_backends_of_every_dialect_are_configured(upstream: Upstream) -> None:
    assert {backend.name for backend in backends_of(upstream)} >= set(DIALECTS)


@pytest.mark.slow
def test_large_tools_are_compiled_beside_the_loop() -> None:
    async def main() -> None:
        runtime = Runtime({"broken": Broken()}, Router(["broken"], {}, "broken", {}), {})  # nobody reads its answer
        properties = {f"property_{number}": {"type": "string", "maxLength": number} for number in range(4900)}
        schema = {"type": "object", "properties": properties}
        names = [
            {"type": "function", "function": {"name": f"t{n}", "parameters": schema | {"title": n}}} for n in range(3)
        ]
        wire = json.dumps(
            {"model": "broken/m", "messages": [{"role": "user", "content": "hi"}], "tools": names}
        ).encode()
        asked = BY_NAME["chat"].decode_request(wire, {})
        async with ticking() as ticks:
            step = await runtime.step(asked, Record())
            assert ticks.count >= 5
        await step.release()

    asyncio.run(main())


def test_a_summary_of_the_gateway_is_not_sent_to_be_counted(server: Gateway, upstream: Upstream) -> None:
    block = {"type": "compaction", "content": "x" * 400, "encrypted_content": "twc1.AAAA"}
    said = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "hi"}]
    body = {"model": "messages/counted", "messages": said}
    answer = ask(server.port, "POST", "/v1/messages/count_tokens", body)
    assert answer.status == 200
    assert answer.json["input_tokens"] > 100
    assert not upstream.requests("counted")
