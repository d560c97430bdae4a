"""Ollama: requests in, for /api/chat and /api/generate. A request streams unless it says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import Extra, JsonObject, Message, OutputFormat, Part, Request, Sampling, Text, Thinking, Tool
from ...wire.fields import (
    body_object,
    count_or_none,
    flag_or_none,
    list_or_none,
    need_name,
    need_object,
    number_or_none,
    object_or_none,
    rest,
    text_or_none,
    wrong,
)
from ..shared.calls import CallPairs
from ..shared.foreign_history import HistoryReader
from ..shared.tool_lists import TOOL_LISTS
from .messages_in import history_reader, images_in, messages_in
from .models import name_in
from .shapes import NAME

_SHARED = frozenset({"model", "stream", "format", "options", "think", "logprobs", "top_logprobs"})
_CHAT = _SHARED | {"messages", "tools"}
_GENERATE = _SHARED | {"prompt", "system", "images", "suffix", "context"}
_OPTIONS = frozenset(
    ["num_predict", "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty", "stop"]
)
_FUNCTION = frozenset({"name", "description", "parameters"})
_EFFORTS = ("low", "medium", "high", "max")


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    """A request of /api/chat. Without messages it only asks for the model to be loaded."""
    top = TOOL_LISTS.decode(body)
    known = TOOL_LISTS.known(top, NAME)
    reader = history_reader()
    listed = reader.listed(top, "messages") if top.get("messages") else []
    pairs = CallPairs()
    messages = messages_in(listed, reader, pairs)
    tools = TOOL_LISTS.tools(list_or_none(top, "tools") or [], NAME, _tools) if known is None else known
    request = _request({**top, "messages": listed}, body, headers, messages, tools, reader, _CHAT)
    return replace(request, next_call=pairs.count + 1)


def decode_generate(body: bytes, headers: Mapping[str, str]) -> Request:
    """A request of /api/generate. Without a prompt it only asks for the model to be loaded."""
    top = body_object(body)
    if text_or_none(top, "suffix"):
        raise BadRequest(
            "the model cannot insert text before a suffix; expected a prompt alone.",
            where="suffix",
            code="unsupported_value",
        )
    if list_or_none(top, "context"):
        raise BadRequest(
            "these are tokens of another server, which no back end can read; expected none.",
            where="context",
            code="unsupported_value",
            hint="Send the conversation to /api/chat.",
        )
    parts: list[Part] = [Text(text=text)] if (text := text_or_none(top, "prompt")) else []
    parts += images_in(top, "")
    messages = [Message(role="user", parts=tuple(parts))] if parts else []
    if messages and (system := text_or_none(top, "system")):
        messages.insert(0, Message(role="system", parts=(Text(text=system),), is_head=True))
    source = {key: value for key, value in top.items() if key != "messages"}
    return _request(source, body, headers, tuple(messages), (), history_reader(), _GENERATE)


def decode_pull(body: bytes, headers: Mapping[str, str]) -> Request:
    """A request of /api/pull names a model and has no messages."""
    return Request(model=name_in(body), messages=(), origin=NAME, wire=body, headers=dict(headers))


def is_generate(request: Request) -> bool:
    """Whether the client expects the answer of /api/generate."""
    return "messages" not in request.source


def _request(
    top: JsonObject,
    body: bytes,
    headers: Mapping[str, str],
    messages: tuple[Message, ...],
    tools: tuple[Tool, ...],
    reader: HistoryReader,
    known: frozenset[str],
) -> Request:
    options = object_or_none(top, "options") or {}
    is_stream = flag_or_none(top, "stream")
    return Request(
        model=need_name(top, "model", ""),
        messages=messages,
        tools=tools,
        max_tokens=_limit(options),
        sampling=_sampling(top, options),
        thinking=_thinking(top.get("think")),
        output=_output(top.get("format")),
        stream=is_stream is not False,
        stream_usage=True,
        repaired=tuple(reader.losses),
        extra=_extra(top, options, known),
        origin=NAME,
        source=top,
        wire=body,
        headers=dict(headers),
    )


def _extra(top: JsonObject, options: JsonObject, known: frozenset[str]) -> Extra:
    """Members that are not read, those of the options under that name."""
    found = rest(top, known, NAME).get(NAME, {})
    more = {key: value for key, value in options.items() if key not in _OPTIONS}
    if more:
        found = {**found, "options": more}
    return {NAME: found} if found else {}


def _limit(options: JsonObject) -> int | None:
    """-1 is no limit, and -2 the rest of the context."""
    given = number_or_none(options, "num_predict", "options")
    return count_or_none(options, "num_predict", "options") if given is not None and given > 0 else None


def _sampling(top: JsonObject, options: JsonObject) -> Sampling:
    stops = options.get("stop")
    stops = [stops] if isinstance(stops, str) else list_or_none(options, "stop", "options") or []
    if not all(isinstance(stop, str) for stop in stops):
        raise wrong("options.stop", stops, "an array of strings")
    return Sampling(
        temperature=number_or_none(options, "temperature", "options"),
        top_p=number_or_none(options, "top_p", "options"),
        top_k=number_or_none(options, "top_k", "options"),
        seed=number_or_none(options, "seed", "options"),
        frequency_penalty=number_or_none(options, "frequency_penalty", "options"),
        presence_penalty=number_or_none(options, "presence_penalty", "options"),
        stop=tuple(stops),
        logprobs=flag_or_none(top, "logprobs") or False,
        top_logprobs=count_or_none(top, "top_logprobs") or None,
    )


def _thinking(value: Any) -> Thinking | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return Thinking(mode="on" if value else "off")
    if value not in _EFFORTS:
        raise wrong("think", value, f"true, false or one of {', '.join(_EFFORTS)}")
    return Thinking(effort=value)


def _output(value: Any) -> OutputFormat:
    if value is None or value == "":
        return OutputFormat()
    if value == "json":
        return OutputFormat(format="json")
    if isinstance(value, dict):
        return OutputFormat(format="schema", name="answer", schema=value)
    raise wrong("format", value, '"json" or a JSON schema')


def _tools(listed: list[Any]) -> tuple[Tool, ...]:
    return tuple(_tool(item, f"tools[{index}]") for index, item in enumerate(listed))


def _tool(given: Any, where: str) -> Tool:
    item = need_object(given, where)
    if (kind := text_or_none(item, "type", where)) not in (None, "", "function"):
        raise wrong(f"{where}.type", kind, '"function"')
    where = f"{where}.function"
    function = need_object(item.get("function"), where)
    return Tool(
        name=need_name(function, "name", where),
        description=text_or_none(function, "description", where),
        schema=object_or_none(function, "parameters", where) or {"type": "object", "properties": {}},
        extra=rest(function, _FUNCTION, NAME),
    )
