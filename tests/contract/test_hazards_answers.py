"""Hazards in answers of back ends: parallel calls, fragments, reasoning beside calls, unusual errors; through a running gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dialects.upstream_events import DONE, call, chunk, sse
from tests.server.answers import PATHS, error_in
from tests.server.harness import HOLD, Step, connected, events_in, read_until, reply, request_bytes
from toolwire.types import Reasoning, Text, ToolCall

from .harness import (
    NAMES,
    PAIRS,
    HistoryEntry,
    Stage,
    UpstreamRequest,
    answered,
    calls_play,
    dialect_of,
    on_stage,
    stream_steps,
    talk,
)

USER = HistoryEntry("user", "hi")
each_client = pytest.mark.parametrize("client", NAMES)
each_pair = pytest.mark.parametrize(("client", "backend"), PAIRS)
DAYS = {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with on_stage(("-off", {"guard": "off"}), ("-check", {"guard": "check"})) as running:
        yield running


def calls_in(client: str, answer: Any) -> list[tuple[str, str]]:
    return [(part.name, part.raw) for part in answered(client, answer) if isinstance(part, ToolCall)]


@each_client
def test_H003_H004_two_parallel_calls_with_index_zero_stay_separate(stage: Stage, client: str) -> None:
    """As Ollama and engines without a running index send them: each whole in a chunk, or in pieces, the index always 0."""
    first, second = '{"city": "Zürich"}', '{"days": 3}'
    whole = [chunk(call(0, "call_a", "weather", first)), chunk(call(0, "call_b", "now", second))]
    pieces = [
        chunk(call(0, "call_a", "weather", first[:5])),
        chunk(call(0, arguments=first[5:])),
        chunk(call(0, "call_b", "now", "")),
        chunk(call(0, arguments=second)),
    ]
    for frames in (whole, pieces):
        play = stream_steps(*frames, chunk(finish="stop"), DONE)
        answer = stage.ask(client, "chat", talk(client), play)
        assert calls_in(client, answer) == [("weather", first), ("now", second)]
        ids = [part.id for part in answered(client, answer) if isinstance(part, ToolCall)]
        assert len(set(ids)) == 2
    if client == "chat":
        indices = [one["index"] for _, data in answer.events if isinstance(data, dict) for choice in data["choices"] for one in choice["delta"].get("tool_calls", [])]  # fmt: skip
        assert set(indices) == {0, 1}


@pytest.mark.parametrize("guard", ["", "-off"], ids=["check", "off"])
@each_pair
def test_H014_every_fragment_is_sent_when_it_arrives(stage: Stage, client: str, backend: str, guard: str) -> None:
    """The back end falls silent in the middle of the arguments: what it said before is with the client."""
    steps = calls_play(backend, ("call_1", "weather", ['{"city": "', "abc", 'def"}']))
    wire = b"".join(step for step in steps if isinstance(step, bytes))
    place = wire.index(b"def")
    stage.upstream.on("halting", [wire[:place], HOLD])
    connection = connected(stage.server.port)
    try:
        body = {"model": f"{backend}{guard}/halting", **talk(client)}
        connection.sendall(request_bytes(PATHS[client], body))
        read_until(connection, b"abc")
    finally:
        connection.close()


COMMAND = (
    "cd /tmp && mkdir -p test/{test1,test2} && " + 'echo "{\\"a\\": \'é\'}" | sed \'s/"/\\\\"/g\' && ' * 12 + "true\n"
)
LONG = json.dumps({"command": COMMAND, "paths": ["{", "}", "}{", ""]})
BASH = {"type": "object", "properties": {"command": {"type": "string"}, "paths": {"type": "array"}}}


@pytest.mark.parametrize("size", [1, 7, 4096])
@each_pair
def test_H018_H019_H021_H108_arguments_arrive_to_the_byte_and_nowhere_else(
    stage: Stage, client: str, backend: str, size: int
) -> None:
    """Long, escaped, with braces that close nothing, cut anywhere."""
    assert len(LONG) > 758
    pieces = [LONG[place : place + size] for place in range(0, len(LONG), size)]
    answer = stage.ask(client, backend, talk(client, tools={"bash": BASH}), calls_play(backend, ("c", "bash", pieces)))
    assert calls_in(client, answer) == [("bash", LONG)]
    texts = "".join(part.text for part in answered(client, answer) if isinstance(part, Text | Reasoning))
    assert texts == ""


@each_pair
def test_H026_a_call_is_repaired_before_it_is_sent_or_not_at_all(stage: Stage, client: str, backend: str) -> None:
    """A user who approves a call approves what runs: at check the model's own text passes, at repair nothing else was ever sent."""
    wrong = ("call_1", "weather", ['{"days":', ' "3"}'])
    body = talk(client, tools={"weather": DAYS})
    answer = stage.ask(client, f"{backend}-check", body, calls_play(backend, wrong))
    assert calls_in(client, answer) == [("weather", '{"days": "3"}')]
    answer = stage.ask(client, backend, body, calls_play(backend, wrong))
    ((_, raw),) = calls_in(client, answer)
    assert json.loads(raw) == {"days": 3}
    assert b'\\"3\\"' not in answer.body


@each_pair
def test_H110_arguments_that_are_no_json_are_forwarded_marked_and_counted(
    stage: Stage, client: str, backend: str
) -> None:
    broken = '{"city": "a\n", "days": }'
    before = stage.metric("toolwire_tool_calls_invalid_args_total", backend=backend)
    answer = stage.ask(client, backend, talk(client), calls_play(backend, ("call_1", "weather", [broken])))
    assert calls_in(client, answer) == [("weather", broken)]
    stage.wait_metric(before + 1, "toolwire_tool_calls_invalid_args_total", backend=backend)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@each_pair
def test_H109_H122_a_forced_call_without_arguments_has_the_empty_object(
    stage: Stage, client: str, backend: str, stream: bool
) -> None:
    choice: dict[str, Any] = {
        "chat": {"type": "function", "function": {"name": "now"}},
        "responses": {"type": "function", "name": "now"},
        "messages": {"type": "tool", "name": "now"},
    }
    body = talk(client, stream=stream, tool_choice=choice[client])
    answer = stage.ask(client, backend, body, calls_play(backend, ("call_1", "now", [])))
    assert UpstreamRequest(dialect_of(backend), stage.received()[-1].json).choice == "now"
    (made,) = answered(client, answer, stream=stream)
    assert isinstance(made, ToolCall)
    assert (made.name, made.raw, made.args) == ("now", "{}", {})


ODD = {"error parsing tool call": "raw='{\"city\":'"}
ODD_PLAYS: dict[str, list[Step]] = {
    "status": [reply(500, json.dumps(ODD).encode())],
    "body": [reply(200, json.dumps(ODD).encode())],
    "stream": stream_steps(sse(ODD)),
    "mid-stream": stream_steps(chunk({"content": "Hello"}), sse(ODD)),
}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("play", ODD_PLAYS)
@each_client
def test_H114_an_error_whose_message_is_a_key_keeps_its_message(
    stage: Stage, client: str, play: str, stream: bool
) -> None:
    answer = stage.ask(client, "chat", talk(client, stream=stream), ODD_PLAYS[play])
    if stream and play == "mid-stream":
        assert answer.status == 200
        told = json.dumps(events_in(answer.body)[-1])
        assert "[DONE]" not in answer.body.decode()
    else:
        assert answer.status in (500, 502)
        told = json.dumps(answer.json)
    assert "error parsing tool call" in told


DRAFT = '<tool_call>{"name": "weather", "arguments": {"city": "draft"}}</tool_call>'


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@each_client
def test_H124_H135_H136_reasoning_text_and_calls_stay_separate(stage: Stage, client: str, stream: bool) -> None:
    """A draft in the thoughts is a thought, an example in the text is text; thoughts beside a call are neither lost nor text."""
    frames = [
        chunk({"role": "assistant", "reasoning_content": f"I could write {DRAFT[:20]}"}),
        chunk({"reasoning_content": DRAFT[20:]}),
        chunk({"content": f"One writes\n```\n{DRAFT}\n```\n"}),
        chunk(call(0, "call_1", "weather", '{"city": "real"}')),
        chunk(finish="tool_calls"),
        DONE,
    ]
    parts = answered(
        client, stage.ask(client, "chat", talk(client, stream=stream), stream_steps(*frames)), stream=stream
    )
    assert [part.text for part in parts if isinstance(part, Reasoning)] == [f"I could write {DRAFT}"]
    assert [part.text for part in parts if isinstance(part, Text)] == [f"One writes\n```\n{DRAFT}\n```\n"]
    assert [part.args for part in parts if isinstance(part, ToolCall)] == [{"city": "real"}]


@pytest.mark.parametrize("name", ["functions.weather", "functions/weather", "default_api:weather", "weather"])
@each_client
def test_H116_a_name_with_or_without_a_prefix_is_the_tools(stage: Stage, client: str, name: str) -> None:
    answer = stage.ask(client, "chat", talk(client), calls_play("chat", ("call_1", name, ['{"city": "x"}'])))
    assert calls_in(client, answer) == [("weather", '{"city": "x"}')]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@each_client
def test_H169_a_subscription_rejected_by_policy_is_a_403_with_the_reason(
    stage: Stage, client: str, stream: bool
) -> None:
    words = "This credential is only authorized for use with Claude Code and cannot be used for other API requests."
    refusal = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    before = len(stage.received())
    body = talk(client, HistoryEntry("user", "hi"), stream=stream)
    answer = stage.ask(client, "messages", body, [reply(400, json.dumps(refusal).encode())])
    assert answer.status == 403
    error = error_in(client, answer.json)
    assert error["type"] == "permission_error"
    assert words in error["message"]
    assert "API key" in error["message"]
    (asked,) = stage.received()[before:]
    assert asked.headers["user-agent"] == "toolwire"
