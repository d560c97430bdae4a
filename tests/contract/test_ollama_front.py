"""The front door for Ollama's clients, on every kind of back end: streams, tools, results without ids, errors, lists and embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.harness import NAMES, SCHEMA, Stage, UpstreamRequest, calls_play, on_stage, stream_steps, text_play
from tests.dialects.upstream_events import DONE, block, chunk, json_delta, message_end, message_start, tool_use
from tests.server.harness import CLOSE, Answer, ask, reply, stream_head
from tests.server.harness import chunk as http_chunk
from toolwire.dialects import FRONTS

HI = {"role": "user", "content": "hi"}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in ("weather", "now")]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with on_stage(("-retry", {"guard": "retry"}), ("-simulated", {"tools": "simulate"}), keep_alive=0.15) as running:
        yield running


def chat(stage: Stage, backend: str, *plays: Any, path: str = "/api/chat", **members: Any) -> Answer:
    stage.upstream.on("m", *plays)
    body = {"model": f"{backend}/m", **({"messages": [HI]} if path == "/api/chat" else {}), **members}
    return ask(stage.server.port, "POST", path, body)


def lines(answer: Answer) -> list[Any]:
    assert answer.status == 200, answer.body
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.body.splitlines()]


@pytest.mark.parametrize("backend", NAMES)
def test_H002_H028_a_client_of_ollama_gets_calls_from_every_back_end(stage: Stage, backend: str) -> None:
    made = (("c0", "weather", ['{"city":', '"Zürich"}']), ("c1", "weather", ["{}"]))
    found = lines(chat(stage, backend, calls_play(backend, *made), tools=TOOLS))
    calls = [call for line in found for call in line["message"].get("tool_calls", ())]
    assert [(call["function"]["index"], call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
        (0, "weather", {"city": "Zürich"}), (1, "weather", {}),
    ]  # fmt: skip
    assert len({call["id"] for call in calls}) == 2
    assert [line["done"] for line in found] == [False] * (len(found) - 1) + [True]
    whole = json.loads(chat(stage, backend, calls_play(backend, *made), tools=TOOLS, stream=False).body)
    assert len(whole["message"]["tool_calls"]) == 2
    assert (whole["done"], whole["done_reason"]) == (True, "stop")
    assert whole["total_duration"] > 0


@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("named", [{}, {"tool_name": "weather"}], ids=["bare", "named"])
def test_results_without_ids_reach_every_back_end_in_pairs(stage: Stage, backend: str, named: dict[str, str]) -> None:
    calls = [{"function": {"name": "weather", "arguments": {"city": city}}} for city in ("a", "b")]
    history = [
        HI, {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "1", **named}, {"role": "tool", "content": "2", **named},
    ]  # fmt: skip
    assert chat(stage, backend, text_play(backend), messages=history, tools=TOOLS).status == 200
    sent = UpstreamRequest(backend, stage.received()[-1].json)
    assert [arguments for _, _, arguments in sent.calls] == [{"city": "a"}, {"city": "b"}]
    assert sent.results == [call_id for call_id, _, _ in sent.calls]
    assert len(set(sent.results)) == 2


@pytest.mark.parametrize("backend", NAMES)
def test_an_invalid_call_is_corrected(stage: Stage, backend: str) -> None:
    needed = [{"type": "function", "function": {"name": "weather", "parameters": {**SCHEMA, "required": ["city"]}}}]
    plays = [calls_play(backend, ("c0", "weather", [arguments])) for arguments in ("{}", '{"city":"Oslo"}')]
    found = lines(chat(stage, f"{backend}-retry", *plays, tools=needed))
    calls = [call for line in found for call in line["message"].get("tool_calls", ())]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("call_1", {"city": "Oslo"})]


def test_a_model_without_tools_calls_them_in_text(stage: Stage) -> None:
    text = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    found = lines(chat(stage, "chat-simulated", text_play("chat", text), tools=TOOLS))
    (call,) = [call for line in found for call in line["message"].get("tool_calls", ())]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("weather", {"city": "Oslo"})
    assert "tools" not in stage.received()[-1].json


@pytest.mark.parametrize("backend", NAMES)
def test_images_and_schemas_reach_every_back_end(stage: Stage, backend: str) -> None:
    image = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    answer = chat(stage, backend, text_play(backend), messages=[{**HI, "images": [image]}], format=SCHEMA)
    assert answer.status == 200, answer.body
    sent = stage.received()[-1].body.decode()
    assert image in sent
    assert "image/png" in sent
    assert '"city"' in sent


def test_thinking_streams_beside_the_text(stage: Stage) -> None:
    thought = block(
        0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "hm"}
    )
    text = block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "yes"})
    play = stream_steps(message_start(), thought, text, message_end())
    found = lines(chat(stage, "messages", play, think=True))
    assert [line["message"].get("thinking") for line in found if "thinking" in line["message"]] == ["hm"]
    assert "".join(line["message"]["content"] for line in found) == "yes"
    assert stage.received()[-1].json["thinking"]["type"] in ("enabled", "adaptive")


def test_H075_reasoning_is_restored_for_a_client_without_ids(stage: Stage) -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = ({"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "signed"})
    blocks = [block(0, thinking, *deltas), block(1, tool_use("toolu_01AbCdEf", "weather"), json_delta("{}"))]
    first = lines(
        chat(
            stage, "messages", stream_steps(message_start(), *blocks, message_end("tool_use")), tools=TOOLS, think=True
        )
    )
    (call,) = [call for line in first for call in line["message"].get("tool_calls", ())]
    made = {"role": "assistant", "content": "", "tool_calls": [{"function": call["function"]}]}
    history = [HI, made, {"role": "tool", "content": "18 C"}]
    assert chat(stage, "messages", text_play("messages"), messages=history, tools=TOOLS, think=True).status == 200
    sent = stage.received()[-1].json["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "hm", "signature": "signed"}


def test_generate(stage: Stage) -> None:
    answer = chat(stage, "chat", text_play("chat"), path="/api/generate", prompt="hi", system="be brief")
    assert "".join(line["response"] for line in lines(answer)) == "fine"
    assert [message["role"] for message in stage.received()[-1].json["messages"]] == ["system", "user"]


def test_what_a_back_end_does_not_have_is_reported(stage: Stage) -> None:
    options = {"num_ctx": 8192, "temperature": 0.5}
    answer = chat(stage, "chat", text_play("chat"), options=options, keep_alive="5m", truncate=True)
    assert answer.headers["x-toolwire-loss"] == "request.keep_alive, request.options.num_ctx"
    assert stage.received()[-1].json["temperature"] == 0.5


def test_a_request_without_messages_asks_no_model(stage: Stage) -> None:
    count = len(stage.received())
    for path, member in (("/api/chat", "message"), ("/api/generate", "response")):
        answer = ask(stage.server.port, "POST", path, {"model": "chat/m"})
        assert answer.status == 200
        assert (json.loads(answer.body)["done_reason"], member in json.loads(answer.body)) == ("load", True)
    assert ask(stage.server.port, "POST", "/api/pull", {"model": "chat/m"}).body == b'{"status":"success"}\n'
    assert ask(stage.server.port, "POST", "/api/chat", {"model": "unknown"}).status == 404
    assert len(stage.received()) == count


def test_errors_are_one_message_with_the_status_of_the_back_end(stage: Stage) -> None:
    refused = chat(stage, "chat", [reply(429, b'{"error":{"message":"slow down"}}')])
    assert (refused.status, json.loads(refused.body)) == (429, {"error": "slow down"})
    wrong = ask(stage.server.port, "POST", "/api/chat", {"model": "chat/m", "messages": [HI], "format": "xml"})
    assert wrong.status == 400
    assert json.loads(wrong.body)["error"].startswith("format: ")
    missing = ask(stage.server.port, "GET", "/api/nothing")
    assert (missing.status, list(json.loads(missing.body))) == (404, ["error"])
    assert ask(stage.server.port, "GET", "/api/chat").status == 405


def test_H154_a_stream_that_breaks_ends_with_an_error(stage: Stage) -> None:
    start = http_chunk(chunk({"role": "assistant", "content": "one"}))
    found = lines(chat(stage, "chat", [stream_head(), start, CLOSE]))
    assert found[0]["message"]["content"] == "one"
    assert list(found[-1]) == ["error"]
    assert not any(line.get("done") for line in found)


def test_H151_heartbeats_are_blanks_inside_a_line(stage: Stage) -> None:
    frames = [http_chunk(frame) for frame in (chunk({"role": "assistant", "content": "x"}), chunk(finish="stop"), DONE)]
    answer = chat(stage, "chat", [stream_head(), 0.5, *frames, b"0\r\n\r\n"])
    assert answer.body.startswith(b"  ")
    assert [line["done"] for line in lines(answer)] == [False, True]


def test_reports_do_not_break_the_lines(stage: Stage) -> None:
    stage.upstream.on("m", text_play("chat"))
    body = {"model": "chat/m", "messages": [HI], "keep_alive": 1}
    answer = ask(stage.server.port, "POST", "/api/chat", body, {"x-toolwire-debug": "1"})
    last = lines(answer)[-1]
    assert last["done"] is True
    assert "request.keep_alive" in [loss["feature"] for loss in last["toolwire"]["losses"]]


def test_a_report_has_no_line_of_its_own() -> None:
    """A library would read it as a part of the answer."""
    add_report = FRONTS["ollama"].add_report
    assert add_report(b'{"done":true}\n', b"{}") == b'{"done":true,"toolwire":{}}\n'
    assert add_report(b"", b"{}") == b""


def test_lists_and_descriptions(stage: Stage) -> None:
    def get(path: str) -> Any:
        answer = ask(stage.server.port, "GET", path)
        assert answer.status == 200
        return json.loads(answer.body)

    assert {"chat/m", "messages/m"} <= {model["model"] for model in get("/api/tags")["models"]}
    assert get("/api/ps") == {"models": []}
    assert [int(number) for number in get("/api/version")["version"].split(".")] >= [0, 6, 4]
    assert b"Ollama is running" in ask(stage.server.port, "GET", "/").body
    shown = ask(stage.server.port, "POST", "/api/show", {"model": "chat/m"})
    assert "tools" in json.loads(shown.body)["capabilities"]
    assert ask(stage.server.port, "POST", "/api/show", {"model": "nothing"}).status == 404


EMBEDDED = b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.10,2]}],"model":"up","usage":{"prompt_tokens":5,"total_tokens":5}}'


@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_embeddings_pass_through(stage: Stage, backend: str) -> None:
    stage.upstream.on("m", [reply(200, EMBEDDED)])
    body = b'{ "model": "%b/m", "input": ["a"], "encoding_format": "base64", "extra": 1.10 }' % backend.encode()
    answer = ask(stage.server.port, "POST", "/v1/embeddings", body)
    assert answer.body == EMBEDDED.replace(b'"up"', b'"%b/m"' % backend.encode())
    sent = stage.received()[-1]
    assert (sent.path, sent.body) == ("/v1/embeddings", body.replace(b"%b/m" % backend.encode(), b"m"))
    assert sent.headers["authorization"] == "Bearer sk-upstream"
    embed = ask(stage.server.port, "POST", "/api/embed", {"model": f"{backend}/m", "input": "a", "keep_alive": 1})
    assert embed.body == b'{"model":"%b/m","embeddings":[[0.10,2]],"prompt_eval_count":5}' % backend.encode()
    assert embed.headers["x-toolwire-loss"] == "request.keep_alive"


def test_back_ends_without_embeddings_refuse_them(stage: Stage) -> None:
    answer = ask(stage.server.port, "POST", "/v1/embeddings", {"model": "messages/m", "input": "a"})
    assert answer.status == 400
    assert json.loads(answer.body)["error"]["code"] == "embeddings_unsupported"
    old = ask(stage.server.port, "POST", "/api/embeddings", {"model": "messages/m", "prompt": "a"})
    assert (old.status, list(json.loads(old.body))) == (400, ["error"])


def test_embeddings_are_counted(stage: Stage) -> None:
    stage.upstream.on("m", [reply(200, EMBEDDED)])
    labels = {"dialect": "chat", "backend": "responses", "outcome": "ok"}
    before = stage.metric("toolwire_requests_total", **labels)
    tokens = stage.metric("toolwire_tokens_total", backend="responses", kind="input")
    assert ask(stage.server.port, "POST", "/v1/embeddings", {"model": "responses/m", "input": "a"}).status == 200
    stage.wait_metric(before + 1, "toolwire_requests_total", **labels)
    stage.wait_metric(tokens + 5, "toolwire_tokens_total", backend="responses", kind="input")


def test_an_error_of_embeddings_is_passed_on(stage: Stage) -> None:
    stage.upstream.on("m", [reply(404, b'{"error":{"message":"no such model"}}')])
    answer = ask(stage.server.port, "POST", "/v1/embeddings", {"model": "chat/m", "input": "a"})
    assert (answer.status, json.loads(answer.body)["error"]["message"]) == (404, "no such model")
