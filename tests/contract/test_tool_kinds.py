"""Tools of every kind through back ends of every kind: calls come back as the client declared its tools."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.clients.gateway import Gateway, scripted
from toolwire.calls.tools.kinds import to_functions
from toolwire.dialects import messages
from toolwire.profiles import ANTHROPIC

from .client_requests import Reply, ask

pytestmark = pytest.mark.slow  # a gateway and its upstream as processes

BACKENDS = [
    f"{way}-{dialect}" for way in ("auto", "never", "functions") for dialect in ("chat", "responses", "messages")
]
WORD = 'é中😀 "q" \\ tab\tend'
PATCH = f"*** Begin Patch\n*** Add File: OUT.md\n+found {WORD}\n*** End Patch\n"
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
OBJECT = {"type": "object", "properties": {"target": {"type": "string"}}, "required": ["target"]}
CLOSE = {"type": "function", "name": "close_agent", "parameters": OBJECT, "strict": False}
AGENTS = {"type": "namespace", "name": "multi_agent_v1", "description": "Agents.", "tools": [CLOSE]}
EXEC = {"type": "custom", "name": "exec", "description": "Runs.", "format": GRAMMAR}
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Find tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}
TOOLS = [
    {"type": "function", "name": "exec_command", "parameters": {"type": "object", "properties": {}}, "strict": False},
    {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": GRAMMAR},
    SEARCH,
    {"type": "local_shell"},
    {"type": "web_search", "external_web_access": True},
]


@pytest.fixture
def connection(gateway: Gateway) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(gateway.address.removeprefix("http://"), timeout=30)
    yield connection
    connection.close()


def output(connection: HTTPConnection, gateway: Gateway, backend: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The items answered; a stream's items must be those of its last event."""
    reply = ask(connection, "responses", gateway.key, {"model": f"{backend}/scripted", "store": False, **body})
    assert reply.status == 200, reply.body
    if not body.get("stream"):
        return list(json.loads(reply.body)["output"])
    events = streamed(reply)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["type"] == "response.completed"
    assert events[-1]["response"]["output"] == done
    return done


def streamed(reply: Reply) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in reply.body.decode().split("\n") if line.startswith("data: {")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("backend", BACKENDS)
class TestResponses:
    def test_H102_H103_free_text_comes_back_as_free_text(
        self, connection: HTTPConnection, gateway: Gateway, backend: str, stream: bool
    ) -> None:
        script = scripted({"calls": [{"name": "apply_patch", "input": PATCH}]})
        [item] = output(connection, gateway, backend, {"input": script, "tools": TOOLS, "stream": stream})
        assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", PATCH)

    def test_H057_H058_a_namespace_is_restored(
        self, connection: HTTPConnection, gateway: Gateway, backend: str, stream: bool
    ) -> None:
        script = scripted({"calls": [{"name": "multi_agent_v1.close_agent", "arguments": {"target": WORD}}]})
        tools = [*TOOLS, AGENTS]
        [item] = output(connection, gateway, backend, {"input": script, "tools": tools, "stream": stream})
        assert (item["type"], item["name"]) == ("function_call", "close_agent")
        assert item["namespace"] == "multi_agent_v1"
        assert json.loads(item["arguments"]) == {"target": WORD}

    def test_U1_tools_in_the_input(
        self, connection: HTTPConnection, gateway: Gateway, backend: str, stream: bool
    ) -> None:
        declared = {"type": "namespace", "name": "functions", "description": "", "tools": [EXEC]}
        items = [
            {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [declared, AGENTS]},
            {"type": "message", "role": "user", "content": scripted({"calls": [{"name": "exec", "input": WORD}]})},
        ]
        [item] = output(connection, gateway, backend, {"input": items, "stream": stream})
        assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "exec", WORD)
        assert item["namespace"] == "functions"

    def test_U2_a_search_and_then_what_it_found(
        self, connection: HTTPConnection, gateway: Gateway, backend: str, stream: bool
    ) -> None:
        turns = scripted(
            {"calls": [{"name": "tool_search", "arguments": {"query": "close"}}]},
            {"calls": [{"name": "close_agent", "arguments": {"target": "a"}}]},
            {"text": "done"},
        )
        items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": turns}]
        [searched] = output(connection, gateway, backend, {"input": items, "tools": TOOLS, "stream": stream})
        assert (searched["type"], searched["execution"]) == ("tool_search_call", "client")
        assert searched["arguments"] == {"query": "close"}
        found = {"type": "tool_search_output", "call_id": searched["call_id"], "execution": "client", "tools": [AGENTS]}
        items += [searched, {**found, "status": "completed", "id": "tso_1"}]
        [called] = output(connection, gateway, backend, {"input": items, "tools": TOOLS, "stream": stream})
        assert (called["name"], called["namespace"]) == ("close_agent", "multi_agent_v1")
        items += [called, {"type": "function_call_output", "call_id": called["call_id"], "output": "closed"}]
        [message] = output(connection, gateway, backend, {"input": items, "tools": TOOLS, "stream": stream})
        assert message["content"][0]["text"] == "done"

    def test_a_local_shell(self, connection: HTTPConnection, gateway: Gateway, backend: str, stream: bool) -> None:
        script = scripted({"calls": [{"name": "local_shell", "arguments": {"command": ["ls", WORD]}}]})
        [item] = output(connection, gateway, backend, {"input": script, "tools": TOOLS, "stream": stream})
        assert item["type"] == "local_shell_call"
        assert item["action"] == {"type": "exec", "env": {}, "command": ["ls", WORD]}


LONG = "mcp__" + "a_server_with_a_long_name_" * 3
EVERY_KIND = [
    *TOOLS,
    AGENTS,
    {"type": "shell"},
    {"type": "computer"},
    {"type": "namespace", "name": LONG, "description": "", "tools": [{**CLOSE, "name": "look_up"}]},
    {**CLOSE, "name": "shell"},
]
ACTIONS = [{"type": "click", "x": 0, "y": 0, "button": "left"}]


def answered(item: dict[str, Any]) -> dict[str, Any]:
    """What a client hands back for a call."""
    kind, result = item["type"], {"call_id": item["call_id"], "output": WORD}
    match kind:
        case "function_call" | "custom_tool_call" | "local_shell_call":
            return {"type": f"{kind}_output", **result}
        case "shell_call":
            outcome = {"type": "exit", "exit_code": 0}
            return {
                "type": "shell_call_output",
                **result,
                "output": [{"stdout": WORD, "stderr": "", "outcome": outcome}],
            }
        case _:
            screen = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
            return {"type": "computer_call_output", **result, "output": screen}


@pytest.mark.parametrize("backend", BACKENDS)
def test_turns_of_every_kind_come_back_unchanged(connection: HTTPConnection, gateway: Gateway, backend: str) -> None:
    shell, search = {"name": "local_shell", "arguments": {"command": ["ls", WORD], "timeout_ms": 0}}, {"target": WORD}
    turns = [
        {"text": "so", "calls": [{"name": "apply_patch", "input": PATCH}, {"name": "look_up", "arguments": search}]},
        {"calls": [shell, {"name": "computer", "arguments": {"actions": ACTIONS}}, {"name": "close_agent"}]},
        {"calls": [{"name": "apply_patch", "input": ""}, {"name": "shell", "arguments": {"commands": [WORD]}}]},
        {"text": "done"},
    ]
    script = base64.b64encode(json.dumps({"turns": turns, "strict": True}).encode()).decode()
    items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": f"[[script:{script}]]"}]
    seen: list[tuple[str, str]] = []
    for number in range(len(turns)):
        body = {"input": items, "tools": EVERY_KIND, "stream": number % 2 == 0}
        said = output(connection, gateway, backend, body)
        calls = [item for item in said if item["type"] != "message"]
        seen += [(item["type"], item.get("namespace", "")) for item in calls]
        items += [*said, *map(answered, calls)]
    assert items[-1]["content"][0]["text"] == "done"
    assert seen == [
        ("custom_tool_call", ""),
        ("function_call", LONG),
        ("local_shell_call", ""),
        ("computer_call", ""),
        ("function_call", "multi_agent_v1"),
        ("custom_tool_call", ""),
        ("shell_call", ""),
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_typed_tools_of_messages(connection: HTTPConnection, gateway: Gateway, backend: str) -> None:
    script = scripted({"calls": [{"name": "bash", "arguments": {"command": WORD}}]})
    body = {
        "model": f"{backend}/scripted",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": script}],
        "tools": [{"type": "bash_20250124", "name": "bash"}],
    }
    reply = ask(connection, "messages", gateway.key, body)
    assert reply.status == 200, reply.body
    [block] = json.loads(reply.body)["content"]
    assert (block["type"], block["name"], block["input"]) == ("tool_use", "bash", {"command": WORD})


@pytest.mark.parametrize("backend", BACKENDS)
def test_U5_a_deferred_tool_is_called_once_it_is_loaded(
    connection: HTTPConnection, gateway: Gateway, backend: str
) -> None:
    turns = scripted(
        {"calls": [{"name": "ToolSearch", "arguments": {"query": "x"}}]},
        {"calls": [{"name": "WebFetch", "arguments": {"url": WORD}}]},
    )
    schema = {"type": "object"}
    messages: list[dict[str, Any]] = [{"role": "user", "content": turns}]
    body = {
        "model": f"{backend}/scripted",
        "max_tokens": 100,
        "messages": messages,
        "tools": [
            {"name": "ToolSearch", "input_schema": schema},
            {"name": "WebFetch", "input_schema": schema, "defer_loading": True},
        ],
    }
    [searched] = json.loads(ask(connection, "messages", gateway.key, body).body)["content"]
    loaded = [{"type": "tool_reference", "tool_name": "WebFetch"}]
    messages.append({"role": "assistant", "content": [searched]})
    messages.append(
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": searched["id"], "content": loaded},
                {"type": "text", "text": "Tool loaded."},
            ],
        }
    )
    [called] = json.loads(ask(connection, "messages", gateway.key, body).body)["content"]
    assert (called["name"], called["input"]) == ("WebFetch", {"url": WORD})


def test_H105_a_hosted_tool_is_removed_and_reported(connection: HTTPConnection, gateway: Gateway) -> None:
    body = {"model": "auto-chat/scripted", "input": scripted({"text": "ok"}), "tools": TOOLS, "store": False}
    headers = {"content-type": "application/json", "authorization": f"Bearer {gateway.key}"}
    connection.request("POST", "/v1/responses", json.dumps(body).encode(), headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answer.read()
    assert "tool.hosted" in answer.headers["x-toolwire-loss"]


def test_a_server_with_functions_only_gets_functions() -> None:
    """What leaves for it, in its own dialect: no deferred, hosted or freeform tool, and no reference to one."""
    schema = {"type": "object"}
    later = {"name": "Later", "input_schema": schema, "defer_loading": True}
    loaded = {"name": "Loaded", "input_schema": schema, "defer_loading": True, "cache_control": {"type": "ephemeral"}}
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    use = {"type": "tool_use", "id": "t", "name": "Find", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "Loaded"}]}
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}],
        "tools": [{"name": "Find", "input_schema": schema}, later, loaded, hosted],
        "tool_choice": {"type": "tool", "name": "Find"},
    }
    request = messages.decode_request(json.dumps(body).encode(), {})
    sent = json.loads(messages.encode_request(to_functions(request).request, ANTHROPIC).body)
    assert [tool["name"] for tool in sent["tools"]] == ["Find", "Loaded"]
    assert sent["tools"][1]["cache_control"] == {"type": "ephemeral"}
    assert not any(word in json.dumps(sent) for word in ("defer_loading", "tool_reference", "web_search"))
    assert sent["tool_choice"] == {"type": "tool", "name": "Find"}
    only_hosted = messages.decode_request(json.dumps(body | {"tools": [hosted], "tool_choice": None}).encode(), {})
    assert "tools" not in json.loads(messages.encode_request(to_functions(only_hosted).request, ANTHROPIC).body)
