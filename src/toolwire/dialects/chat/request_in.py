"""Chat Completions: requests in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...errors import BadRequest, quote
from ...types import (
    Extra,
    JsonObject,
    Media,
    Message,
    Opaque,
    OutputFormat,
    Part,
    Reasoning,
    Refusal,
    Request,
    Role,
    Sampling,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...wire.exact_json import object_of
from ...wire.fields import (
    count_or_none,
    flag_or_none,
    missing,
    need_name,
    need_object,
    need_text,
    numbers,
    object_or_none,
    rest,
    text_or_none,
    unread,
    wrong,
)
from ..shared.foreign_forms import CHAT_MEMBERS, has_leftovers, is_foreign
from ..shared.foreign_history import CHOICES, HistoryReader, without_choice
from ..shared.histories import SMALL, DecodedHistories
from ..shared.media.data import from_data, from_url
from ..shared.media.policy import has_result_media
from ..shared.requests import CACHE_HINT, split_result, with_hint
from ..shared.tool_lists import TOOL_LISTS
from .old_calls import has_old_calls, with_own_ids
from .shapes import NAME
from .tools_in import choice_in, declares_tools, in_own_form, old_choice_in, tools_in

_KNOWN = frozenset(
    [
        "model",
        "messages",
        "tools",
        "functions",
        "function_call",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "stop",
        "n",
        "logprobs",
        "top_logprobs",
        "reasoning_effort",
        "response_format",
        "verbosity",
        "stream",
        "stream_options",
        "user",
        "metadata",
    ]
)
_READ_WHOLLY = _KNOWN - {"stream_options"}
# Members that most requests lack, read only where one of them is present.
_CHOICE = frozenset({"tool_choice", "function_call"})
_OUTPUT = frozenset({"response_format", "verbosity"})
_NUMBERS = ("temperature", "top_p", "seed", "frequency_penalty", "presence_penalty")
_SAMPLING = frozenset({*_NUMBERS, "stop", "n", "logprobs", "top_logprobs"})
_DEFAULT_SAMPLING = Sampling()
_PLAIN_OUTPUT = OutputFormat()
_HISTORIES = DecodedHistories()  # of the process
_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
_CALL = frozenset({"id", "type", "function", "index"})
_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "reasoning_content", "refusal", "function_call"})
_RESULT = _MESSAGE | {"name"}
_ASSISTANT = CHAT_MEMBERS - {"tool_call_id"}
_DECLARATION = _MESSAGE | {"tools"}
_TEXT = frozenset({"type", "text"})
_IMAGE = frozenset({"type", "image_url"})
_AUDIO = frozenset({"type", "input_audio"})
_FILE = frozenset({"type", "file"})
_RESULT_PARTS = frozenset({"video_url", "audio_url"})  # of servers that have them
_NO_PARTS = re.compile("_(use|result|call|output)$|^(server|web|mcp|output)_")  # of other dialects
_KEPT = ("name", "audio", "annotations", "reasoning_details", "prefix", "partial")


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    is_large = len(body) > SMALL
    given, before = _HISTORIES.decode(body, TOOL_LISTS.decode) if is_large else (TOOL_LISTS.decode(body), None)
    known = None if _declares_elsewhere(given) else TOOL_LISTS.known(given, NAME)
    top = in_own_form(given) if known is None else given
    wire = body if top is given else b""
    effort = text_or_none(top, "reasoning_effort")
    model = need_name(top, "model", "")
    reader = HistoryReader(NAME, _any_part, members=_KEPT, result_parts=_RESULT_PARTS)
    may_recur = is_large and top is given and "functions" not in top
    messages = _messages(top, reader, before.messages if before is not None and may_recur else ())
    if may_recur and not reader.losses:
        _HISTORIES.add(body, top["messages"], messages, before)
    tools = tools_in(top) if known is None else known
    if not tools and not top.keys().isdisjoint(CHOICES):
        top = without_choice(top, reader)
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=None if top.keys().isdisjoint(_CHOICE) else choice_in(top.get("tool_choice")) or old_choice_in(top),
        parallel_calls=flag_or_none(top, "parallel_tool_calls"),
        max_tokens=count_or_none(top, "max_completion_tokens", least=1) or count_or_none(top, "max_tokens", least=1),
        sampling=_DEFAULT_SAMPLING if top.keys().isdisjoint(_SAMPLING) else _sampling(top),
        thinking=Thinking(effort=effort, mode="off" if effort == "none" else "") if effort else None,
        output=_PLAIN_OUTPUT if top.keys().isdisjoint(_OUTPUT) else _output(top),
        stream=flag_or_none(top, "stream") or False,
        stream_usage="stream_options" in top and _stream_usage(top),
        user=text_or_none(top, "user") or text_or_none(top, "safety_identifier"),
        metadata=object_or_none(top, "metadata"),
        repaired=tuple(reader.losses),
        extra={} if top.keys() <= _READ_WHOLLY else _extra(top),
        origin=NAME,
        source=top,
        wire=wire,
        headers=dict(headers),
    )


def _declares_elsewhere(top: JsonObject) -> bool:
    """Whether tools may be declared or named outside of the list, in a form that must be looked at."""
    messages = top.get("messages")
    if "functions" in top or isinstance(top.get("tool_choice"), dict) or not isinstance(messages, list):
        return True
    return bool([item for item in messages if type(item) is dict and "tools" in item])


def _extra(top: JsonObject) -> Extra:
    """Members that are not read; the identifier of the user is, unless the request has another one."""
    found = {key: value for key, value in top.items() if key not in _KNOWN}
    if not top.get("user"):
        found.pop("safety_identifier", None)
    found |= unread(top, "stream_options", frozenset({"include_usage"}))
    return {NAME: found} if found else {}


def _messages(top: JsonObject, reader: HistoryReader, known: tuple[Message, ...]) -> tuple[Message, ...]:
    """known: the first of them, which were decoded before."""
    given = top.get("messages")
    items = given if isinstance(given, list) else reader.listed(top, "messages")
    is_old = "functions" in top and has_old_calls(items)
    found: list[Message] = [*known]
    for index, item in enumerate(items[len(known) :] if known else items, len(known)):
        try:
            found.append(_message(item, f"messages[{index}]", is_old))
        except BadRequest as error:
            read = reader.messages(item, f"messages[{index}]", error)
            # The encoder does not use this source; errors about the image name its place.
            found += [replace(one, source=Source(NAME, item)) if has_result_media(one) else one for one in read]
    if not found:
        raise BadRequest("it is empty; expected at least one message.", where="messages")
    return tuple(with_own_ids(found) if is_old else found)


def _message(item: Any, where: str, is_old: bool = False) -> Message:
    """is_old: calls and results of the old form are regular."""
    need_object(item, where)
    role = need_text(item, "role", where)
    source = Source(NAME, item)
    if (role == "tool" and "tool_calls" not in item) or (role == "function" and is_old):
        extra = rest(item, _RESULT, NAME)
        if not _ASSISTANT.isdisjoint(item) or (extra and has_leftovers(extra[NAME])):
            raise wrong(where, "members of an answer", "members of a result")
        return Message(role="tool", parts=(_result(item, role, where),), extra=extra, source=source)
    known = _ROLES.get(role)
    if known is None:
        raise wrong(f"{where}.role", role, "one of system, developer, user, assistant, tool")
    if "tools" in item and declares_tools(item):
        return _declaration(item, known, where)
    extra = {} if item.keys() <= _MESSAGE else rest(item, _MESSAGE, NAME)
    if extra and has_leftovers(extra[NAME]):
        raise wrong(where, "members of an answer", "members of a message")
    if known != "assistant" and not CHAT_MEMBERS.isdisjoint(item):
        raise wrong(where, "members of the assistant", f"members of the {known}")
    if known == "assistant":
        parts = _assistant(item, where, is_old)
        return Message(
            role=known, parts=_hinted(parts, item) if CACHE_HINT in item else parts, extra=extra, source=source
        )
    content = item.get("content")
    if content is None:
        raise missing(f"{where}.content", "a string or an array of parts")
    parts = _content(content, f"{where}.content")
    if type(content) is list and any(isinstance(part, Refusal) for part in parts):
        raise wrong(f"{where}.content", "a refusal", "parts of the user")
    if CACHE_HINT in item:
        parts = _hinted(parts, item)
    return Message(role=known, parts=parts, extra=extra, source=source)


def _declaration(item: JsonObject, role: Role, where: str) -> Message:
    """The tools are in the request's list; the text of the message is an ordinary instruction."""
    content = item.get("content")
    parts = _content(content, f"{where}.content") if content else ()
    return Message(
        role=role,
        parts=tuple(part for part in parts if not isinstance(part, Text) or part.text.strip()),
        declares_tools=True,
        extra=rest(item, _DECLARATION, NAME),
        source=Source(NAME, item),
    )


def _hinted(parts: tuple[Part, ...], item: JsonObject) -> tuple[Part, ...]:
    """A cache hint next to the content applies to the last part of the content."""
    hint = item.get(CACHE_HINT)
    if hint is None or not parts:
        return parts
    return (*parts[:-1], replace(parts[-1], extra=with_hint(parts[-1].extra, hint)))


def _content(content: Any, where: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    if not isinstance(content, list) or not content:
        raise wrong(where, content, "a string or an array of parts")
    return tuple(_part(item, f"{where}[{index}]") for index, item in enumerate(content))


def _any_part(item: Any, where: str, role: Role) -> Part:
    return _part(item, where)


def _part(item: Any, where: str) -> Part:
    need_object(item, where)
    match need_text(item, "type", where):
        case "text":
            return Text(text=need_text(item, "text", where), extra=_part_extra(item, _TEXT))
        case "image_url":
            return _image(item, where)
        case "input_audio":
            audio = need_object(item.get("input_audio"), f"{where}.input_audio")
            kind, data = text_or_none(audio, "format", where) or "wav", need_text(audio, "data", f"{where}.input_audio")
            return Media(kind="audio", mime=f"audio/{kind}", data=data, extra=_part_extra(item, _AUDIO))
        case "file":
            return _file(item, where)
        case "refusal":
            return Refusal(text=need_text(item, "refusal", where))
        case other:
            if is_foreign(item) or _NO_PARTS.search(other):
                raise wrong(f"{where}.type", other, "a part of this dialect")
            return Opaque(dialect=NAME, value=item)


def _part_extra(item: JsonObject, known: frozenset[str]) -> Extra:
    return {} if item.keys() <= known else with_hint(rest(item, known, NAME), item.get(CACHE_HINT))


def _image(item: JsonObject, where: str) -> Part:
    inner = item.get("image_url")
    if isinstance(inner, str):  # seen from clients that follow the Responses shape
        inner = {"url": inner}
    inner = need_object(inner, f"{where}.image_url")
    detail = text_or_none(inner, "detail", f"{where}.image_url")
    extra = _part_extra(item, _IMAGE)
    return from_url("image", need_text(inner, "url", f"{where}.image_url"), detail=detail, extra=extra)


def _file(item: JsonObject, where: str) -> Part:
    inner = need_object(item.get("file"), f"{where}.file")
    name = text_or_none(inner, "filename", f"{where}.file") or ""
    extra = _part_extra(item, _FILE)
    if (file_id := text_or_none(inner, "file_id", f"{where}.file")) is not None:
        return Media(kind="file", file_id=file_id, name=name, extra=extra)
    return from_data("file", need_text(inner, "file_data", f"{where}.file"), name=name, extra=extra)


def _assistant(item: JsonObject, where: str, is_old: bool) -> tuple[Part, ...]:
    parts: list[Part] = []
    if thought := text_or_none(item, "reasoning_content", where):
        parts.append(Reasoning(text=thought))
    content = item.get("content")
    if content is not None and content != "":
        parts += _content(content, f"{where}.content")
    if refusal := text_or_none(item, "refusal", where):
        parts.append(Refusal(text=refusal))
    if "tool_calls" in item:
        if not (calls := item["tool_calls"]) or not isinstance(calls, list):
            raise wrong(f"{where}.tool_calls", calls, "an array of calls")
        for index, call in enumerate(calls):
            parts.append(_call(call, f"{where}.tool_calls[{index}]"))
    if (legacy := item.get("function_call")) is not None:
        if not is_old:
            raise wrong(f"{where}.function_call", legacy, "tool_calls")
        need_object(legacy, f"{where}.function_call")
        name, raw = (need_text(legacy, key, f"{where}.function_call") for key in ("name", "arguments"))
        parts.append(ToolCall(id=name, name=name, raw=raw, args=object_of(raw)))
    return tuple(parts)


def _call(item: Any, where: str) -> ToolCall:
    need_object(item, where)
    call_id = text_or_none(item, "id", where) or ""  # H051: the ledger gives it one
    if (kind := item.get("type")) != "function":
        if kind != "custom":
            raise wrong(f"{where}.type", kind, "function or custom")
        custom = need_object(item.get("custom"), f"{where}.custom")
        name = need_name(custom, "name", f"{where}.custom")
        return ToolCall(id=call_id, name=name, raw=need_text(custom, "input", f"{where}.custom"), kind="custom")
    function = need_object(item.get("function"), f"{where}.function")
    raw = function.get("arguments")
    if not isinstance(raw, str):
        raise wrong(f"{where}.function.arguments", raw, "a string that holds a JSON object")
    return ToolCall(
        id=call_id,
        name=need_name(function, "name", f"{where}.function"),
        raw=raw,
        args=object_of(raw),
        extra={} if item.keys() <= _CALL else rest(item, _CALL, NAME),
    )


def _result(item: JsonObject, role: str, where: str) -> ToolResult:
    call_id = text_or_none(item, "tool_call_id" if role == "tool" else "name", where) or ""
    parts = _content(item.get("content"), f"{where}.content")
    for part in parts:
        if type(part) is not Text and not (type(part) is Opaque and part.value["type"] in _RESULT_PARTS):
            raise wrong(f"{where}.content", type(part).__name__, "text; results have no other parts")
    kept: tuple[Text | Media | Opaque, ...] = tuple(part for part in parts if isinstance(part, Text | Opaque))
    is_error, kept = split_result(kept)
    return ToolResult(
        call_id=call_id,
        parts=kept,
        is_error=is_error,
        name=text_or_none(item, "name", where) or "",
        extra=with_hint({}, item[CACHE_HINT]) if CACHE_HINT in item else {},
    )


def _stream_usage(top: JsonObject) -> bool:
    options = object_or_none(top, "stream_options") or {}
    return flag_or_none(options, "include_usage", "stream_options") or False


def _sampling(top: JsonObject) -> Sampling:
    return Sampling(
        **numbers(top, *_NUMBERS),
        stop=_stop(top.get("stop")),
        choices=count_or_none(top, "n", least=1) or 1,
        logprobs=flag_or_none(top, "logprobs") or False,
        top_logprobs=count_or_none(top, "top_logprobs"),
    )


def _stop(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise wrong("stop", value, "a string or an array of strings")


def _output(top: JsonObject) -> OutputFormat:
    given = object_or_none(top, "response_format")
    verbosity = text_or_none(top, "verbosity")
    if given is None:
        return OutputFormat(verbosity=verbosity)
    match need_text(given, "type", "response_format"):
        case "text":
            return OutputFormat(verbosity=verbosity)
        case "json_object":
            return OutputFormat(format="json", verbosity=verbosity)
        case "json_schema":
            inner = need_object(given.get("json_schema"), "response_format.json_schema")
            return OutputFormat(
                format="schema",
                name=text_or_none(inner, "name", "response_format.json_schema") or "answer",
                description=text_or_none(inner, "description", "response_format.json_schema"),
                schema=object_or_none(inner, "schema", "response_format.json_schema"),
                strict=flag_or_none(inner, "strict", "response_format.json_schema"),
                verbosity=verbosity,
            )
        case other:
            raise BadRequest(
                f"found {quote(other)}; expected text, json_object or json_schema.", where="response_format.type"
            )
