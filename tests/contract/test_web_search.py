"""Web search run by the gateway: both dialects that have one, streaming or not, on upstreams with only functions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.clients.gateway import scripted
from tests.contract.judge.validate import check
from tests.server.answers import KINDS, PATHS, frames
from tests.server.harness import (
    HOLD,
    Answer,
    Gateway,
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
from toolwire.config.file import BackendConfig, Config, SearchConfig, with_backends
from toolwire.config.secret import Secret

pytestmark = pytest.mark.slow

CLIENTS = ("messages", "responses")
TOOLS: dict[str, dict[str, Any]] = {
    "messages": {"type": "web_search_20250305", "name": "web_search"},
    "responses": {"type": "web_search", "external_web_access": False},
}
OWN = {
    "messages": {"name": "note", "input_schema": {"type": "object"}},
    "responses": {"type": "function", "name": "note", "parameters": {"type": "object"}},
}
FOUND = [
    {"title": "Tide\x1b[31m tables", "url": "https://example.org/tides", "content": "High water at 04:12 \u202eé中😀."},
    {"title": "A trap", "url": "javascript:alert(1)", "content": "no address"},
    {"title": "More tides", "url": "https://sub.example.net/more", "content": "Low water at 10:30."},
]
SEARCH = {"name": "web_search", "arguments": {"query": "tides today"}}
LOOKING = {"text": "I will look.", "calls": [SEARCH], "chunk": 3, "usage": {"input": 10, "output": 5}}
ANSWER = {"text": "High water is at {{result:0:04:\\d\\d}}.", "chunk": 4, "usage": {"input": 20, "output": 7}}


@pytest.fixture(scope="module")
def engine() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


@pytest.fixture(scope="module")
def model_server() -> Iterator[Gateway]:
    """An upstream whose model plays the scripts of prompts."""
    with gateway(
        with_backends(Config(server=server_config()), (BackendConfig(name="s", kind="scripted", guard="off"),))
    ) as running:
        yield running


@pytest.fixture(scope="module")
def server(engine: Upstream, model_server: Gateway) -> Iterator[Gateway]:
    with _searching(model_server, SearchConfig(kind="searxng", url=engine.url, timeout=0.3, results=5)) as running:
        yield running


@pytest.fixture(autouse=True)
def results(engine: Upstream) -> None:
    engine.received.clear()
    _plays(engine, [reply(200, json.dumps({"results": FOUND}).encode())])


def _searching(model_server: Gateway, search: SearchConfig) -> Any:
    backends = tuple(
        BackendConfig(
            name=name,
            kind=kind,  # type: ignore[arg-type] # one of the kinds
            base_url=f"http://127.0.0.1:{model_server.port}" + ("" if name == "messages" else "/v1"),
            key=Secret("sk-upstream"),
            models=("s/scripted",),
            tool_kinds="functions",
            retries=0,
        )
        for name, kind in KINDS.items()
    )
    return gateway(with_backends(Config(server=server_config(), search=search), backends))


def _plays(engine: Upstream, play: list[Any]) -> None:
    """Whatever is looked for."""
    engine.plays.clear()
    for query in ("tides+today", "other"):
        engine.on(f"/search?q={query}&format=json", play)


def _request(client: str, upstream: str, *turns: dict[str, Any], stream: bool, **more: Any) -> dict[str, Any]:
    prompt = [{"role": "user", "content": scripted({"turns": list(turns), "strict": True} if turns else {})}]
    content = {"messages": prompt, "max_tokens": 500} if client == "messages" else {"input": prompt, "store": False}
    return {"model": f"{upstream}/s/scripted", "stream": stream, "tools": [TOOLS[client]], **content} | more


def _valid_answer(server: Gateway, client: str, request: dict[str, Any]) -> Answer:
    answer = ask(server.port, "POST", PATHS[client], request)
    assert answer.status == 200, answer.body
    faults = check(client, answer.body, answer.status, answer.headers["content-type"], request).errors
    assert not faults, faults
    return answer


def _whole(client: str, answer: Answer, *, stream: bool) -> dict[str, Any]:
    """The message or response, as a client puts it together."""
    if not stream:
        return dict(answer.json)
    if client == "responses":
        return dict(answer.events[-1][1]["response"])
    message: dict[str, Any] = {}
    for _, data in answer.events:
        if data["type"] == "message_start":
            message = data["message"]
        elif data["type"] == "content_block_start":
            message["content"].append(data["content_block"])
        elif data["type"] == "content_block_delta" and data["delta"]["type"] == "text_delta":
            message["content"][-1]["text"] += data["delta"]["text"]
        elif data["type"] == "content_block_delta" and data["delta"]["type"] == "input_json_delta":
            message["content"][-1]["input"] = json.loads(data["delta"]["partial_json"])
        elif data["type"] == "message_delta":
            message |= data["delta"] | {"usage": data["usage"]}
    return message


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("upstream", KINDS)
def test_messages_client(server: Gateway, engine: Upstream, upstream: str, stream: bool) -> None:
    request = _request("messages", upstream, LOOKING, ANSWER, stream=stream)
    message = _whole("messages", _valid_answer(server, "messages", request), stream=stream)
    first, use, result, last = message["content"]
    assert (first["text"], last["text"]) == ("I will look.", "High water is at 04:12.")
    assert (use["type"], use["name"], use["input"]) == ("server_tool_use", "web_search", {"query": "tides today"})
    assert (result["type"], result["tool_use_id"]) == ("web_search_tool_result", use["id"])
    shown = [(hit["type"], hit["title"], hit["url"]) for hit in result["content"]]
    assert shown == [
        ("web_search_result", "Tide [31m tables", "https://example.org/tides"),
        ("web_search_result", "More tides", "https://sub.example.net/more"),
    ]
    assert message["stop_reason"] == "end_turn"
    assert message["usage"]["server_tool_use"]["web_search_requests"] == 1
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (30, 12)
    assert [request.path for request in engine.received] == ["/search?q=tides+today&format=json"]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("upstream", KINDS)
def test_responses_client(server: Gateway, upstream: str, stream: bool) -> None:
    request = _request("responses", upstream, LOOKING, ANSWER, stream=stream)
    answer = _valid_answer(server, "responses", request)
    response = _whole("responses", answer, stream=stream)
    first, search, last = response["output"]
    assert first["content"][0]["text"] == "I will look."
    assert (search["type"], search["status"]) == ("web_search_call", "completed")
    assert (search["action"]["type"], search["action"]["query"]) == ("search", "tides today")
    assert [source["url"] for source in search["action"]["sources"]] == [FOUND[0]["url"], FOUND[2]["url"]]
    assert last["content"][0]["text"] == "High water is at 04:12."
    assert response["status"] == "completed"
    assert (response["usage"]["input_tokens"], response["usage"]["output_tokens"]) == (30, 12)
    if stream:
        steps = [data for event, data in answer.events if event.startswith("response.web_search_call.")]
        assert [step["type"].rpartition(".")[2] for step in steps] == ["in_progress", "searching", "completed"]
        assert {(step["item_id"], step["output_index"]) for step in steps} == {(search["id"], 1)}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_next_turn_contains_the_search_results(server: Gateway, client: str) -> None:
    request = _request(client, "chat", LOOKING, ANSWER, stream=False)
    answer = _valid_answer(server, client, request).json
    given = request["messages" if client == "messages" else "input"]
    given[0]["content"] = scripted({"echo": True})
    given += [{"role": "assistant", "content": answer["content"]}] if client == "messages" else answer["output"]
    given.append({"role": "user", "content": "And then?"})
    for offered in (True, False):
        if not offered:
            request = {name: value for name, value in request.items() if name != "tools"}
        said = json.dumps(_valid_answer(server, client, request).json, ensure_ascii=False)
        assert "tides today" in said
        assert "https://example.org/tides" in said
        assert ("High water at 04:12 é中😀." in said) == (client == "messages")  # items have no place for excerpts
        assert ("tool_result" in said) == offered


def test_a_stored_answer_contains_its_searches(server: Gateway) -> None:
    first = _request(
        "responses", "chat", LOOKING, ANSWER, {"text": "{{result:0:https.*tides}}"}, stream=True, store=True
    )
    kept = _whole("responses", _valid_answer(server, "responses", first), stream=True)["id"]
    items = ask(server.port, "GET", f"/v1/responses/{kept}").json["output"]
    assert [item["type"] for item in items] == ["message", "web_search_call", "message"]
    request = first | {"previous_response_id": kept, "input": "And then?", "stream": False}
    said = _valid_answer(server, "responses", request).json["output"][0]["content"][0]["text"]
    assert said == "https://example.org/tides"


@pytest.mark.parametrize("client", CLIENTS)
def test_H092_a_client_call_beside_a_search_ends_the_turn(server: Gateway, client: str) -> None:
    both = {"calls": [SEARCH, {"name": "note", "arguments": {"word": "é"}, "id": "call_own"}]}
    last = {"text": "{{result:1}} {{result:0:04:\\d\\d}}"}
    request = _request(client, "chat", both, last, stream=False, tools=[TOOLS[client], OWN[client]])
    answer = _valid_answer(server, client, request).json
    if client == "messages":
        kinds = [block["type"] for block in answer["content"]]
        assert sorted(kinds) == ["server_tool_use", "tool_use", "web_search_tool_result"]
        assert answer["stop_reason"] == "tool_use"
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_own", "content": "noted"}]}
        request["messages"] += [{"role": "assistant", "content": answer["content"]}, result]
        said = _valid_answer(server, client, request).json["content"][0]["text"]
    else:
        assert sorted(item["type"] for item in answer["output"]) == ["function_call", "web_search_call"]
        request["input"] += [
            *answer["output"],
            {"type": "function_call_output", "call_id": "call_own", "output": "noted"},
        ]
        request["input"][0]["content"] = scripted({"turns": [both, {"text": "{{result:1}} {{result:0:https.*tides}}"}]})
        said = _valid_answer(server, client, request).json["output"][0]["content"][0]["text"]
    assert said in ("noted 04:12", "noted https://example.org/tides")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("play", ["refused", "busy", "no JSON", "never"])
def test_a_search_that_fails(server: Gateway, engine: Upstream, client: str, play: str, stream: bool) -> None:
    plays: dict[str, list[Any]] = {
        "refused": [reply(403, b"no")],
        "busy": [reply(429, b"no")],
        "no JSON": [reply(200, b"<html>")],
        "never": [HOLD],
    }
    _plays(engine, plays[play])
    told = {"text": "{{result:0}}"}
    answer = _whole(
        client, _valid_answer(server, client, _request(client, "chat", LOOKING, told, stream=stream)), stream=stream
    )
    assert "The search failed:" in json.dumps(answer)
    if client == "messages":
        code = "too_many_requests" if play == "busy" else "unavailable"
        assert answer["content"][2]["content"] == {"type": "web_search_tool_result_error", "error_code": code}
    else:
        assert answer["output"][1]["status"] == "failed"


def test_no_more_searches_than_the_client_allows(server: Gateway, engine: Upstream, model_server: Gateway) -> None:
    tool = TOOLS["messages"] | {"max_uses": 2}
    request = _request("messages", "chat", LOOKING, stream=False, tools=[tool])
    request["messages"][0]["content"] = scripted({"turns": [LOOKING]})  # it never stops by itself
    answer = _valid_answer(server, "messages", request).json
    results = [block["content"] for block in answer["content"] if block["type"] == "web_search_tool_result"]
    assert [isinstance(content, list) for content in results] == [True, True, False]
    assert results[2]["error_code"] == "max_uses_exceeded"
    assert len(engine.received) == 2
    assert answer["usage"]["server_tool_use"]["web_search_requests"] == 2
    assert answer["stop_reason"] == "end_turn"


@pytest.mark.parametrize("client", CLIENTS)
def test_domains_and_unsupported_options(server: Gateway, client: str) -> None:
    place = {"type": "approximate", "city": "Oslo"}
    limits: dict[str, dict[str, Any]] = {
        "messages": {"blocked_domains": ["example.org"]},
        "responses": {"filters": {"allowed_domains": ["example.net"]}},
    }
    tool = TOOLS[client] | limits[client] | {"user_location": place}
    answer = _valid_answer(
        server, client, _request(client, "chat", LOOKING, {"text": "ok"}, stream=False, tools=[tool])
    )
    assert "https://sub.example.net/more" in answer.body.decode()
    assert "https://example.org/tides" not in answer.body.decode()
    assert "web_search.user_location" in answer.headers["x-toolwire-loss"]
    assert "tool.hosted" not in answer.headers["x-toolwire-loss"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_forced_search_is_made_once(server: Gateway, engine: Upstream, client: str) -> None:
    choice = {"messages": {"type": "tool", "name": "web_search"}, "responses": {"type": "web_search_preview"}}[client]
    tool = {"messages": TOOLS["messages"], "responses": {"type": "web_search_preview"}}[client]
    request = _request(client, "chat", LOOKING, ANSWER, stream=False, tool_choice=choice, tools=[tool])
    assert "04:12" in _valid_answer(server, client, request).body.decode()
    assert len(engine.received) == 1


def test_without_a_hosted_search_nothing_changes(server: Gateway, engine: Upstream) -> None:
    request = _request("messages", "chat", {"text": "plain"}, stream=False, tools=[OWN["messages"]])
    assert _valid_answer(server, "messages", request).json["content"] == [{"type": "text", "text": "plain"}]
    assert not engine.received


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_disconnects_stops_the_upstream(engine: Upstream, client: str) -> None:
    """engine is the model's server here."""
    model = engine.on("slow", [stream_head(), chunk(frames("chat")[0]), chunk(frames("chat")[1]), HOLD])
    backend = BackendConfig(name="chat", kind="openai-chat", base_url=f"{engine.url}/v1", models=(model,))
    search = SearchConfig(kind="searxng", url=engine.url)
    with gateway(with_backends(Config(server=server_config(), search=search), (backend,))) as server:
        request = _request(client, "chat", stream=True) | {"model": f"chat/{model}"}
        with connected(server.port) as connection:
            connection.sendall(request_bytes(PATHS[client], request))
            read_until(connection, b"Hello")
        assert engine.wait_request(model).left.wait(5)


def test_a_program_as_search(model_server: Gateway, tmp_path: Path) -> None:
    program = tmp_path / "look"
    lines = [{"title": "T", "url": "https://example.org/{}", "snippet": "High water at 04:12."}]
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\nassert len(sys.argv) == 2\n"
        f"for line in {lines!r}:\n    line['url'] = line['url'].format(sys.argv[1].replace(' ', '-'))\n"
        "    print(json.dumps(line))\n"
    )
    program.chmod(0o700)
    with _searching(model_server, SearchConfig(kind="command", command=str(program))) as server:
        answer = _valid_answer(server, "messages", _request("messages", "chat", LOOKING, ANSWER, stream=True))
    assert "https://example.org/tides-today" in answer.body.decode()
    assert "04:12" in _whole("messages", answer, stream=True)["content"][-1]["text"]


def test_anthropic_sdk(server: Gateway) -> None:
    request = _request("messages", "chat", LOOKING, ANSWER, stream=False)
    del request["stream"]
    with anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="k") as client:
        whole = client.messages.create(**request)
        with client.messages.stream(**request) as stream:
            streamed = stream.get_final_message()
    for message in (whole, streamed):
        _, use, result, last = message.content
        assert isinstance(use, anthropic.types.ServerToolUseBlock)
        assert use.input == {"query": "tides today"}
        assert isinstance(result, anthropic.types.WebSearchToolResultBlock)
        assert isinstance(result.content, list)
        assert [hit.title for hit in result.content] == ["Tide [31m tables", "More tides"]
        assert isinstance(last, anthropic.types.TextBlock)
        assert last.text == "High water is at 04:12."
        assert message.usage.server_tool_use is not None
        assert message.usage.server_tool_use.web_search_requests == 1


def test_openai_sdk(server: Gateway) -> None:
    request = _request("responses", "chat", LOOKING, ANSWER, stream=False)
    del request["stream"]
    with openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="k") as client:
        whole = client.responses.create(**request)
        with client.responses.stream(**request) as stream:
            streamed = stream.get_final_response()
    for response in (whole, streamed):
        search = response.output[1]
        assert isinstance(search, openai.types.responses.ResponseFunctionWebSearch)
        assert search.action.type == "search"
        assert search.action.query == "tides today"
        assert response.output_text.endswith("High water is at 04:12.")
