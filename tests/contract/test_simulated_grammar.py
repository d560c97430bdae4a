"""Simulated tools on a server that constrains its output: the schema it gets, and the calls and the text that a client gets."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from tests.contract.client_answers import Seen, see
from tests.server.answers import DIALECTS, KINDS, PATHS, body, frame, frames, question, streamed, whole
from tests.server.harness import (
    HOLD,
    LAST_CHUNK,
    Answer,
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
)
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PARIS = {"name": "weather", "arguments": {"city": "Paris"}}
BLOCK = f"<tool_call>\n{json.dumps(PARIS)}\n</tool_call>"
REFUSAL: list[Step] = [reply(400, b'{"error": {"message": "response_format: not supported", "type": "invalid"}}')]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Gateway]:
    backends = []
    for dialect, (ending, fields) in itertools.product(
        DIALECTS, {"": {}, "-on": {"grammar": "on"}, "-off": {"grammar": "off"}, "-check": {"guard": "check"}}.items()
    ):
        kind: Any = KINDS[dialect]
        url = upstream.url + ("" if dialect == "messages" else "/v1")
        settings: Any = {"tools": "simulate", "guard": "retry", "policy": "text", "retries": 0} | fields
        key = Secret("sk-upstream")
        backends.append(BackendConfig(name=dialect + ending, kind=kind, base_url=url, key=key, **settings))
    with gateway(with_backends(Config(server=server_config()), tuple(backends))) as running:
        yield running


def tools(dialect: str) -> list[Any]:
    if dialect == "chat":
        return [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    if dialect == "responses":
        return [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    return [{"name": "weather", "input_schema": SCHEMA}]


def asked(server: Gateway, client: str, model: str, *, stream: bool, **more: Any) -> tuple[Seen, Answer]:
    asking = question(client, model, stream=stream, **({"tools": tools(client)} | more))
    answer = ask(server.port, "POST", PATHS[client], asking)
    assert answer.status == 200, answer.body
    return see(client, answer.body, stream=stream), answer


def played(upstream: Upstream, dialect: str, stream: bool, *answers: Any) -> str:
    """Answers as objects, as text, or as what the server sends."""
    play = streamed if stream else whole
    texts = [answer if isinstance(answer, str | list) else json.dumps(answer) for answer in answers]
    plays = [text if isinstance(text, list) else play(dialect, text) for text in texts]
    return upstream.on(f"g{next(_numbers)}", *plays)


def schema_in(dialect: str, body: Any) -> Any:
    """The output schema of a request; None without one."""
    if dialect == "chat":
        return body.get("response_format", {}).get("json_schema", {}).get("schema")
    member = body.get("text" if dialect == "responses" else "output_config", {}).get("format", {})
    return member.get("schema")


def both_ways() -> Any:
    return pytest.mark.parametrize("stream", [True, False])


@both_ways()
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_constrained_answer_is_text_and_calls_in_every_dialect(
    server: Gateway, upstream: Upstream, client: str, dialect: str, stream: bool
) -> None:
    model = played(upstream, dialect, stream, {"text": 'A "moment", é😀.\n', "calls": [PARIS, PARIS]})
    seen, answer = asked(server, client, f"{dialect}/{model}", stream=stream)
    assert [(call.name, call.arguments) for call in seen.calls] == [("weather", {"city": "Paris"})] * 2
    assert (seen.text, seen.finish) == ('A "moment", é😀.\n', "tool_calls")
    assert "grammar" not in answer.headers.get("x-toolwire-loss", "")
    (sent,) = upstream.requests(model)
    schema = schema_in(dialect, sent.json)
    allows = jsonschema_rs.Draft202012Validator(schema).is_valid
    assert allows({"calls": [PARIS]})
    assert allows({"text": "x"})
    assert not allows({"calls": [{"name": "weather", "arguments": {}}]})
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(sent.json)


@both_ways()
def test_forced_choices_are_schemas(server: Gateway, upstream: Upstream, stream: bool) -> None:
    named = {"type": "function", "function": {"name": "weather"}}
    for choice, may_talk in (("required", False), (named, False), ("auto", True)):
        model = played(upstream, "chat", stream, {"calls": [PARIS]})
        seen, _ = asked(server, "chat", f"chat/{model}", stream=stream, tool_choice=choice, parallel_tool_calls=False)
        assert len(seen.calls) == 1
        allows = jsonschema_rs.Draft202012Validator(schema_in("chat", upstream.requests(model)[0].json)).is_valid
        assert allows({"text": "x"}) is may_talk
        assert not allows({"calls": [PARIS, PARIS]})
    model = played(upstream, "chat", stream, "Just text.")
    seen, _ = asked(server, "chat", f"chat/{model}", stream=stream, tool_choice="none")
    assert seen.text == "Just text."
    assert "response_format" not in upstream.requests(model)[0].json


@both_ways()
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refused_schema_costs_one_request_and_is_reported(
    server: Gateway, upstream: Upstream, dialect: str, stream: bool
) -> None:
    for ending, is_reported_again in (("", False), ("-on", True)):
        model = played(upstream, dialect, stream, REFUSAL, BLOCK)
        seen, answer = asked(server, "chat", f"{dialect}{ending}/{model}", stream=stream)
        assert [call.arguments for call in seen.calls] == [{"city": "Paris"}]
        assert "grammar" in answer.headers["x-toolwire-loss"]
        first, second = upstream.requests(model)
        assert schema_in(dialect, first.json)
        assert schema_in(dialect, second.json) is None
        _, answer = asked(server, "chat", f"{dialect}{ending}/{model}", stream=stream)
        assert ("grammar" in answer.headers.get("x-toolwire-loss", "")) is is_reported_again
        assert len(upstream.requests(model)) == 3


def test_a_request_that_fails_in_both_forms_fails_with_the_error_of_the_second(
    server: Gateway, upstream: Upstream
) -> None:
    later: list[Step] = [reply(400, b'{"error": {"message": "the context is too long", "type": "invalid"}}')]
    model = played(upstream, "chat", False, REFUSAL, later, {"text": "ok"})
    answer = ask(server.port, "POST", PATHS["chat"], question("chat", f"chat/{model}", tools=tools("chat")))
    assert (answer.status, b"too long" in answer.body) == (400, True)
    seen, _ = asked(server, "chat", f"chat/{model}", stream=False)
    assert seen.text == "ok"
    assert [schema_in("chat", sent.json) is not None for sent in upstream.requests(model)] == [True, False, True]


@both_ways()
def test_a_server_that_ignores_the_schema_still_works(server: Gateway, upstream: Upstream, stream: bool) -> None:
    for answer, text, calls in (
        ("It is {sunny}.", "It is {sunny}.", 0),
        (BLOCK, "", 1),
        (f"Let me look.\n{BLOCK}", "Let me look.\n", 1),
        (json.dumps(PARIS), "", 1),
        (f"```json\n{json.dumps({'calls': [PARIS]})}\n```", "", 1),
    ):
        model = played(upstream, "chat", stream, answer)
        seen, got = asked(server, "chat", f"chat/{model}", stream=stream)
        assert (seen.text, [call.arguments for call in seen.calls]) == (text, [{"city": "Paris"}] * calls), answer
        if not stream:
            assert "grammar" in got.headers["x-toolwire-loss"]
        asked(server, "chat", f"chat/{model}", stream=stream)
        assert [schema_in("chat", sent.json) is not None for sent in upstream.requests(model)] == [True, False]


@both_ways()
def test_invalid_calls_of_a_server_that_ignores_the_schema_are_corrected(
    server: Gateway, upstream: Upstream, stream: bool
) -> None:
    wrong = {"calls": [{"name": "weather", "arguments": {"town": "Paris"}}]}
    model = played(upstream, "chat", stream, wrong, '{"city": "Paris"}', BLOCK)
    seen, _ = asked(server, "chat", f"chat/{model}", stream=stream)
    assert [call.arguments for call in seen.calls] == [{"city": "Paris"}]


@both_ways()
def test_output_that_the_client_wants_is_part_of_the_schema(server: Gateway, upstream: Upstream, stream: bool) -> None:
    wanted = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": wanted}}
    model = played(upstream, "chat", stream, '{"json": {"a": 1.0, "b": "}\\""}}', {"calls": [PARIS]})
    seen, answer = asked(server, "chat", f"chat/{model}", stream=stream, response_format=form)
    assert (seen.text, seen.calls) == ('{"a": 1.0, "b": "}\\""}', ())
    assert "output.schema" not in answer.headers.get("x-toolwire-loss", "")
    seen, _ = asked(server, "chat", f"chat/{model}", stream=stream, response_format=form)
    assert len(seen.calls) == 1
    allows = jsonschema_rs.Draft202012Validator(schema_in("chat", upstream.requests(model)[0].json)).is_valid
    assert allows({"json": {"a": 1}})
    assert not allows({"json": {"a": "1"}})
    assert not allows({"text": "hi"})


@pytest.mark.parametrize(
    ("written", "shown", "hidden"),
    [
        ('{"text": "Let me look', b"Let me look", b"text"),
        ('{"text": "", "calls": [{"name": "weather", "arguments": {"city": "Par', b"Par", b"calls"),
    ],
)
def test_text_and_arguments_stream_while_they_are_written(
    server: Gateway, upstream: Upstream, written: str, shown: bytes, hidden: bytes
) -> None:
    """The server never finishes its answer."""
    delta = {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": written}}]}
    model = upstream.on(f"g{next(_numbers)}", [stream_head(), chunk(frame("chat", delta)), HOLD])
    asking = question("chat", f"chat-check/{model}", stream=True, tools=tools("chat"))
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], asking))
        head, _, answer = read_until(connection, shown).partition(b"\r\n\r\n")
    assert b"200" in head
    assert hidden not in answer.replace(b"tool_calls", b"")


@both_ways()
def test_a_cut_answer_keeps_its_text_and_makes_no_call_of_a_part(
    server: Gateway, upstream: Upstream, stream: bool
) -> None:
    cut = '{"text": "Well.", "calls": [{"name": "weather", "arguments": {"city": "Pa'
    if stream:
        sent = [one.replace(b'"stop"', b'"length"') for one in frames("chat", cut)]
        play: list[Step] = [stream_head(), *map(chunk, sent), LAST_CHUNK]
    else:
        play = [reply(200, json.dumps(body("chat", cut)).replace('"stop"', '"length"').encode())]
    model = upstream.on(f"g{next(_numbers)}", play)
    seen, _ = asked(server, "chat", f"chat/{model}", stream=stream)
    assert (seen.calls, seen.finish) == ((), "length")
    assert seen.text.startswith("Well.")
    assert len(upstream.requests(model)) == 1


def test_grammar_off_sends_no_schema(server: Gateway, upstream: Upstream) -> None:
    model = played(upstream, "chat", False, BLOCK)
    seen, _ = asked(server, "chat", f"chat-off/{model}", stream=False)
    assert len(seen.calls) == 1
    assert "response_format" not in upstream.requests(model)[0].json
