"""What is asked: the scenarios, and the request each dialect makes of them."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass
from typing import Any, Literal

from replies import FRAGMENTS, PACED_CHUNKS, TEXT_CHUNKS

Json = dict[str, Any]
Size = Literal["small", "tools", "big"]

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
TOOL_COUNTS: dict[Size, int] = {"small": 0, "tools": 5, "big": 40}
HISTORY_STEPS = 25


@dataclass(frozen=True)
class Scenario:
    """dialect is the client's; the model's prefix names the back end: oa- speaks chat, an- messages."""

    name: str
    title: str
    dialect: str
    model: str
    connections: int
    size: Size = "small"
    chunks: int = 0
    rate: int = 0  # requests a second over all connections; 0: each client sends as soon as it has its answer

    @property
    def is_stream(self) -> bool:
        return self.chunks > 0

    @property
    def is_paced(self) -> bool:
        return self.model.endswith("-paced")

    @property
    def is_translated(self) -> bool:
        """Whether client and back end speak different dialects, so that a plain proxy cannot serve it."""
        return (self.dialect == "chat") != self.model.startswith("oa-") or self.dialect == "responses"

    @property
    def unit(self) -> str:
        return "chunk" if self.is_stream else "request"


SCENARIOS = (
    Scenario("rate.300", "whole reply, 300 a second", "chat", "oa-plain", 32, rate=300),
    Scenario(
        "rate.tools.100", "streamed tool call, 100 a second", "chat", "oa-tools", 32, "tools", FRAGMENTS, rate=100
    ),
    Scenario("plain.c1", "whole reply, 1 at a time", "chat", "oa-plain", 1),
    Scenario("plain.c16", "whole reply, 16 at a time", "chat", "oa-plain", 16),
    Scenario("plain.c64", "whole reply, 64 at a time", "chat", "oa-plain", 64),
    Scenario("big.c1", "150 KB request with 40 tools", "chat", "oa-plain", 1, "big"),
    Scenario("text.c16", "stream of text, at full speed", "chat", "oa-text", 16, "small", TEXT_CHUNKS),
    Scenario("tools.c16", "streamed tool call, at full speed", "chat", "oa-tools", 16, "tools", FRAGMENTS),
    Scenario("paced.100", "100 live streams, 50 chunks/s each", "chat", "oa-paced", 100, "small", PACED_CHUNKS),
    Scenario("m2o.text.c16", "Messages client, Chat back end: text", "messages", "oa-text", 16, "small", TEXT_CHUNKS),
    Scenario("m2o.tools.c16", "Messages client, Chat back end: call", "messages", "oa-tools", 16, "tools", FRAGMENTS),
    Scenario("o2m.tools.c16", "Chat client, Messages back end: call", "chat", "an-tools", 16, "tools", FRAGMENTS),
    Scenario("r2o.tools.c16", "Responses client, Chat back end: call", "responses", "oa-tools", 16, "tools", FRAGMENTS),
    Scenario("paced.500", "500 live streams, 50 chunks/s each", "chat", "oa-paced", 500, "small", PACED_CHUNKS),
)


def select(patterns: str) -> list[Scenario]:
    """The scenarios that match one of the comma-separated names or patterns; "all" is every one."""
    wanted = ["*"] if patterns == "all" else patterns.split(",")
    chosen = [scenario for scenario in SCENARIOS if any(fnmatch.fnmatch(scenario.name, want) for want in wanted)]
    if not chosen:
        known = ", ".join(scenario.name for scenario in SCENARIOS)
        raise SystemExit(f"bench: no scenario matches {patterns!r}; expected some of {known}, or a pattern like m2o*.")
    return chosen


def request_body(dialect: str, model: str, *, is_stream: bool, size: Size) -> bytes:
    tools = [_tool(number) for number in range(TOOL_COUNTS[size])]
    system = "You are a coding agent. " * (40 if size == "big" else 1)
    body = {"model": model} | _WRITERS[dialect](system, _steps(size), tools)
    if is_stream:
        body["stream"] = True
        if dialect == "chat":
            body["stream_options"] = {"include_usage": True}
    return json.dumps(body, ensure_ascii=False).encode()


@dataclass(frozen=True)
class _Step:
    """One thing the user says, and in a history the call it led to and what that gave."""

    text: str
    call: int | None = None
    result: str = ""

    @property
    def path(self) -> str:
        return f"src/f{self.call}.py"


@dataclass(frozen=True)
class _Tool:
    name: str
    description: str
    schema: Json


def _steps(size: Size) -> list[_Step]:
    if size != "big":
        return [_Step("Say something about the gateway.")]
    source = 'def f(x):\n    return x  # "quoted" é\n' * 120
    history = [_Step(f"Step {i}: read file {i} and go on.", i, source) for i in range(HISTORY_STEPS)]
    return [*history, _Step("Now write the result.")]


def _tool(number: int) -> _Tool:
    properties = {
        "filePath": {"type": "string", "description": "Absolute path of the file to act on"},
        "content": {"type": "string", "description": f"Content number {number}"},
        "limit": {"type": "integer", "minimum": 1},
        "mode": {"type": "string", "enum": ["create", "append", "replace"]},
    }
    schema = {"type": "object", "properties": properties, "required": ["filePath"], "additionalProperties": False}
    return _Tool("write" if number == 0 else f"tool_{number}", "Does one thing to the workspace. " * 12, schema)


def _chat(system: str, steps: list[_Step], tools: list[_Tool]) -> Json:
    messages: list[Json] = [{"role": "system", "content": system}]
    for step in steps:
        messages.append({"role": "user", "content": step.text})
        if step.call is not None:
            function = {"name": "tool_1", "arguments": json.dumps({"filePath": step.path})}
            call = {"id": f"call_{step.call:04d}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": "Reading.", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": step.result})
    body: Json = {"messages": messages}
    if tools:
        functions = [{"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in tools]
        body["tools"] = [{"type": "function", "function": function} for function in functions]
    return body


def _messages(system: str, steps: list[_Step], tools: list[_Tool]) -> Json:
    messages: list[Json] = []
    for step in steps:
        messages.append({"role": "user", "content": step.text})
        if step.call is not None:
            call = {
                "type": "tool_use",
                "id": f"toolu_{step.call:04d}",
                "name": "tool_1",
                "input": {"filePath": step.path},
            }
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": step.result}
            messages.append({"role": "assistant", "content": [{"type": "text", "text": "Reading."}, call]})
            messages.append({"role": "user", "content": [result]})
    body: Json = {"max_tokens": 1024, "system": system, "messages": messages}
    if tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools
        ]
    return body


def _responses(system: str, steps: list[_Step], tools: list[_Tool]) -> Json:
    items: list[Json] = []
    for step in steps:
        items.append({"type": "message", "role": "user", "content": step.text})
        if step.call is not None:
            names = {"call_id": f"call_{step.call:04d}"}
            arguments = json.dumps({"filePath": step.path})
            items.append({"type": "function_call", "name": "tool_1", "arguments": arguments} | names)
            items.append({"type": "function_call_output", "output": step.result} | names)
    body: Json = {"instructions": system, "input": items, "store": False}
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": False,
            }
            for tool in tools
        ]
    return body


_WRITERS = {"chat": _chat, "messages": _messages, "responses": _responses}
