"""The default guard in a stream: long strings arrive as they come, valid calls are not changed, and the stream says what was done."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.contract.guard_requests import arguments, ask, tools
from tests.dialects.upstream_events import (
    DONE,
    Numbered,
    block,
    call,
    chunk,
    json_delta,
    message_end,
    message_start,
    response,
    tool_use,
    usage_chunk,
)
from tests.server.answers import DIALECTS, KINDS, PATHS, arguments_of, question, streamed
from tests.server.harness import HOLD, LAST_CHUNK, Gateway, Step, Upstream, gateway, server_config, stream_head
from tests.server.harness import chunk as http_chunk
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.wire.sse import SseReader

_numbers = itertools.count()
TEXT = 'def f(a, b):\n    return {"a": [a, b]}  # é 😀\n' * 230
WRITE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Gateway]:
    """Back ends without any setting of the guard."""
    backends = tuple(
        BackendConfig(
            name=dialect,
            kind=kind,  # type: ignore[arg-type] # one of the kinds
            base_url=upstream.url + ("/v1" if kind.startswith("openai") else ""),
            key=Secret("sk-upstream"),
            retries=0,
        )
        for dialect, kind in (KINDS | {"gemini": "gemini"}).items()
    )
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield running


def call_frames(dialect: str, raw: str, size: int) -> list[bytes]:
    """A call of weather, its arguments in pieces of this size, one frame each."""
    pieces = [raw[start : start + size] for start in range(0, len(raw), size)]
    if dialect == "chat":
        first = [chunk({"role": "assistant", "content": None}), chunk(call(0, "call_0", "weather", ""))]
        return [
            *first,
            *(chunk(call(0, arguments=one)) for one in pieces),
            chunk(finish="tool_calls"),
            usage_chunk(),
            DONE,
        ]
    if dialect == "messages":
        wire = (
            message_start()
            + block(0, tool_use("call_0", "weather"), *map(json_delta, pieces))
            + message_end("tool_use")
        )
    else:
        numbered = Numbered().created().call(0, "weather", *pieces)
        wire = numbered.add("completed", response=response("completed", numbered.done, usage=USAGE)).wire
    return [frame + b"\n\n" for frame in wire.split(b"\n\n")[:-1]]


def reports(raw: bytes) -> list[dict[str, Any]]:
    """The comments of the gateway in a stream."""
    lines = [line for line in raw.decode().split("\n") if line.startswith(": toolwire ")]
    return [json.loads(line.removeprefix(": toolwire ")) for line in lines]


@pytest.mark.parametrize("client", DIALECTS)
def test_the_report_says_which_tool_and_member(server: Gateway, upstream: Upstream, client: str) -> None:
    model = upstream.on(f"m{next(_numbers)}", streamed("chat", "", '{"city": "Paris", "days": "2"}'))
    [report] = reports(ask(server, client, f"chat/{model}", stream=True).raw)
    [repaired] = report["repaired"]
    assert (repaired["tool"], repaired["members"], repaired["repairs"]) == ("weather", ["days"], ["typed"])
    assert repaired["call"]
    model = upstream.on(f"m{next(_numbers)}", streamed("chat", "", '{"days": 1}'))
    asked = ask(server, client, f"chat/{model}", stream=True)
    assert arguments(asked.seen) == [("weather", {"days": 1})]
    [report] = reports(asked.raw)
    [loss] = [one for one in report["losses"] if one["feature"].startswith("call.")]
    where = {"feature": "call.invalid_arguments", "effect": "lost", "where": 'call "weather"'}
    assert loss == {**where, "why": "missing: city"}
    blocks = asked.raw.decode().split("\n\n")[:-1]
    assert [block.startswith(": toolwire ") for block in blocks[-3:]] == [False, True, False]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_valid_call_is_forwarded_without_a_change(server: Gateway, upstream: Upstream, dialect: str) -> None:
    wire = b"".join(call_frames(dialect, json.dumps({"city": TEXT, "days": 2}), 9))
    model = upstream.on(f"m{next(_numbers)}", [stream_head(), http_chunk(wire), LAST_CHUNK])
    asked = ask(server, dialect, f"{dialect}/{model}", stream=True, tools=tools(dialect, WRITE))
    renamed = asked.raw.replace(f"{dialect}/{model}".encode(), b"m")
    assert renamed == wire


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_long_string_arrives_while_the_model_still_writes_it(
    server: Gateway, upstream: Upstream, client: str, dialect: str
) -> None:
    raw = json.dumps({"days": 1, "city": TEXT}, ensure_ascii=False)
    frames = call_frames(dialect, raw, 50)
    half = len(frames) // 2
    steps: list[Step] = [stream_head(), *map(http_chunk, frames[:half]), HOLD]
    model = upstream.on(f"m{next(_numbers)}", steps)
    due = arguments_of(dialect, [("", json.loads(frame.partition(b"data: ")[2])) for frame in frames[:half]])
    body = question(client, f"{dialect}/{model}", stream=True, tools=tools(client, WRITE))
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", PATHS[client], json.dumps(body), {"content-type": "application/json", "x-api-key": "k"})
    answer, reader, seen = connection.getresponse(), SseReader(), ""
    while len(seen) < len(due) - 12:  # an escape may be incomplete; without the rest this would time out
        frames_read = reader.feed(answer.read1(65536))
        seen += arguments_of(client, [("", json.loads(one.data)) for one in frames_read if one.data != b"[DONE]"])
    assert due.startswith(seen)
    connection.close()
