"""Corrections under other failures: back ends that fail, clients that disconnect, concurrency, tools of every kind."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.guard_requests import RIGHT, arguments, ask, backend, counters, tools
from tests.dialects.upstream_events import block, json_delta, message_end, message_start, tool_use
from tests.server.answers import DIALECTS, PATHS, frames, question, streamed, whole
from tests.server.harness import (
    CLOSE,
    HOLD,
    LAST_CHUNK,
    RESET,
    Gateway,
    Step,
    Upstream,
    chunk,
    connected,
    gateway,
    read_until,
    reply,
    request_bytes,
    server_config,
    stream_head,
)
from tests.server.harness import ask as post
from toolwire.config.file import Config, Guard, SearchConfig, with_backends

SECRET = "sk-very-secret-argument"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


@pytest.fixture(scope="module")
def server(upstream: Upstream) -> Iterator[Gateway]:
    levels: tuple[Guard, ...] = ("check", "repair", "retry")
    backends = [
        backend(upstream, dialect, level, idle_timeout=0.3, first_byte_timeout=1.0)
        for dialect in DIALECTS
        for level in levels
    ]
    backends += [backend(upstream, "chat", "retry", policy, policy=policy) for policy in ("text", "error")]
    backends.append(backend(upstream, "chat", "retry", "no-grammar", grammar="off"))
    backends += [
        backend(upstream, dialect, "retry", f"{dialect}-functions", tool_kinds="functions") for dialect in DIALECTS
    ]
    config = Config(
        server=server_config(keep_alive_seconds=0.06, log="info"),
        search=SearchConfig(kind="searxng", url=upstream.url, timeout=1.0),
    )
    with gateway(with_backends(config, tuple(backends))) as running:
        yield running


def on(upstream: Upstream, *plays: list[Step]) -> str:
    return upstream.on(f"h{next(_numbers)}", *plays)


def chat_calls(*calls: tuple[str, str, str], finish: str = "tool_calls", choices: int = 1) -> list[Step]:
    """A chat answer of these calls: (id, name, arguments)."""
    made = [{"id": one, "type": "function", "function": {"name": name, "arguments": raw}} for one, name, raw in calls]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    value = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": place, "message": message, "finish_reason": finish} for place in range(choices)],
        "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
    }
    return [reply(200, json.dumps(value).encode())]


def begun(*texts: str) -> list[Step]:
    """A chat stream as far as these words."""
    return [stream_head(), *(chunk(one) for one in frames("chat", "".join(texts), "{}")[: 3 if texts else 1])]


SILENT_DEATHS: dict[str, list[Step]] = {
    "500": [reply(500, b'{"error": {"message": "down"}}')],
    "429": [reply(429, b'{"error": {"message": "slow down"}}')],
    "garbage": [reply(200, b"<html>oh no</html>", "text/html")],
    "reset": [RESET],
    "cut before a word": [*begun(), 0.01, CLOSE],
    "silence": [*begun(), HOLD],
    "cut in a call": [stream_head(), *(chunk(one) for one in frames("chat", "", RIGHT)[3:5]), 0.01, CLOSE],
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("death", SILENT_DEATHS)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_correction_that_fails_without_output_keeps_the_call_unchanged(
    server: Gateway, upstream: Upstream, client: str, death: str, stream: bool
) -> None:
    model = on(upstream, streamed("chat", "So. ", "{}"), SILENT_DEATHS[death])
    answer = ask(server, client, f"chat-retry/{model}", stream=stream)
    assert (answer.status, answer.seen.error) == (200, "")
    assert arguments(answer.seen) == [("weather", {})]
    assert answer.seen.finish == "tool_calls"
    assert stream or {"call.correction", "call.invalid_arguments"} <= set(answer.losses.split(", "))
    assert (
        len(upstream.requests(model)) >= 2
    )  # on a connection that breaks before the first byte a request is sent again


LOUD_DEATHS: dict[str, list[Step]] = {
    "cut": [*begun("Then"), 0.01, CLOSE],
    "reset": [*begun("Then"), 0.01, RESET],
    "silence": [*begun("Then"), HOLD],
}


@pytest.mark.parametrize("death", LOUD_DEATHS)
@pytest.mark.parametrize("client", DIALECTS)
def test_a_correction_that_fails_after_output_is_an_error_of_the_dialect(
    server: Gateway, upstream: Upstream, client: str, death: str
) -> None:
    model = on(upstream, streamed("chat", "So. ", "{}"), LOUD_DEATHS[death])
    answer = ask(server, client, f"chat-retry/{model}", stream=True)
    assert answer.seen.error
    assert answer.seen.calls == ()
    assert answer.seen.text.startswith("So. Th")
    whole_one = ask(
        server, client, f"chat-retry/{on(upstream, whole('chat', '', '{}'), LOUD_DEATHS[death])}", stream=False
    )
    assert whole_one.status in (502, 504)
    assert whole_one.seen.error


def test_a_rejected_correction_is_counted(server: Gateway, upstream: Upstream) -> None:
    refusal = [reply(400, json.dumps({"error": {"message": f"not {SECRET}"}}).encode())]
    model = on(upstream, whole("chat", "", "{}"), refusal)
    answer = ask(server, "chat", f"no-grammar/{model}", stream=False)
    assert "call.correction" in answer.losses
    assert SECRET.encode() not in answer.raw
    found = counters(server, "no-grammar", model)
    assert found["tool_api_400"] == 1
    assert "tool_call_corrections" not in found


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("held", [[HOLD], [*begun("Then"), HOLD]])
def test_a_client_that_disconnects_during_a_correction_stops_it(
    server: Gateway, upstream: Upstream, held: list[Step], stream: bool
) -> None:
    model = on(upstream, streamed("chat", "So. ", "{}"), held)
    body = question("chat", f"error/{model}", stream=stream, tools=tools("chat"))
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], body))
        second = upstream.wait_request(model, 2)
    assert second.left.wait(5), "the back end still works for nobody"


def test_keep_alives_continue_while_calls_are_held(server: Gateway, upstream: Upstream) -> None:
    slow: list[Step] = [stream_head()]
    for one in frames("chat", "", RIGHT):
        slow += [chunk(one), 0.1]
    model = on(upstream, [stream_head(), 0.15, *streamed("chat", "So. ", "{}")[1:]], [0.2, *slow, LAST_CHUNK])
    body = question("chat", f"chat-retry/{model}", stream=True, tools=tools("chat"))
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], body))
        raw = read_until(connection, b"[DONE]")
    after = raw[raw.index(b'"So"') if b'"So"' in raw else raw.index(b"So") :]
    assert after.count(b"\n:") >= 5
    assert b"Paris" in after


@pytest.mark.slow
def test_two_hundred_clients_at_once_each_get_their_own_call(upstream: Upstream) -> None:
    models = [
        on(upstream, streamed("chat", "", "{}", pause=0.001), streamed("chat", "", json.dumps({"city": f"C{place}"})))
        for place in range(200)
    ]
    found: dict[int, list[Any]] = {}

    config = with_backends(Config(server=server_config()), (backend(upstream, "chat", "retry"),))
    with gateway(config) as server:

        def one(place: int) -> None:
            found[place] = arguments(ask(server, "chat", f"chat-retry/{models[place]}", stream=True).seen)

        threads = [threading.Thread(target=one, args=(place,)) for place in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert found == {place: [("weather", {"city": f"C{place}"})] for place in range(200)}


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_correction_may_be_streaming_or_not(
    server: Gateway, upstream: Upstream, client: str, dialect: str, stream: bool
) -> None:
    play = whole if stream else streamed
    model = on(upstream, play(dialect, "So. ", "{}"), play(dialect, "", RIGHT))
    answer = ask(server, client, f"{dialect}-retry/{model}", stream=stream)
    assert arguments(answer.seen) == [("weather", {"city": "Paris"})]
    assert answer.seen.text.startswith("So. ")


def test_several_choices_are_never_corrected(server: Gateway, upstream: Upstream) -> None:
    model = on(upstream, chat_calls(("a", "weather", "{}"), choices=2))
    answer = post(server.port, "POST", PATHS["chat"], question("chat", f"chat-retry/{model}", n=2, tools=tools("chat")))
    assert [len(choice["message"]["tool_calls"]) for choice in answer.json["choices"]] == [1, 1]
    assert len(upstream.requests(model)) == 1
    assert "call.invalid_arguments;n=2" in answer.headers["x-toolwire-loss"]


@pytest.mark.parametrize("level", ["repair", "retry"])
def test_a_truncated_call_is_not_corrected(server: Gateway, upstream: Upstream, level: str) -> None:
    cut = '{"city": "Par'
    model = on(upstream, chat_calls(("a", "weather", cut), finish="length"))
    answer = ask(server, "chat", f"chat-{level}/{model}", stream=False)
    assert [call.raw for call in answer.seen.calls] == [cut]
    assert answer.seen.finish == "length"
    assert len(upstream.requests(model)) == 1
    assert counters(server, f"chat-{level}", model)["tool_calls_cut"] == 1


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_correction_repeats_the_forced_choice(server: Gateway, upstream: Upstream, choice: Any) -> None:
    model = on(upstream, whole("chat", "", "{}"), whole("chat", "", RIGHT))
    answer = ask(server, "chat", f"no-grammar/{model}", stream=False, tool_choice=choice)
    assert arguments(answer.seen) == [("weather", {"city": "Paris"})]
    assert [request.json["tool_choice"] for request in upstream.requests(model)] == [choice, choice]


def test_two_calls_without_parallel_calls(server: Gateway, upstream: Upstream) -> None:
    calls = chat_calls(("a", "weather", RIGHT), ("b", "weather", "{}"))
    model = on(upstream, calls, chat_calls(("c", "weather", '{"city": "Oslo"}')))
    answer = ask(server, "chat", f"no-grammar/{model}", stream=False, parallel_tool_calls=False)
    assert [call.arguments["city"] for call in answer.seen.calls] == ["Paris", "Oslo"]
    assert [request.json["parallel_tool_calls"] for request in upstream.requests(model)] == [False, False]


def messages_play(*blocks: bytes) -> list[Step]:
    return [stream_head(), *(chunk(one) for one in (message_start(), *blocks, message_end("tool_use"))), LAST_CHUNK]


def thinking(index: int, words: str, proof: str) -> bytes:
    return block(
        index,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": words},
        {"type": "signature_delta", "signature": proof},
    )


@pytest.mark.parametrize("stream", [True, False])
def test_H080_reasoning_and_signatures_of_both_rounds(server: Gateway, upstream: Upstream, stream: bool) -> None:
    first = messages_play(thinking(0, "hm", "proof-1"), block(1, tool_use("toolu_1", "weather"), json_delta("{}")))
    second = messages_play(thinking(0, "ah", "proof-2"), block(1, tool_use("toolu_2", "weather"), json_delta(RIGHT)))
    model = on(upstream, first, second)
    answer = ask(
        server,
        "messages",
        f"messages-retry/{model}",
        stream=stream,
        thinking={"type": "enabled", "budget_tokens": 1024},
        max_tokens=4000,
    )
    assert arguments(answer.seen) == [("weather", {"city": "Paris"})]
    assert (answer.seen.reasoning, answer.seen.signature) == ("hmah", "proof-1proof-2")
    told = upstream.requests(model)[1].json["messages"][1]["content"]
    assert told[0] == {"type": "thinking", "thinking": "hm", "signature": "proof-1"}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_the_stored_answer_is_what_the_client_got(
    server: Gateway, upstream: Upstream, dialect: str, stream: bool
) -> None:
    model = on(
        upstream,
        streamed(dialect, "So. ", "{}"),
        streamed(dialect, "Then. ", RIGHT),
        streamed(dialect, "Sunny."),
    )
    name = f"{dialect}-retry/{model}"
    answer = ask(server, "responses", name, stream=stream, store=True)
    body = _last(answer.raw, stream)
    kept = post(server.port, "GET", f"{PATHS['responses']}/{body['id']}", headers={"x-api-key": "k"}).json
    assert kept["output"] == body["output"]
    message, made = kept["output"]
    assert (message["type"], made["type"]) == ("message", "function_call")
    assert "".join(part["text"] for part in message["content"]) == "So. Then. "
    result = {"type": "function_call_output", "call_id": made["call_id"], "output": "22 degrees"}
    more = ask(server, "responses", name, stream=stream, previous_response_id=body["id"], input=[result])
    assert more.seen.text == "Sunny."
    sent = json.dumps(upstream.requests(model)[2].json)
    assert "22 degrees" in sent
    assert "Paris" in sent
    assert "invalid_arguments" not in sent


def _last(raw: bytes, stream: bool) -> Any:
    if not stream:
        return json.loads(raw)
    last = [line for line in raw.decode().split("\n") if line.startswith("data: ")][-1]
    return json.loads(last[6:])["response"]


CUSTOM = {"type": "custom", "name": "apply_patch", "description": "Edits."}
AGENT = {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}
AGENTS = {
    "type": "namespace",
    "name": "agents",
    "description": "Agents.",
    "tools": [{"type": "function", "name": "close", "parameters": AGENT, "strict": False}],
}
CODEX = [*tools("responses"), CUSTOM, AGENTS, {"type": "local_shell"}]
PATCH = "*** Begin Patch\n+é中😀\n*** End Patch"


@pytest.mark.parametrize("stream", [True, False])
def test_tools_of_every_kind_are_corrected_on_a_back_end_that_knows_functions(
    server: Gateway, upstream: Upstream, stream: bool
) -> None:
    name = "agents__close"
    shell = json.dumps({"command": ["ls"], "env": {}, "type": "exec"})
    model = on(
        upstream,
        chat_calls(
            ("a", "apply_patch", json.dumps({"input": PATCH})),
            ("b", name, "{}"),
            ("c", "local_shell", "{}"),
        ),
        chat_calls(("d", name, '{"target": "x"}'), ("e", "local_shell", shell)),
    )
    body = question("responses", f"chat-functions/{model}", stream=stream, tools=CODEX, store=False)
    answer = post(server.port, "POST", PATHS["responses"], body)
    items = _last(answer.body, stream)["output"]
    assert [item["type"] for item in items] == ["custom_tool_call", "function_call", "local_shell_call"]
    assert items[0]["input"] == PATCH
    assert (items[1]["name"], items[1]["namespace"], items[1]["arguments"]) == ("close", "agents", '{"target": "x"}')
    assert items[2]["action"]["command"] == ["ls"]
    told = [message for message in upstream.requests(model)[1].json["messages"] if message["role"] == "tool"]
    assert ["accepted" in message["content"] for message in told] == [True, False, False]


@pytest.mark.parametrize("level", ["repair", "retry"])
def test_a_typed_tool_of_the_messages_dialect(server: Gateway, upstream: Upstream, level: str) -> None:
    bash = {"type": "bash_20250124", "name": "bash"}
    right = ("b", "bash", '{"command": "ls"}')
    plays = (
        [chat_calls(right)]
        if level == "repair"
        else [chat_calls(("a", "bash", '{"restart": "perhaps"}')), chat_calls(right)]
    )
    model = on(upstream, *plays)
    answer = ask(server, "messages", f"chat-{level}/{model}", stream=True, tools=[bash])
    assert arguments(answer.seen) == [("bash", {"command": "ls"})]
    assert len(upstream.requests(model)) == len(plays)


def test_hosted_calls_beside_an_invalid_one_are_answered_in_their_own_form(server: Gateway, upstream: Upstream) -> None:
    def answer(*items: Any) -> list[Step]:
        value = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [reply(200, json.dumps(value | {"output": list(items), "usage": usage}).encode())]

    patch = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "p", "name": "apply_patch", "input": PATCH}
    wrong = {"type": "function_call", "id": "fc_1", "call_id": "w", "name": "weather", "arguments": "{}"}
    model = on(upstream, answer(patch, wrong), answer(wrong | {"call_id": "z", "arguments": RIGHT}))
    body = question("responses", f"native/{model}", tools=[*tools("responses"), CUSTOM], store=False)
    native = backend(upstream, "responses", "retry", "native", tool_kinds="all")
    with gateway(with_backends(Config(server=server_config()), (native,))) as running:
        items = post(running.port, "POST", PATHS["responses"], body).json["output"]
    assert [(item["type"], item["call_id"]) for item in items] == [("custom_tool_call", "p"), ("function_call", "z")]
    told = {item["call_id"]: item["type"] for item in upstream.requests(model)[1].json["input"] if "output" in item}
    assert told == {"p": "custom_tool_call_output", "w": "function_call_output"}


@pytest.mark.parametrize("stream", [True, False])
def test_a_search_and_then_a_wrong_call(server: Gateway, upstream: Upstream, stream: bool) -> None:
    found = {"results": [{"title": "T", "url": "https://example.org/", "content": "it will rain"}]}
    query = "/search?q=rain&format=json"
    search = chat_calls(("s", "web_search", '{"query": "rain"}'))
    model = on(upstream, search, chat_calls(("a", "weather", "{}")), chat_calls(("b", "weather", RIGHT)))
    for path in (query, "/search?format=json&q=rain"):
        upstream.on(path, [reply(200, json.dumps(found).encode())])
    wanted = [*tools("messages"), {"type": "web_search_20250305", "name": "web_search"}]
    answer = ask(server, "messages", f"chat-retry/{model}", stream=stream, tools=wanted)
    assert arguments(answer.seen) == [("weather", {"city": "Paris"})]
    requests = upstream.requests(model)
    assert len(requests) == 3
    assert "invalid_arguments" in json.dumps(requests[2].json)
    assert "it will rain" in json.dumps(requests[2].json)


def test_nineteen_wrong_calls_of_twenty(server: Gateway, upstream: Upstream) -> None:
    first = [(f"a{place}", "weather", RIGHT if place == 9 else f'{{"days": {place}}}') for place in range(20)]
    second = [(f"a{place}", "weather", json.dumps({"city": f"C{place}"})) for place in range(19)]
    model = on(upstream, chat_calls(*first), chat_calls(*second))
    answer = ask(server, "chat", f"chat-retry/{model}", stream=True)
    assert [call.arguments["city"] for call in answer.seen.calls] == ["Paris", *(f"C{place}" for place in range(19))]
    assert len({call.id for call in answer.seen.calls}) == 20
    found = counters(server, "chat-retry", model)
    assert (found["tool_calls"], found["tool_calls_invalid_args"], found["tool_calls_corrected"]) == (39, 19, 19)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["check", "retry"])
def test_ten_thousand_calls_in_one_answer(server: Gateway, upstream: Upstream, level: str) -> None:
    calls = [(f"a{place}", "weather", "{}" if place % 2 else RIGHT) for place in range(10_000)]
    model = on(upstream, chat_calls(*calls))
    start = time.monotonic()
    answer = ask(server, "chat", f"chat-{level}/{model}", stream=False)
    assert time.monotonic() - start < 10
    assert len(answer.seen.calls) == 10_000
    assert len(upstream.requests(model)) == 1
    assert counters(server, f"chat-{level}", model)["tool_calls_invalid_args"] == 5000


def test_arguments_of_five_megabytes(server: Gateway, upstream: Upstream) -> None:
    huge = json.dumps({"city": "x" * 5_000_000})
    model = on(upstream, chat_calls(("a", "weather", huge.replace("city", "town"))), chat_calls(("b", "weather", huge)))
    answer = ask(server, "chat", f"chat-retry/{model}", stream=True)
    assert [call.raw for call in answer.seen.calls] == [huge]


def test_arguments_are_in_no_header_log_or_counter(upstream: Upstream, capfd: pytest.CaptureFixture[str]) -> None:
    levels: tuple[Guard, ...] = ("check", "repair", "retry")
    backends = [backend(upstream, "chat", level) for level in levels]
    backends += [backend(upstream, "chat", "retry", policy, policy=policy) for policy in ("text", "error")]
    wrong = json.dumps({SECRET: SECRET, "days": [SECRET]})
    calls = chat_calls(("a", "weather", wrong), ("b", f"weather({SECRET})", wrong), ("c", "weather", SECRET))
    with gateway(with_backends(Config(server=server_config(log="info")), tuple(backends))) as running:
        for name in (one.name for one in backends):
            body = question("chat", f"{name}/{on(upstream, calls)}", tools=tools("chat"))
            answer = post(running.port, "POST", PATHS["chat"], body, {"x-toolwire-debug": "1"})
            assert SECRET not in str(answer.headers)
            if name != "error":
                lost = answer.headers["x-toolwire-loss"].split(", ")
                assert {"call.invalid_arguments;n=2", "call.unknown_tool"} <= set(lost)
        assert SECRET not in post(running.port, "GET", "/metrics").body.decode()
    logged = capfd.readouterr().err
    assert logged.count("invalid=") == len(backends)
    assert SECRET not in logged
