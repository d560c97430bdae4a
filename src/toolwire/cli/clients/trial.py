"""`toolwire connect CLIENT --check`: sends a question and a tool result as the client would, and reports on the answers.

The requests were recorded from the programs (versions in docs/clients.md): path, authentication, relevant headers, members beside the
conversation, and whether the client streams. Conversation and tool are always the same.
"""

from __future__ import annotations

import http.client
import json
import time
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ...dialects import DIALECTS
from ...errors import GatewayError, quote
from ...events import FoldedAnswer, Folder
from ...profiles import PLAIN
from ...types import Message, Request, Text, ToolCall, ToolResult
from ..models import plain
from .client import KEY, PATHS, ConnectTarget
from .gateway import connect, path_at

SECONDS = 120.0
_MAX_BYTES = 16 * 1024 * 1024
_PIECE = 65536


class RequestShape(Struct, frozen=True, kw_only=True):
    """What differs between clients of the same dialect."""

    auth: Literal["bearer", "x-api-key"] = "bearer"
    headers: dict[str, str] = {}
    members: dict[str, Any] = {}
    tool_members: dict[str, Any] = {}
    query: str = ""
    is_streaming: bool = True
    has_tools: bool = True
    has_developer: bool = False  # the system prompt is a developer message, not in instructions


QUESTION = "What is the weather in Paris? Use the tool get_weather."
SYSTEM = "You are a helpful assistant. Use the tools you have."
TOOL = "get_weather"
RESULT = "18 degrees and rain"
_DESCRIPTION = "Weather of a city"
_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city"}},
    "required": ["city"],
    "additionalProperties": False,
}
_MARK = "toolwire-check"
_USAGE = {"stream_options": {"include_usage": True}}
_VERSION = {"anthropic-version": "2023-06-01"}
_NEW_VERSION = {"anthropic-version": "2026-10-21"}
_THINKING = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
_SESSION = {"x-session-affinity": _MARK, "x-session-id": _MARK}
_STATELESS = {"store": False, "include": ["reasoning.encrypted_content"]}
_STRICT = {"strict": True}
_LOOSE = {"strict": False}
SHAPES: dict[tuple[str, str], RequestShape] = {
    ("opencode", "chat"): RequestShape(headers=_SESSION, members={"max_tokens": 8000, "tool_choice": "auto", **_USAGE}),
    ("opencode", "responses"): RequestShape(
        headers=_SESSION,
        members={"max_output_tokens": 8000, "store": False, "prompt_cache_key": _MARK, "tool_choice": "auto"},
    ),
    ("opencode", "messages"): RequestShape(
        auth="x-api-key",
        headers=_SESSION | _VERSION,
        members={"max_tokens": 8000, "tool_choice": {"type": "auto"}},
    ),
    ("codex", "responses"): RequestShape(
        headers={"accept": "text/event-stream", "originator": "codex_exec", "session-id": _MARK},
        members={
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "reasoning": {"summary": "auto"},
            "prompt_cache_key": _MARK,
            "client_metadata": {"source": _MARK},
            **_STATELESS,
        },
        tool_members=_LOOSE,
        has_developer=True,
    ),
    ("claude-code", "messages"): RequestShape(
        auth="x-api-key",
        headers=_VERSION | _THINKING | {"x-app": "cli"},
        query="?beta=true",
        members={
            "max_tokens": 32000,
            "thinking": {"type": "adaptive", "display": "omitted"},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
            "output_config": {"effort": "high"},
            "metadata": {"user_id": _MARK},
        },
    ),
    ("copilot-cli", "chat"): RequestShape(
        headers={"x-initiator": "user"},
        members={"temperature": 0, "top_p": 0.95, "frequency_penalty": 0, "presence_penalty": 0, **_USAGE},
    ),
    ("copilot-cli", "responses"): RequestShape(
        headers={"x-initiator": "user"},
        members={"reasoning": {"summary": "auto"}, "parallel_tool_calls": True, **_STATELESS},
        tool_members=_LOOSE,
    ),
    ("copilot-cli", "messages"): RequestShape(
        auth="x-api-key",
        headers=_VERSION | {"x-initiator": "user"},
        members={"max_tokens": 8192, "temperature": 0},
    ),
    ("vscode", "chat"): RequestShape(members={"temperature": 0.1, "top_p": 1, "n": 1, **_USAGE}),
    ("vscode", "responses"): RequestShape(members={"max_output_tokens": 16000, "truncation": "disabled", **_STATELESS}),
    ("vscode", "messages"): RequestShape(auth="x-api-key", headers=_VERSION | _THINKING, members={"max_tokens": 16000}),
    ("qwen-code", "chat"): RequestShape(members={"max_tokens": 32000, **_USAGE}),
    ("cline", "chat"): RequestShape(members={"tool_choice": "auto", **_USAGE}),
    ("continue", "chat"): RequestShape(members=_USAGE),
    ("continue", "messages"): RequestShape(
        auth="x-api-key",
        headers=_VERSION | {"anthropic-beta": "prompt-caching-2024-07-31"},
        members={"max_tokens": 32000},
    ),
    ("aider", "chat"): RequestShape(members={"temperature": 0}, has_tools=False),
    ("obsidian-copilot", "chat"): RequestShape(headers={"origin": "app://obsidian.md"}),
    ("obsidian-copilot", "responses"): RequestShape(
        headers={"origin": "app://obsidian.md"}, members={"text": {}}, tool_members={"strict": None}
    ),
    ("pi", "chat"): RequestShape(
        members={"store": False, "max_completion_tokens": 16384, **_USAGE}, tool_members=_LOOSE
    ),
    ("pi", "responses"): RequestShape(members={"store": False, "prompt_cache_key": _MARK}, tool_members=_LOOSE),
    ("pi", "messages"): RequestShape(
        auth="x-api-key",
        headers=_VERSION | _THINKING,
        members={"max_tokens": 16384},
        tool_members={"eager_input_streaming": True},
    ),
    ("openai-python", "chat"): RequestShape(is_streaming=False),
    ("openai-python", "responses"): RequestShape(members={"store": False}, tool_members=_STRICT, is_streaming=False),
    ("openai-node", "chat"): RequestShape(is_streaming=False),
    ("openai-node", "responses"): RequestShape(members={"store": False}, tool_members=_STRICT, is_streaming=False),
    ("anthropic-python", "messages"): RequestShape(
        headers=_NEW_VERSION, members={"max_tokens": 1000}, is_streaming=False
    ),
    ("anthropic-node", "messages"): RequestShape(
        headers=_NEW_VERSION, members={"max_tokens": 1000}, is_streaming=False
    ),
    ("ai-sdk", "chat"): RequestShape(members={"tool_choice": "auto", **_USAGE}),
    ("ai-sdk", "responses"): RequestShape(members={"tool_choice": "auto"}, tool_members=_LOOSE),
    ("ai-sdk", "messages"): RequestShape(
        auth="x-api-key",
        headers=_VERSION,
        members={"max_tokens": 4096, "tool_choice": {"type": "auto"}},
        tool_members={"eager_input_streaming": True},
    ),
    ("langchain", "messages"): RequestShape(headers=_NEW_VERSION, members={"max_tokens": 1000}),
    ("langchain-js", "responses"): RequestShape(members={"text": {}}),
    ("langchain-js", "chat"): RequestShape(members=_USAGE),
    ("langchain-js", "messages"): RequestShape(auth="x-api-key", headers=_VERSION, members={"max_tokens": 1000}),
    ("openai-agents", "responses"): RequestShape(members={"include": []}, tool_members=_STRICT),
    ("pydantic-ai", "chat"): RequestShape(members={"tool_choice": "auto", **_USAGE}, tool_members=_STRICT),
    ("pydantic-ai", "responses"): RequestShape(members={"tool_choice": "auto"}, tool_members=_STRICT),
    ("pydantic-ai", "messages"): RequestShape(
        headers=_NEW_VERSION, members={"max_tokens": 16384, "tool_choice": {"type": "auto"}}
    ),
    ("litellm", "chat"): RequestShape(members={"max_tokens": 1000}),
    ("litellm", "messages"): RequestShape(
        auth="x-api-key", headers=_VERSION, members={"max_tokens": 1000}, tool_members={"type": "custom"}
    ),
    ("autogen", "chat"): RequestShape(members={"tool_choice": "auto"}),
    ("semantic-kernel", "chat"): RequestShape(members={"tool_choice": "auto", **_USAGE}),
    ("crewai", "chat"): RequestShape(members=_USAGE),
    ("smolagents", "chat"): RequestShape(
        members={"tool_choice": "required", "stop": ["Observation:", "Calling tools:"], **_USAGE}
    ),
}


class TrialOutcome(Struct, frozen=True, kw_only=True):
    is_good: bool
    lines: tuple[str, ...]


class _Turn(Struct, frozen=True, kw_only=True):
    """One answer. loss: the loss header of the gateway."""

    answer: FoldedAnswer
    times: str
    loss: str = ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.answer.parts_of(0) if isinstance(part, ToolCall))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.answer.parts_of(0) if isinstance(part, Text))


def attempt(target: ConnectTarget, dialect: str, shape: RequestShape, key: str) -> TrialOutcome:
    """Sends the question and, if the model calls the tool, a result."""
    trial = _Trial(target, dialect, shape, key)
    body = json.dumps(body_of(shape, dialect, target.model)).encode()
    first = trial.turn(body)
    if isinstance(first, TrialOutcome):
        return first
    outcome = _check_first(first, target, shape)
    if not first.calls or not outcome.is_good:
        return outcome
    second = trial.turn(_with_results(DIALECTS[dialect].decode_request(body, {}), first, dialect))
    follow_up = second if isinstance(second, TrialOutcome) else _check_second(second)
    where = () if follow_up.is_good else ("The call is complete; this is the answer to its result:",)
    return TrialOutcome(is_good=follow_up.is_good, lines=(*outcome.lines, *where, *follow_up.lines))


def shape_of(client: str, dialect: str) -> RequestShape:
    """The recorded shape, else a plain one of the dialect."""
    plain = RequestShape(headers=_VERSION, members={"max_tokens": 1000}) if dialect == "messages" else RequestShape()
    return SHAPES.get((client, dialect), plain)


def path_of(shape: RequestShape, dialect: str) -> str:
    return PATHS[dialect] + shape.query


def body_of(shape: RequestShape, dialect: str, model: str) -> dict[str, Any]:
    body = {
        "model": model,
        **_conversation(dialect, shape.has_developer),
        **shape.members,
        "stream": shape.is_streaming,
    }
    return body | {"tools": [_tool(dialect) | _nested(dialect, shape.tool_members)]} if shape.has_tools else body


class _Trial:
    def __init__(self, target: ConnectTarget, dialect: str, shape: RequestShape, key: str) -> None:
        self._target = target
        self._dialect = dialect
        self._shape = shape
        self._key = key

    def turn(self, body: bytes) -> _Turn | TrialOutcome:
        """The complete answer, or the outcome of a failed request."""
        target, started = self._target, time.monotonic()
        connection = connect(target.address, SECONDS)
        try:
            path = path_at(target.address, path_of(self._shape, self._dialect))
            connection.request("POST", path, body, _headers(self._shape, self._key))
            return self._read(connection.getresponse(), body, started)
        except ConnectionRefusedError:
            return _bad(f"nothing answers at {target.address}.", "Start the gateway with: toolwire serve")
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            hint = "Check --url, and that the gateway runs there."
            return _bad(f"{target.address} cannot be used: {plain(why)}.", hint)
        finally:
            connection.close()

    def _read(self, response: http.client.HTTPResponse, body: bytes, started: float) -> _Turn | TrialOutcome:
        headers = {name.lower(): value for name, value in response.getheaders()}
        codec = DIALECTS[self._dialect]
        if response.status != 200:
            return _refusal(codec.decode_error(response.status, response.read(_PIECE), headers), self._target)
        try:
            answer, first = self._answer(response, codec.decode_request(body, {}))
        except GatewayError as error:
            return _bad(f"the answer broke off: {plain(error.sentence(), 600)}")
        times = f"first byte after {_ms(first - started)}, done after {_ms(time.monotonic() - started)}"
        return _Turn(answer=answer, times=times, loss=headers.get("x-toolwire-loss", ""))

    def _answer(self, response: http.client.HTTPResponse, request: Request) -> tuple[FoldedAnswer, float]:
        """The answer and the time of its first byte. Raises GatewayError."""
        codec = DIALECTS[self._dialect]
        decoder = codec.stream_decoder(request) if self._shape.is_streaming else codec.body_decoder(request)
        folder = Folder()
        first = size = 0.0
        while piece := response.read1(_PIECE):
            first = first or time.monotonic()
            size += len(piece)
            if size > _MAX_BYTES:
                raise GatewayError(f"it has more than {_MAX_BYTES} bytes.")
            for event in decoder.feed(piece):
                folder.send(event)
        for event in decoder.close():
            folder.send(event)
        return folder.answer(), first or time.monotonic()


def _with_results(request: Request, turn: _Turn, dialect: str) -> bytes:
    """The conversation with the answer, reasoning included, and a result for each call."""
    results = tuple(ToolResult(call_id=call.id, name=call.name, parts=(Text(text=RESULT),)) for call in turn.calls)
    answer = Message(role="assistant", parts=turn.answer.parts_of(0))
    messages = (*request.messages, answer, Message(role="user", parts=results))
    return DIALECTS[dialect].encode_request(replace(request, messages=messages, wire=b""), PLAIN).body


def _headers(shape: RequestShape, key: str) -> dict[str, str]:
    given = {"authorization": f"Bearer {key}"} if shape.auth == "bearer" else {"x-api-key": key}
    return {"content-type": "application/json", "user-agent": "toolwire-connect"} | given | shape.headers


def _check_first(turn: _Turn, target: ConnectTarget, shape: RequestShape) -> TrialOutcome:
    is_good, what = _verdict(turn, shape)
    extra = (f"Lost on the way: {plain(turn.loss, 600)}",) if turn.loss else ()
    return TrialOutcome(is_good=is_good, lines=(f"{target.model} {what}; {turn.times}.", *extra))


def _verdict(turn: _Turn, shape: RequestShape) -> tuple[bool, str]:
    broken = [call for call in turn.calls if not _is_object(call.raw)]
    if broken:
        return False, f"called {quote(broken[0].name)} with arguments that are no JSON object: {quote(broken[0].raw)}"
    if turn.calls:
        return True, f"called {quote(turn.calls[0].name)[1:-1]} with {quote(turn.calls[0].raw)[1:-1]}"
    if not turn.text:
        return False, "answered with neither text nor a call"
    note = " and did not call the tool" if shape.has_tools else ""
    return True, f"answered with text{note}: {quote(turn.text[:80])}"


def _check_second(turn: _Turn) -> TrialOutcome:
    if turn.text:
        return TrialOutcome(
            is_good=True, lines=(f"given its result, it answered: {quote(turn.text[:80])}; {turn.times}.",)
        )
    if turn.calls:
        name = quote(turn.calls[0].name)[1:-1]
        return TrialOutcome(is_good=True, lines=(f"given its result, it called {name} again; {turn.times}.",))
    return _bad(f"it answered with neither text nor a call; {turn.times}.")


def _refusal(error: GatewayError, target: ConnectTarget) -> TrialOutcome:
    reason = plain(error.sentence(), 600)
    if error.status in (401, 403):
        wanted = "Give this command" if target.has_key else "The gateway wants a key: give this command"
        return _bad(f"status {error.status}: {reason}", f"{wanted} and the client the right one: export {KEY}=...")
    if error.status == 404:
        return _bad(f"status 404: {reason}", "`toolwire models` lists the models; choose one with --model.")
    return _bad(f"status {error.status}: {reason}")


def _bad(*lines: str) -> TrialOutcome:
    return TrialOutcome(is_good=False, lines=lines)


def _is_object(raw: str) -> bool:
    try:
        return isinstance(json.loads(raw), dict)
    except (ValueError, RecursionError):
        return False


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _conversation(dialect: str, has_developer: bool) -> dict[str, Any]:
    question = {"role": "user", "content": QUESTION}
    if dialect == "messages":
        return {"system": SYSTEM, "messages": [question]}
    if dialect == "chat":
        return {"messages": [{"role": "system", "content": SYSTEM}, question]}
    if has_developer:
        return {"input": [_item("developer", SYSTEM), _item("user", QUESTION)]}
    return {"instructions": SYSTEM, "input": [_item("user", QUESTION)]}


def _item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _tool(dialect: str) -> dict[str, Any]:
    if dialect == "messages":
        return {"name": TOOL, "description": _DESCRIPTION, "input_schema": _SCHEMA}
    function = {"name": TOOL, "description": _DESCRIPTION, "parameters": _SCHEMA}
    return {"type": "function", "function": function} if dialect == "chat" else {"type": "function", **function}


def _nested(dialect: str, members: dict[str, Any]) -> dict[str, Any]:
    """The chat dialect nests the members of a function."""
    return {"function": _tool(dialect)["function"] | members} if dialect == "chat" and members else members
