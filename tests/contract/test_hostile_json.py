"""Every place of a request, or of a back end's answer, replaced by a value of another type: no client sees an internal error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.thorough import is_thorough
from toolwire.errors import BadRequest
from toolwire.server.socket.create import read_message

from .front_members import FRONT_BASES, FRONT_MEMBERS
from .hostile_json import ODD, variants
from .malformed.gateway import Stage, UpstreamReply, stage
from .malformed.regular import OSLO, PARIS, WORDS, ReplyContent, body, body_bytes, sse, stream
from .request_members import BASES, MEMBERS, Body

STEP = 1 if is_thorough() else 7  # of the values, each place gets every seventh
QUICK = 61
BACKENDS = ("chat", "responses", "messages", "gemini")
DOORS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/{model}:generateContent",
    "ollama": "/api/chat",
    "interactions": "/v1beta/interactions",
}
OTHER_DOORS: dict[str, Body] = {
    "/v1/responses/compact": {
        "model": "chat/m", "input": [{"role": "user", "content": "hi"}], "instructions": "x", "prompt_cache_key": "k",
    },
    "/v1/responses/input_tokens": {
        "model": "chat/m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}], "tools": [{"type": "function", "name": "a", "parameters": {}}],
    },
    "/v1/conversations": {
        "items": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}, {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}],
        "metadata": {"a": "b"},
    },
    "/v1/embeddings": {"model": "messages/m", "input": ["a"], "dimensions": 3, "encoding_format": "float", "user": "x"},
    "/v1/messages/count_tokens": {
        "model": "chat/m", "system": [{"type": "text", "text": "s"}], "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "tools": [{"name": "a", "input_schema": {"type": "object"}}],
    },
    "/v1beta/models/chat/m:countTokens": {"contents": [{"parts": [{"text": "hi"}]}], "generateContentRequest": {"model": "m", "contents": [{"parts": [{"text": "hi"}]}]}},
    "/api/embed": {"model": "messages/m", "input": ["a"], "truncate": True, "options": {"a": 1}, "keep_alive": "5m", "dimensions": 3},
    "/api/embeddings": {"model": "messages/m", "prompt": "a", "options": {}},
    "/api/show": {"model": "chat/m", "name": "chat/m", "verbose": True},
    "/api/pull": {"model": "chat/m", "stream": True, "insecure": False},
    "/api/generate": {
        "model": "chat/m", "prompt": "hi", "system": "s", "images": ["aGk="], "format": {"type": "object"}, "think": True, "stream": True,
        "options": {"temperature": 0.5, "stop": ["x"]}, "keep_alive": "5m", "template": "t", "raw": False,
    },
}  # fmt: skip
ANSWER = ReplyContent(WORDS, (PARIS, OSLO), ("Hm. ", "Well."))
INTERNAL = b"something went wrong inside the gateway"


class Doors:
    """One application for all requests of a module."""

    def __init__(self, runner: asyncio.Runner, opened: Stage) -> None:
        self._runner = runner
        self._stage = opened

    def faults(self, door: str, cases: Iterator[tuple[Any, Body]]) -> list[str]:
        """Requests whose answers are no answer and no error of the client. Back ends and streaming alternate."""
        return self._runner.run(self._faults(door, cases))

    async def _faults(self, door: str, cases: Iterator[tuple[Any, Body]]) -> list[str]:
        found: list[str] = []
        for number, (place, request) in enumerate(cases):
            backend, is_stream = BACKENDS[number % len(BACKENDS)], bool(number // len(BACKENDS) % 2)
            if not door.startswith("/"):
                request = _addressed(door, request, f"auto-{backend}/m", is_stream=is_stream)
            reply = UpstreamReply([_regular(backend, is_stream=is_stream)], _kind(is_stream), is_cut=False)
            path = DOORS.get(door, door)
            answer = await self._stage.send(path, request, reply)
            if answer.status >= 500 or INTERNAL in answer.body:
                found.append(f"{door} {place}: {answer.status} {answer.body[:200]!r} for {json.dumps(request)[:600]}")
        return found

    def answer_faults(self, backend: str, wires: Iterator[tuple[Any, bytes, str]]) -> list[str]:
        return self._runner.run(self._answer_faults(backend, wires))

    async def _answer_faults(self, backend: str, wires: Iterator[tuple[Any, bytes, str]]) -> list[str]:
        found: list[str] = []
        clients = list(DOORS)
        for number, (place, wire, kind) in enumerate(wires):
            client, way = clients[number % len(clients)], ("auto", "never")[number // len(clients) % 2]
            is_stream = bool(number // len(clients) // 2 % 2)
            base: Body = {**BASES, **FRONT_BASES}[client]
            request = _addressed(client, base, f"{way}-{backend}/m", is_stream=is_stream)
            answer = await self._stage.send(DOORS[client], request, UpstreamReply([wire], kind, is_cut=False))
            if answer.status == 500 or INTERNAL in answer.body:
                found.append(f"{backend} -> {client} {way} {place}: {answer.body[-300:]!r} for {wire[:2000]!r}")
        return found


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opened = runner.run(stack.enter_async_context(stage()))
        yield Doors(runner, opened)
        runner.run(stack.aclose())


def _addressed(door: str, request: Body, model: str, *, is_stream: bool) -> Body:
    """Gemini's path has the model and the way of answering; Stage.send moves them there."""
    return {**request, "model": model, "stream": is_stream}


def _kind(is_stream: bool) -> str:
    return "text/event-stream" if is_stream else "application/json"


def _regular(backend: str, *, is_stream: bool) -> bytes:
    return sse(stream(backend, ANSWER)) if is_stream else body_bytes(body(backend, ANSWER))


def _requests(door: str, step: int) -> Iterator[tuple[Any, Body]]:
    if door.startswith("/"):
        yield from variants(OTHER_DOORS[door], step=max(1, step // 7))
        return
    base = {**BASES, **FRONT_BASES}[door]
    for number, member in enumerate([{}, *{**MEMBERS, **FRONT_MEMBERS}[door].values()]):
        yield from ((path, value) for path, value in variants(base | member, number, step) if path[0] != "model")


def _answers(backend: str, step: int) -> Iterator[tuple[Any, bytes, str]]:
    for number, (place, values) in enumerate(variants(stream(backend, ANSWER), step=step)):
        yield place, sse(values), _kind(True)
        if number % 3 == 0:
            yield place, b"".join(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values), _kind(True)
    for place, value in variants(json.loads(body_bytes(body(backend, ANSWER))), step=step):
        yield place, json.dumps(value).encode(), _kind(False)


@pytest.mark.parametrize("door", [*DOORS, *OTHER_DOORS])
def test_some_odd_requests_are_no_internal_error(doors: Doors, door: str) -> None:
    assert doors.faults(door, _requests(door, QUICK)) == []


@pytest.mark.slow
@pytest.mark.parametrize("door", [*DOORS, *OTHER_DOORS])
def test_odd_requests_are_no_internal_error(doors: Doors, door: str) -> None:
    assert doors.faults(door, _requests(door, STEP)) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_some_odd_answers_are_no_internal_error(doors: Doors, backend: str) -> None:
    assert doors.answer_faults(backend, _answers(backend, QUICK)) == []


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_odd_answers_are_no_internal_error(doors: Doors, backend: str) -> None:
    assert doors.answer_faults(backend, _answers(backend, STEP)) == []


def test_odd_messages_of_a_websocket_are_read_or_refused() -> None:
    create = {"type": "response.create", "stream_id": "a", "generate": True, "prompt_cache_options": {"prewarm": True}, **BASES["responses"]}  # fmt: skip
    steer = {"type": "response.steer", "previous_response_id": "r", "input": [{"role": "user", "content": "hi"}]}
    for message in (create, steer):
        for _, value in variants(message):
            _read(json.dumps(value))
    for value in ODD:
        _read(json.dumps(value))


def _read(text: str) -> None:
    try:
        read_message(text)
    except BadRequest:
        return
