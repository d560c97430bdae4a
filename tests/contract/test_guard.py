"""Invalid calls at every guard level: what the client gets, what the model gets, what is counted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest

from tests.contract.guard_requests import RIGHT, arguments, ask, backend, counters, tools
from tests.server.answers import DIALECTS, streamed, whole
from tests.server.harness import Gateway, Step, Upstream, gateway, reply, server_config
from toolwire.config.file import Config, Guard, with_backends

_numbers = itertools.count()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Gateway]:
    levels: tuple[Guard, ...] = ("off", "check", "repair", "retry")
    backends = [backend(upstream, dialect, level) for dialect in DIALECTS for level in levels]
    backends += [backend(upstream, "chat", "retry", policy, policy=policy) for policy in ("pass", "text", "error")]
    backends.append(backend(upstream, "chat", "retry", "five", max_corrections=5, policy="error"))
    backends.append(backend(upstream, "chat", "check", "by-model", guards={"careful-*": "retry"}))
    with gateway(with_backends(Config(server=server_config()), tuple(backends))) as running:
        yield running


def script_model(
    upstream: Upstream, dialect: str, stream: bool, *calls: str | None, text: str = "Let me look. "
) -> str:
    play = streamed if stream else whole
    return upstream.on(f"m{next(_numbers)}", *(play(dialect, text, call) for call in calls))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_call_without_its_required_member_is_corrected(
    server: Gateway, upstream: Upstream, client: str, dialect: str, stream: bool
) -> None:
    model = script_model(upstream, dialect, stream, "{}", RIGHT)
    answer = ask(server, client, f"{dialect}-retry/{model}", stream=stream)
    assert arguments(answer.seen) == [("weather", {"city": "Paris"})]
    assert answer.seen.finish == "tool_calls"
    assert answer.seen.text.startswith("Let me look. ")
    assert answer.seen.usage is not None
    assert (answer.seen.usage.input, answer.seen.usage.output) == (14, 10)
    told = upstream.requests(model)
    assert len(told) == 2
    result = json.dumps(told[1].json)
    for word in ("invalid_arguments", "validation_errors", "missing", "received", "hint", "city"):
        assert word in result
    assert json.dumps(told[0].json["messages" if dialect != "responses" else "input"])[1:-1] in result
    found = counters(server, f"{dialect}-retry", model)
    assert (found["tool_calls"], found["tool_calls_invalid_args"], found["tool_calls_corrected"]) == (2, 1, 1)
    assert found["tool_call_corrections"] == 1


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("policy", ["pass", "text", "error"])
@pytest.mark.parametrize("client", DIALECTS)
def test_corrections_stop_at_their_limit(
    server: Gateway, upstream: Upstream, client: str, policy: str, stream: bool
) -> None:
    model = script_model(upstream, "chat", stream, "{}")
    answer = ask(server, client, f"{policy}/{model}", stream=stream)
    assert len(upstream.requests(model)) == 3
    if policy == "pass":
        assert arguments(answer.seen) == [("weather", {})]
        assert stream or "call.invalid_arguments" in answer.losses
    elif policy == "text":
        assert answer.seen.calls == ()
        assert answer.seen.finish == "stop"
        assert 'The model called "weather"' in answer.seen.text
    else:
        assert "after 2 corrections" in answer.seen.error
        assert answer.seen.calls == ()
    found = counters(server, policy, model)
    assert (found["tool_calls_invalid_args"], found["tool_call_corrections"]) == (3, 2)
    assert found["tool_call_corrections_exhausted"] == 1
    assert "tool_loop_max_iterations" not in found
    assert "tool_calls_corrected" not in found


def test_the_same_failure_three_times_ends_the_corrections_early(server: Gateway, upstream: Upstream) -> None:
    model = script_model(upstream, "chat", True, "{}")
    ask(server, "chat", f"five/{model}", stream=True)
    assert len(upstream.requests(model)) == 3
    model = script_model(
        upstream, "chat", True, "{}", '{"days": 1}', '{"days": 2}', '{"days": 3}', '{"days": 4}', RIGHT
    )
    assert arguments(ask(server, "chat", f"five/{model}", stream=True).seen) == [("weather", {"city": "Paris"})]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_H025_unambiguous_arguments_are_repaired_without_a_correction(
    server: Gateway, upstream: Upstream, client: str, dialect: str
) -> None:
    for level in ("repair", "retry"):
        model = script_model(upstream, dialect, True, '{"city": "Paris", "days": "3"}')
        answer = ask(server, client, f"{dialect}-{level}/{model}", stream=True)
        assert arguments(answer.seen) == [("weather", {"city": "Paris", "days": 3})]
        assert len(upstream.requests(model)) == 1
        assert counters(server, f"{dialect}-{level}", model)["tool_calls_repaired"] == 1


@pytest.mark.parametrize("client", DIALECTS)
def test_at_check_an_invalid_call_is_forwarded_and_reported(server: Gateway, upstream: Upstream, client: str) -> None:
    model = script_model(upstream, client, False, '{"city": "Paris", "days": "3"}')
    answer = ask(server, client, f"{client}-check/{model}", stream=False)
    assert arguments(answer.seen) == [("weather", {"city": "Paris", "days": "3"})]
    assert answer.losses == "call.invalid_arguments"
    found = counters(server, f"{client}-check", model)
    assert (found["tool_calls"], found["tool_calls_invalid_args"]) == (1, 1)


@pytest.mark.parametrize("level", ["check", "repair", "retry"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("client", DIALECTS)
def test_H090_a_call_without_offered_tools_is_text(
    server: Gateway, upstream: Upstream, client: str, stream: bool, level: str
) -> None:
    for dialect in DIALECTS:
        model = script_model(upstream, dialect, stream, RIGHT)
        answer = ask(server, client, f"{dialect}-{level}/{model}", stream=stream, tools=[])
        assert answer.seen.calls == ()
        assert answer.seen.finish == "stop"
        assert answer.seen.text.startswith("Let me look. ")
        assert json.loads(answer.seen.text.split(": ", 1)[1]) == json.loads(RIGHT)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_H126_a_call_of_an_unknown_tool_gets_the_list_of_tools(
    server: Gateway, upstream: Upstream, client: str, dialect: str
) -> None:
    plays = streamed(dialect, "", RIGHT)
    wrong = [step.replace(b"weather", b"climate") if isinstance(step, bytes) else step for step in plays]
    model = upstream.on(f"m{next(_numbers)}", wrong, plays)
    answer = ask(server, client, f"{dialect}-retry/{model}", stream=True)
    assert arguments(answer.seen) == [("weather", {"city": "Paris"})]
    told = json.dumps(upstream.requests(model)[1].json)
    assert "unknown_tool" in told
    assert "valid_tools" in told
    assert counters(server, f"{dialect}-retry", model)["tool_calls_unknown_tool"] == 1


@pytest.mark.parametrize("level", ["check", "retry"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("client", DIALECTS)
def test_H116_an_invented_prefix_is_removed(
    server: Gateway, upstream: Upstream, client: str, dialect: str, level: str
) -> None:
    play: list[Step] = []
    for step in streamed(dialect, "", RIGHT):
        if isinstance(step, bytes) and b'"weather"' in step:
            data = step.split(b"\r\n", 1)[1][:-2].replace(b'"weather"', b'"functions.weather"')
            step = b"%x\r\n%s\r\n" % (len(data), data)
        play.append(step)
    model = upstream.on(f"m{next(_numbers)}", play)
    answer = ask(server, client, f"{dialect}-{level}/{model}", stream=True)
    assert arguments(answer.seen) == [("weather", {"city": "Paris"})]


def test_a_valid_call_beside_an_invalid_one_is_sent_once(server: Gateway, upstream: Upstream) -> None:
    def reply_with(*calls: tuple[str, str]) -> list[Step]:
        made = [
            {"id": f"call_{place}", "type": "function", "function": {"name": "weather", "arguments": raw}}
            for place, (_, raw) in enumerate(calls)
        ]
        message = {"role": "assistant", "content": None, "tool_calls": made}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        value = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        return [reply(200, json.dumps(value).encode())]

    oslo, wrong, paris = ("a", '{"city": "Oslo"}'), ("b", "{}"), ("b", RIGHT)
    for corrected in ([paris], [oslo, paris]):
        model = upstream.on(f"m{next(_numbers)}", reply_with(oslo, wrong), reply_with(*corrected))
        answer = ask(server, "chat", f"chat-retry/{model}", stream=False)
        assert [call.arguments["city"] for call in answer.seen.calls] == ["Oslo", "Paris"]
        assert len({call.id for call in answer.seen.calls}) == 2


def test_a_rejected_correction_applies_the_policy(server: Gateway, upstream: Upstream) -> None:
    refusal = [reply(400, b'{"error": {"message": "no more"}}')]
    model = upstream.on(f"m{next(_numbers)}", whole("chat", "", "{}"), refusal)
    answer = ask(server, "chat", f"chat-retry/{model}", stream=False)
    assert arguments(answer.seen) == [("weather", {})]
    assert "call.correction" in answer.losses


def test_a_level_for_some_models(server: Gateway, upstream: Upstream) -> None:
    name = f"careful-{next(_numbers)}"
    upstream.on(name, whole("chat", "", "{}"), whole("chat", "", RIGHT))
    assert arguments(ask(server, "chat", f"by-model/{name}", stream=False).seen) == [("weather", {"city": "Paris"})]
    model = script_model(upstream, "chat", False, "{}", RIGHT)
    assert arguments(ask(server, "chat", f"by-model/{model}", stream=False).seen) == [("weather", {})]


@pytest.mark.parametrize("client", DIALECTS)
def test_an_invalid_schema_is_rejected_with_the_tool_name(server: Gateway, upstream: Upstream, client: str) -> None:
    model = script_model(upstream, client, False, RIGHT)
    bad = {"type": "object", "properties": {"city": {"anyOf": {"type": "string"}}}}
    answer = ask(server, client, f"{client}-check/{model}", stream=False, tools=tools(client, bad))
    assert answer.status == 400
    assert "weather" in answer.seen.error
    assert "properties.city" in answer.seen.error
    assert upstream.requests(model) == []
    assert ask(server, client, f"{client}-off/{model}", stream=False, tools=tools(client, bad)).status == 200


@pytest.mark.parametrize("level", ["check", "retry"])
@pytest.mark.parametrize("client", DIALECTS)
def test_the_debug_header_returns_a_report(server: Gateway, upstream: Upstream, client: str, level: str) -> None:
    for stream in (True, False):
        model = script_model(upstream, client, stream, '{"days": 1}')
        answer = ask(server, client, f"{client}-{level}/{model}", stream=stream, headers={"x-toolwire-debug": "1"})
        if stream:
            (frame,) = [
                block for block in answer.raw.decode().split("\n\n") if block.startswith("event: toolwire.debug")
            ]
            told = json.loads(frame.split("data: ", 1)[1])
        else:
            told = json.loads(answer.debug)
        assert told["calls"]["invalid"] == (1 if level == "check" else 3)
        assert told["losses"][0]["feature"] == "call.invalid_arguments"
        assert "city" in told["losses"][0]["why"]
        assert told["model"] == model
        quiet = ask(server, client, f"{client}-{level}/{model}", stream=stream)
        assert b"toolwire.debug" not in quiet.raw
        assert quiet.debug == ""
