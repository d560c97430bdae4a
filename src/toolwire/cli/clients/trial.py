"""`toolwire connect CLIENT --check`: sends a question and a tool result as the client would, and reports on the answers.

The requests were recorded from the programs (versions in docs/clients.md): path, authentication, relevant headers, members beside the
conversation, and whether the client streams. Conversation and tool are always the same.
"""

from __future__ import annotations

import http.client
import json
import time
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...dialects import DIALECTS, FRONTS
from ...dialects.base import ResponseDecoder
from ...dialects.shared.errors import decode_error
from ...errors import GatewayError, quote
from ...events import FoldedAnswer, Folder
from ...profiles import PLAIN
from ...types import Message, Request, Text, ToolCall, ToolResult
from ...wire.exact_json import object_of
from ..models import plain
from .client import KEY, PATHS, ConnectTarget, DialectSetup
from .gateway import connect, path_at
from .ollama_answer import OllamaAnswerReader, body_with_results

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
_VERSION = {"anthropic-version": "2023-06-01"}
# Parts of shapes that clients have in common, by the names that the tables of clients use.
SHAPE_PARTS: dict[str, dict[str, Any]] = {
    "api key": {"auth": "x-api-key"},
    "version": {"headers": _VERSION},
    "new version": {"headers": {"anthropic-version": "2026-10-21"}},
    "thinking": {"headers": {"anthropic-beta": "interleaved-thinking-2025-05-14"}},
    "session": {"headers": {"x-session-affinity": _MARK, "x-session-id": _MARK}},
    "user": {"headers": {"x-initiator": "user"}},
    "usage": {"members": {"stream_options": {"include_usage": True}}},
    "stateless": {"members": {"store": False, "include": ["reasoning.encrypted_content"]}},
    "cached": {"members": {"prompt_cache_key": _MARK}},
    "auto": {"members": {"tool_choice": "auto"}},
    "auto object": {"members": {"tool_choice": {"type": "auto"}}},
    "summary": {"members": {"reasoning": {"summary": "auto"}}},
    "parallel": {"members": {"parallel_tool_calls": True}},
    "strict": {"tool_members": {"strict": True}},
    "loose": {"tool_members": {"strict": False}},
    "null strict": {"tool_members": {"strict": None}},
    "whole": {"is_streaming": False},
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
    second = trial.turn(_with_results(body, first, dialect))
    follow_up = second if isinstance(second, TrialOutcome) else _check_second(second)
    where = () if follow_up.is_good else ("The call is complete; this is the answer to its result:",)
    return TrialOutcome(is_good=follow_up.is_good, lines=(*outcome.lines, *where, *follow_up.lines))


def shape_of(way: DialectSetup) -> RequestShape:
    """The recorded shape, else a plain one of the dialect."""
    if not way.check and way.dialect == "messages":
        return RequestShape(headers=_VERSION, members={"max_tokens": 1000})
    found: dict[str, Any] = {}
    for part in way.check:
        for key, value in (SHAPE_PARTS[part] if isinstance(part, str) else part).items():
            found[key] = {**found.get(key, {}), **value} if isinstance(value, dict) else value
    return msgspec.convert(found, RequestShape)


def path_of(shape: RequestShape, dialect: str) -> str:
    return PATHS[dialect] + shape.query


def body_of(shape: RequestShape, dialect: str, model: str) -> dict[str, Any]:
    body = {
        "model": model,
        **_conversation(dialect, shape.has_developer),
        **shape.members,
        "stream": shape.is_streaming,
    }
    return body | {"tools": [_tool(dialect, shape.tool_members)]} if shape.has_tools else body


class _Trial:
    def __init__(self, target: ConnectTarget, dialect: str, shape: RequestShape, key: str) -> None:
        self._target = target
        self._dialect = dialect
        self._shape = shape
        auth = {"authorization": f"Bearer {key}"} if shape.auth == "bearer" else {"x-api-key": key}
        named = {"content-type": "application/json", "user-agent": "toolwire-connect"}
        self._headers = {**named, **auth, **shape.headers}

    def turn(self, body: bytes) -> _Turn | TrialOutcome:
        """The complete answer, or the outcome of a failed request."""
        target, started = self._target, time.monotonic()
        connection = connect(target.address, SECONDS)
        try:
            path = path_at(target.address, path_of(self._shape, self._dialect))
            connection.request("POST", path, body, self._headers)
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
        if response.status != 200:
            codec = DIALECTS.get(self._dialect)
            read_error = decode_error if codec is None else codec.decode_error
            return _refusal(read_error(response.status, response.read(_PIECE), headers), self._target)
        try:
            answer, first = self._answer(response, FRONTS[self._dialect].decode_request(body, {}))
        except GatewayError as error:
            return _bad(f"the answer broke off: {plain(error.sentence(), 600)}")
        times = f"first byte after {_ms(first - started)}, done after {_ms(time.monotonic() - started)}"
        return _Turn(answer=answer, times=times, loss=headers.get("x-toolwire-loss", ""))

    def _decoder(self, request: Request) -> ResponseDecoder | OllamaAnswerReader:
        codec = DIALECTS.get(self._dialect)
        if codec is None:
            return OllamaAnswerReader()
        return codec.stream_decoder(request) if self._shape.is_streaming else codec.body_decoder(request)

    def _answer(self, response: http.client.HTTPResponse, request: Request) -> tuple[FoldedAnswer, float]:
        """The answer and the time of its first byte. Raises GatewayError."""
        decoder = self._decoder(request)
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


def _with_results(body: bytes, turn: _Turn, dialect: str) -> bytes:
    """The conversation with the answer, reasoning included, and a result for each call."""
    if dialect not in DIALECTS:
        return body_with_results(body, turn.answer.parts_of(0), RESULT)
    request = DIALECTS[dialect].decode_request(body, {})
    results = tuple(ToolResult(call_id=call.id, name=call.name, parts=(Text(text=RESULT),)) for call in turn.calls)
    answer = Message(role="assistant", parts=turn.answer.parts_of(0))
    messages = (*request.messages, answer, Message(role="user", parts=results))
    return DIALECTS[dialect].encode_request(replace(request, messages=messages, wire=b""), PLAIN).body


def _check_first(turn: _Turn, target: ConnectTarget, shape: RequestShape) -> TrialOutcome:
    is_good, what = _verdict(turn, shape)
    extra = (f"Lost on the way: {plain(turn.loss, 600)}",) if turn.loss else ()
    return TrialOutcome(is_good=is_good, lines=(f"{target.model} {what}; {turn.times}.", *extra))


def _verdict(turn: _Turn, shape: RequestShape) -> tuple[bool, str]:
    broken = [call for call in turn.calls if object_of(call.raw) is None]
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


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _conversation(dialect: str, has_developer: bool) -> dict[str, Any]:
    question = {"role": "user", "content": QUESTION}
    if dialect == "messages":
        return {"system": SYSTEM, "messages": [question]}
    if dialect in ("chat", "ollama"):
        return {"messages": [{"role": "system", "content": SYSTEM}, question]}
    if has_developer:
        return {"input": [_item("developer", SYSTEM), _item("user", QUESTION)]}
    return {"instructions": SYSTEM, "input": [_item("user", QUESTION)]}


def _item(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _tool(dialect: str, members: dict[str, Any]) -> dict[str, Any]:
    schema = "input_schema" if dialect == "messages" else "parameters"
    function = {"name": TOOL, "description": _DESCRIPTION, schema: _SCHEMA, **members}
    if dialect == "messages":
        return function
    is_nested = dialect in ("chat", "ollama")
    return {"type": "function", "function": function} if is_nested else {"type": "function", **function}
