"""The front door for Gemini's clients, and Gemini behind the others: paths, keys, streams, counts, lists and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.harness import HistoryEntry, Stage, answered, calls_play, stream_steps, talk
from tests.dialects.upstream_events import (
    REGULAR,
    block,
    gemini_call,
    gemini_chunk,
    json_delta,
    message_end,
    message_start,
    tool_use,
)
from tests.server.answers import KINDS, PATHS
from tests.server.harness import Answer, Upstream, ask, gateway, reply, server_config
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.types import Reasoning, Text, ToolCall
from toolwire.wire.sse import SseReader

BACKENDS = ("chat", "responses", "messages", "gemini")
STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"
WHOLE = "/v1beta/models/m:generateContent"
HI = {"role": "user", "parts": [{"text": "hi"}]}
TOOLS = [{"functionDeclarations": [{"name": "weather", "parameters": {"type": "OBJECT"}}]}]
ASKING: dict[str, Any] = {"contents": [HI], "tools": TOOLS}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    upstream = Upstream()
    backends = tuple(
        BackendConfig(
            name=name,
            kind=(KINDS | {"gemini": "gemini"})[name],  # type: ignore[arg-type] # one of the kinds
            base_url=upstream.url + {"messages": "", "gemini": "/v1beta"}.get(name, "/v1"),
            key=Secret("sk-upstream"),
            models=("m",),
            retries=0,
        )
        for name in BACKENDS
    )
    with gateway(with_backends(Config(server=server_config()), backends)) as running:
        yield Stage(upstream, running)
    upstream.close()


def post(stage: Stage, path: str, body: Any, **headers: str) -> Answer:
    return ask(stage.server.port, "POST", path, body, headers)


def answer_of(stage: Stage, backend: str, *plays: Any, stream: bool = True, body: Any = None) -> Answer:
    """What a client of Gemini gets from this back end."""
    stage.upstream.on(STREAM if backend == "gemini" and stream else WHOLE if backend == "gemini" else "m", *plays)
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return post(stage, f"/v1beta/models/{backend}/m:{verb}", body or ASKING)


def play_of(backend: str) -> Any:
    if backend == "gemini":
        calls = [gemini_call("c0", "weather", {"city": "Zürich"}), gemini_call("c1", "weather", {})]
        return stream_steps(*(gemini_chunk(call) for call in calls), gemini_chunk(finish="STOP"))
    return calls_play(backend, ("c0", "weather", ['{"city":', '"Zürich"}']), ("c1", "weather", ["{}"]))


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_H002_H028_a_client_of_gemini_gets_calls_from_every_back_end(
    stage: Stage, backend: str, is_stream: bool
) -> None:
    answer = answer_of(stage, backend, play_of(backend), stream=is_stream)
    assert answer.headers["content-type"].startswith("text/event-stream" if is_stream else "application/json")
    calls = [part for part in answered("gemini", answer, stream=is_stream) if isinstance(part, ToolCall)]
    assert [(call.name, call.args) for call in calls] == [("weather", {"city": "Zürich"}), ("weather", {})]
    assert len({call.id for call in calls}) == 2
    assert b'"finishReason":"STOP"' in answer.body.replace(b": ", b":")


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_H002_H028_every_client_gets_calls_from_gemini(stage: Stage, client: str, is_stream: bool) -> None:
    stage.upstream.on(STREAM if is_stream else WHOLE, play_of("gemini"))
    body = {"model": "gemini/m", **talk(client, stream=is_stream)}
    answer = ask(stage.server.port, "POST", PATHS[client], body)
    calls = [part for part in answered(client, answer, stream=is_stream) if isinstance(part, ToolCall)]
    assert [(call.id, call.name, call.args) for call in calls] == [
        ("c0", "weather", {"city": "Zürich"}), ("c1", "weather", {}),
    ]  # fmt: skip
    reasons = {"chat": b'"tool_calls"', "messages": b'"tool_use"', "responses": b'"completed"'}
    assert reasons[client] in answer.body


@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
def test_H042_every_clients_history_is_one_content_of_responses(stage: Stage, client: str) -> None:
    stage.upstream.on(STREAM, stream_steps(gemini_chunk({"text": "fine"}, finish="STOP")))
    steps = (
        HistoryEntry("user", "weather?"),
        HistoryEntry("call", '{"city": "a"}', "call_aaaa1", "weather"),
        HistoryEntry("call", '{"city": "b"}', "call_bbbb2", "now"),
        HistoryEntry("result", "1", "call_aaaa1"),
        HistoryEntry("result", "2", "call_bbbb2"),
        HistoryEntry("user", "go on"),
    )
    answer = ask(stage.server.port, "POST", PATHS[client], {"model": "gemini/m", **talk(client, *steps)})
    assert answer.status == 200, answer.body
    sent = stage.upstream.requests(STREAM)[-1]
    assert [content["role"] for content in sent.json["contents"]] == ["user", "model", "user"]
    assert sent.json["contents"][2]["parts"] == [
        {"functionResponse": {"name": "weather", "response": {"output": "1"}}},
        {"functionResponse": {"name": "now", "response": {"output": "2"}}},
        {"text": "go on"},
    ]
    assert sent.headers["x-goog-api-key"] == "sk-upstream"
    declared = sent.json["tools"][0]["functionDeclarations"]
    assert [one["name"] for one in declared] == ["weather", "now"]
    assert "parametersJsonSchema" in declared[0]


def test_between_two_of_one_dialect_bytes_pass_as_they_came(stage: Stage) -> None:
    wire = REGULAR["gemini"].replace(b'"text":"let me "', b'"text":"let me ","unheard":{"of":1}')
    declared = [{"functionDeclarations": [{"name": "weather"}, {"name": "now"}]}]
    body = json.dumps(ASKING | {"tools": declared, "unheard": [1.10]}, indent=2).encode()
    stage.upstream.on(STREAM, stream_steps(*(frame + b"\r\n\r\n" for frame in wire.split(b"\n\n")[:-1])))
    answer = post(stage, "/v1beta/models/gemini/m:streamGenerateContent?alt=sse", body)
    assert answer.body == wire
    sent = stage.upstream.requests(STREAM)[-1]
    assert sent.body == body
    whole = json.dumps({"candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}], "odd": 1,
                        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1}}, indent=1).encode()  # fmt: skip
    assert answer_of(stage, "gemini", [reply(200, whole)], stream=False).body == whole


def test_H050_calls_without_ids_get_one_on_the_way(stage: Stage) -> None:
    chunks = [gemini_chunk(gemini_call("", "weather", {"n": number})) for number in range(2)]
    answer = answer_of(
        stage, "gemini", stream_steps(gemini_chunk({"text": "I look."}), *chunks, gemini_chunk(finish="STOP"))
    )
    parts = answered("gemini", answer)
    assert parts[0] == Text(text="I look.")
    ids = [part.id for part in parts if isinstance(part, ToolCall)]
    assert len(set(filter(None, ids))) == 2


def test_H061_an_empty_answer_is_an_error_in_every_dialect(stage: Stage) -> None:
    empty = stream_steps(gemini_chunk(finish="STOP"))
    answer = answer_of(stage, "gemini", empty)
    assert answer.status == 502
    assert json.loads(answer.body)["error"]["status"] == "UNAVAILABLE"
    for client in ("chat", "responses", "messages"):
        told = ask(stage.server.port, "POST", PATHS[client], {"model": "gemini/m", **talk(client)})
        assert told.status == (502 if client == "chat" else 200)  # the others begin before anything is known
        assert b"without text and without a call" in told.body


@pytest.mark.parametrize("client", ["messages", "responses"])
def test_H074_thoughts_and_their_proof_go_around_through_other_clients(stage: Stage, client: str) -> None:
    thought = {"text": "hm", "thought": True, "thoughtSignature": "c2lnbmVk"}
    first = stream_steps(
        gemini_chunk(thought), gemini_chunk(gemini_call("call_abc123xyz", "weather", {})), gemini_chunk(finish="STOP")
    )
    stage.upstream.on(STREAM, first, stream_steps(gemini_chunk({"text": "done"}, finish="STOP")))
    body = {"model": "gemini/m", **talk(client)}
    answer = ask(stage.server.port, "POST", PATHS[client], body)
    parts = answered(client, answer)
    assert isinstance(parts[0], Reasoning)
    assert b"c2lnbmVk" not in answer.body
    if client == "messages":
        block = {"type": "thinking", "thinking": "hm", "signature": parts[0].signature}
        call = {"type": "tool_use", "id": "call_abc123xyz", "name": "weather", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "call_abc123xyz", "content": "1"}
        more = [{"role": "assistant", "content": [block, call]}, {"role": "user", "content": [result]}]
        body |= {"messages": [*body["messages"], *more]}
    else:
        summary = [{"type": "summary_text", "text": "hm"}]
        item = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": parts[0].encrypted}
        call = {"type": "function_call", "call_id": "call_abc123xyz", "name": "weather", "arguments": "{}"}
        body |= {
            "input": [
                *body["input"],
                item,
                call,
                {"type": "function_call_output", "call_id": "call_abc123xyz", "output": "1"},
            ]
        }
    assert ask(stage.server.port, "POST", PATHS[client], body).status == 200
    sent = stage.upstream.requests(STREAM)[-1].json["contents"][1]["parts"]
    assert sent[0] == thought


def test_thoughts_of_others_go_around_through_a_client_of_gemini(stage: Stage) -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "let me "},
        {"type": "thinking_delta", "thinking": "see"},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    call = block(1, tool_use("call_1", "weather"), json_delta("{}"))
    answer = answer_of(stage, "messages", stream_steps(message_start(), thinking, call, message_end("tool_use")))
    chunks = [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: ")]
    model = {"role": "model", "parts": [part for one in chunks for part in one["candidates"][0]["content"]["parts"]]}
    response = {"functionResponse": {"id": "call_1", "name": "weather", "response": {"output": "1"}}}
    follow = ASKING | {"contents": [HI, model, {"role": "user", "parts": [response]}]}
    text = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "ok"})
    assert answer_of(stage, "messages", stream_steps(message_start(), text, message_end()), body=follow).status == 200
    sent = stage.received()[-1].json["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "let me see", "signature": "c2ln"}


def test_H074_H079_a_refused_signature_is_removed_and_the_request_retried(stage: Stage) -> None:
    refusal = {"error": {"code": 400, "message": "Corrupted thought signature.", "status": "INVALID_ARGUMENT"}}
    first = [reply(400, json.dumps(refusal).encode())]
    called = gemini_call("c", "weather", {}, thoughtSignature="c3BvaWxlZA==")
    response = {"functionResponse": {"id": "c", "name": "weather", "response": {"output": "1"}}}
    contents = [HI, {"role": "model", "parts": [called]}, {"role": "user", "parts": [response]}]
    good = stream_steps(gemini_chunk({"text": "fine"}, finish="STOP"))
    answer = answer_of(stage, "gemini", first, good, body={**ASKING, "contents": contents})
    assert answered("gemini", answer) == [Text(text="fine")]
    assert answer.headers["x-toolwire-loss"] == "refused.reasoning"
    sent = stage.upstream.requests(STREAM)[-1].json["contents"][1]["parts"][0]
    assert sent["thoughtSignature"] == "skip_thought_signature_validator"


def test_a_stream_without_sse_is_an_array(stage: Stage) -> None:
    stage.upstream.on(
        WHOLE,
        [
            reply(
                200,
                json.dumps({"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}]}).encode(),
            )
        ],
    )
    answer = post(stage, "/v1beta/models/gemini/m:streamGenerateContent", ASKING)
    (value,) = json.loads(answer.body)
    assert value["candidates"][0]["content"]["parts"][0]["text"] == "x"
    assert answer.headers["content-type"] == "application/json"
    refused = post(stage, "/v1beta/models/gemini/m:streamGenerateContent", {"contents": 1})
    assert json.loads(refused.body)[0]["error"]["status"] == "INVALID_ARGUMENT"


def test_tokens_are_counted_by_the_back_end_or_estimated(stage: Stage) -> None:
    stage.upstream.on("/v1beta/models/m:countTokens", [reply(200, b'{"totalTokens": 31, "more": 1}')])
    told = post(stage, "/v1beta/models/gemini/m:countTokens", {"contents": [HI]})
    assert json.loads(told.body) == {"totalTokens": 31, "more": 1}
    guessed = json.loads(post(stage, "/v1beta/models/chat/m:countTokens", {"contents": [HI]}).body)
    assert guessed["totalTokens"] > 0


def test_models_are_listed(stage: Stage) -> None:
    port = stage.server.port
    listed = json.loads(ask(port, "GET", "/v1beta/models").body)["models"]
    assert "models/chat/m" in [one["name"] for one in listed]
    one = json.loads(ask(port, "GET", "/v1beta/models/gemini/m").body)
    assert one["name"] == "models/gemini/m"
    assert "generateContent" in one["supportedGenerationMethods"]
    by_header = ask(port, "GET", "/v1/models", None, {"x-goog-api-key": "any"})
    assert "models" in json.loads(by_header.body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1beta/models/gemini/m:generateContent", 405),
        ("POST", "/v1beta/models", 405),
        ("POST", "/v1beta/models/nobody/m:generateContent", 404),
        ("GET", "/v1beta/models/nobody/x", 404),
        ("POST", "/v1beta/models/gemini/m:generateContent", 400),
    ],
)
def test_errors_are_its_own(stage: Stage, method: str, path: str, status: int) -> None:
    body = {"contents": 1} if status == 400 else ASKING
    answer = ask(stage.server.port, method, path, body if method == "POST" else None)
    assert answer.status == status
    assert json.loads(answer.body)["error"]["code"] == status


def test_an_error_of_the_back_end_comes_through(stage: Stage) -> None:
    refusal = json.dumps({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}).encode()
    answer = answer_of(stage, "gemini", [reply(429, refusal)])
    assert (answer.status, json.loads(answer.body)) == (429, json.loads(refusal))
    other = answer_of(stage, "chat", [reply(429, b'{"error":{"message":"slow down","type":"rate_limit_error"}}')])
    assert json.loads(other.body)["error"] == {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}


def test_a_key_may_stand_in_any_of_its_places() -> None:
    config = with_backends(Config(server=server_config(keys=(Secret("right"),))), ())
    path = "/v1beta/models"
    with gateway(config) as running:
        port = running.port
        for headers in ({"x-goog-api-key": "right"}, {"authorization": "Bearer right"}, {"x-api-key": "right"}):
            assert ask(port, "GET", path, None, headers).status == 200
        assert ask(port, "GET", f"{path}?key=right").status == 200
        for headers in ({"x-goog-api-key": "wrong"}, {"authorization": "Bearer wrong", "x-goog-api-key": "right"}, {}):
            refused = ask(port, "GET", path, None, headers)
            assert (refused.status, json.loads(refused.body)["error"]["status"]) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("line", [b"\n", b"\r\n"])
def test_the_report_of_a_stream_is_a_member_because_the_clients_of_google_fail_on_comments(
    stage: Stage, line: bytes
) -> None:
    chunks = gemini_chunk(gemini_call("c0", "unknown", {}), finish="STOP").replace(b"\n", line)
    stage.upstream.on(STREAM, stream_steps(chunks))
    answer = post(stage, "/v1beta/models/gemini/m:streamGenerateContent?alt=sse", json.dumps(ASKING).encode())
    assert answer.status == 200
    assert b'"unknown"' in answer.body
    assert b": toolwire" not in answer.body
    found = [json.loads(frame.data) for frame in SseReader().feed(answer.body)]
    [report] = [value["toolwire"] for value in found if "toolwire" in value]
    assert [loss["feature"] for loss in report["losses"]] == ["call.unknown_tool"]
    assert found[-1]["toolwire"] == report
