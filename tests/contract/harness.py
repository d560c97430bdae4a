"""A gateway between clients and back ends of every dialect, with conversations in every dialect and readers for the requests that it sends."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.dialects.codec_harness import body_in, events_in, make_request
from tests.dialects.upstream_events import (
    DONE,
    Numbered,
    block,
    call,
    chunk,
    json_delta,
    message_end,
    message_start,
    tool_use,
)
from tests.server.answers import KINDS, PATHS
from tests.server.harness import (
    LAST_CHUNK,
    Answer,
    Gateway,
    Received,
    Step,
    Upstream,
    ask,
    gateway,
    server_config,
    stream_head,
    wait_until,
)
from tests.server.harness import chunk as http_chunk
from toolwire.config.file import BackendConfig, Config, McpServerConfig, with_backends
from toolwire.config.secret import Secret
from toolwire.events import fold
from toolwire.types import Part

Body = dict[str, Any]
NAMES = ("chat", "responses", "messages")
PAIRS = [(client, backend) for client in NAMES for backend in NAMES]
CROSSED = [(client, backend) for client, backend in PAIRS if client != backend]
SCHEMA: Body = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}


class HistoryEntry(NamedTuple):
    """One entry of a conversation: user, assistant and system have text, a call has arguments as text, a result has the id of its call."""

    role: str
    text: str
    call_id: str = ""
    name: str = ""


class Stage:
    def __init__(self, upstream: Upstream, server: Gateway) -> None:
        self.upstream = upstream
        self.server = server

    def ask(self, client: str, backend: str, body: Body, *plays: list[Step], model: str = "m") -> Answer:
        """The answer that the client gets if the back end plays this."""
        self.upstream.on(model, *plays)
        return ask(self.server.port, "POST", PATHS[client], {"model": f"{backend}/{model}", **body})

    def sent(self, client: str, backend: str, body: Body) -> tuple[Body, Answer]:
        """The request that the back end received, and the answer."""
        answer = self.ask(client, backend, body, text_play(dialect_of(backend)))
        assert answer.status == 200, answer.body
        return self.received()[-1].json, answer

    def received(self, model: str = "m") -> list[Received]:
        return self.upstream.requests(model)

    def wait_metric(self, expected: float, name: str, **labels: str) -> None:
        """A request is counted when it is closed, which may be a moment after its last byte."""
        wait_until(lambda: self.metric(name, **labels) >= expected)
        assert self.metric(name, **labels) == expected

    def metric(self, name: str, **labels: str) -> float:
        lines = ask(self.server.port, "GET", "/metrics").body.decode().splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.startswith(name) and all(label in line for label in wanted)
        )


@contextlib.contextmanager
def on_stage(
    *variants: tuple[str, Body], keep_alive: float = 15.0, servers: tuple[McpServerConfig, ...] = ()
) -> Iterator[Stage]:
    """A back end of each dialect for each variant, which is a name suffix with configuration keys. servers: mounted on the gateway."""
    upstream = Upstream()
    backends = tuple(
        BackendConfig(
            name=f"{name}{ending}",
            kind=KINDS[name],  # type: ignore[arg-type] # one of the kinds
            base_url=upstream.url + ("" if name == "messages" else "/v1"),
            **({"key": Secret("sk-upstream"), "models": ("m",), "retries": 0} | fields),  # type: ignore[arg-type] # the test's
        )
        for ending, fields in (("", {}), *variants)
        for name in NAMES
    )
    server = server_config(keep_alive_seconds=keep_alive)
    try:
        with gateway(with_backends(Config(server=server, mcp_servers=servers), backends)) as running:
            yield Stage(upstream, running)
    finally:
        upstream.close()


def dialect_of(backend: str) -> str:
    return backend.partition("-")[0]


def talk(
    dialect: str, *steps: HistoryEntry, tools: dict[str, Body] | None = None, stream: bool = True, **more: Any
) -> Body:
    """A request with this conversation, and tools with these names."""
    tools = {"weather": SCHEMA, "now": SCHEMA} if tools is None else tools
    write = {"chat": _chat, "responses": _responses, "messages": _messages}[dialect]
    return {**write(steps or (HistoryEntry("user", "hi"),), tools), "stream": stream, **more}


def _chat(steps: tuple[HistoryEntry, ...], tools: dict[str, Body]) -> Body:
    messages: list[Body] = []
    for step in steps:
        if step.role == "call":
            function = {"name": step.name, "arguments": step.text}
            made = {"id": step.call_id, "type": "function", "function": function}
            if messages and messages[-1].get("tool_calls"):
                messages[-1]["tool_calls"].append(made)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        elif step.role == "result":
            messages.append({"role": "tool", "tool_call_id": step.call_id, "content": step.text})
        else:
            messages.append({"role": step.role, "content": step.text})
    offered = [{"type": "function", "function": {"name": name, "parameters": tools[name]}} for name in tools]
    return {"messages": messages, **({"tools": offered} if offered else {})}


def _responses(steps: tuple[HistoryEntry, ...], tools: dict[str, Body]) -> Body:
    items: list[Body] = []
    for step in steps:
        if step.role == "call":
            items.append({"type": "function_call", "call_id": step.call_id, "name": step.name, "arguments": step.text})
        elif step.role == "result":
            items.append({"type": "function_call_output", "call_id": step.call_id, "output": step.text})
        else:
            items.append({"role": step.role, "content": step.text})
    offered = [{"type": "function", "name": name, "parameters": tools[name], "strict": False} for name in tools]
    return {"input": items, "store": False, **({"tools": offered} if offered else {})}


def _messages(steps: tuple[HistoryEntry, ...], tools: dict[str, Body]) -> Body:
    messages: list[Body] = []
    for step in steps:
        role = {"call": "assistant", "result": "user"}.get(step.role, step.role)
        match step.role:
            case "call":
                value: Body = json.loads(step.text)
                piece: Body = {"type": "tool_use", "id": step.call_id, "name": step.name, "input": value}
            case "result":
                piece = {"type": "tool_result", "tool_use_id": step.call_id, "content": step.text}
            case _:
                piece = {"type": "text", "text": step.text}
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].append(piece)
        else:
            messages.append({"role": role, "content": [piece]})
    offered = [{"name": name, "input_schema": tools[name]} for name in tools]
    return {"max_tokens": 999, "messages": messages, **({"tools": offered} if offered else {})}


def calls_play(dialect: str, *calls: tuple[str, str, list[str]]) -> list[Step]:
    """A valid stream of calls: (id, name, fragments of its arguments)."""
    if dialect == "chat":
        frames = [chunk({"role": "assistant", "content": ""})]
        for index, (call_id, name, pieces) in enumerate(calls):
            frames.append(chunk(call(index, call_id, name, "")))
            frames += [chunk(call(index, arguments=piece)) for piece in pieces]
        frames += [chunk(finish="tool_calls"), DONE]
    elif dialect == "messages":
        frames = [message_start()]
        frames += [
            block(index, tool_use(call_id, name), *map(json_delta, pieces))
            for index, (call_id, name, pieces) in enumerate(calls)
        ]
        frames.append(message_end("tool_use"))
    else:
        stream = Numbered().created()
        for index, (_, name, pieces) in enumerate(calls):
            stream.call(index, name, *pieces)
        frames = [stream.completed().wire]
    return stream_steps(*frames)


def text_play(dialect: str, text: str = "fine") -> list[Step]:
    """The back end always streams; the gateway sends what the client requested."""
    if dialect == "chat":
        return stream_steps(chunk({"role": "assistant", "content": text}), chunk(finish="stop"), DONE)
    if dialect == "messages":
        text_block = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})
        return stream_steps(message_start(), text_block, message_end())
    return stream_steps(Numbered().created().message(0, text).completed().wire)


def stream_steps(*frames: bytes) -> list[Step]:
    return [stream_head(), *(http_chunk(frame) for frame in frames), LAST_CHUNK]


def answered(client: str, answer: Answer, *, stream: bool = True) -> list[Part]:
    """The parts of an answer as a client of this dialect reads it; also checks the event contract."""
    assert answer.status == 200, answer.body
    if stream:
        return list(fold(events_in(client, _without_comments(answer.body), request=make_request(client))).parts_of(0))
    return list(fold(body_in(client, answer.body)).parts_of(0))


def _without_comments(body: bytes) -> bytes:
    return b"".join(part + b"\n\n" for part in body.split(b"\n\n")[:-1] if not part.startswith(b":"))


class UpstreamRequest:
    """A request as a back end of this dialect decodes it."""

    def __init__(self, dialect: str, body: Body) -> None:
        self.body = body
        self._dialect = dialect

    @property
    def tools(self) -> list[str]:
        tools = self.body.get("tools", [])
        return [tool["function"]["name"] if self._dialect == "chat" else tool["name"] for tool in tools]

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """(id, name, decoded arguments); raises if the arguments are no JSON."""
        if self._dialect == "chat":
            made = [one for message in self.body["messages"] for one in message.get("tool_calls") or ()]
            return [(one["id"], one["function"]["name"], json.loads(one["function"]["arguments"])) for one in made]
        if self._dialect == "responses":
            made = [item for item in self.body["input"] if item.get("type") == "function_call"]
            return [(one["call_id"], one["name"], json.loads(one["arguments"])) for one in made]
        return [(one["id"], one["name"], one["input"]) for one in self._blocks("tool_use")]

    @property
    def results(self) -> list[str]:
        """The call ids of the results."""
        if self._dialect == "chat":
            return [message["tool_call_id"] for message in self.body["messages"] if message["role"] == "tool"]
        if self._dialect == "responses":
            return [item["call_id"] for item in self.body["input"] if item.get("type") == "function_call_output"]
        return [one["tool_use_id"] for one in self._blocks("tool_result")]

    @property
    def choice(self) -> Any:
        """The name of the forced tool."""
        given = self.body.get("tool_choice")
        assert isinstance(given, dict), given
        return given["function"]["name"] if self._dialect == "chat" else given["name"]

    def _blocks(self, kind: str) -> list[Body]:
        contents = [message["content"] for message in self.body["messages"]]
        found = [piece for content in contents if isinstance(content, list) for piece in content]
        return [piece for piece in found if piece["type"] == kind]
