"""Anthropic Messages: requests in."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from ...errors import BadRequest, quote
from ...types import (
    JsonObject,
    Media,
    Message,
    Opaque,
    Output,
    Part,
    Reasoning,
    Request,
    Role,
    Sampling,
    Source,
    State,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ...wire.exact import encode
from ...wire.fields import (
    count_or_none,
    flag_or_none,
    list_or_none,
    missing,
    need_list,
    need_name,
    need_object,
    need_text,
    number_or_none,
    object_or_none,
    rest,
    text_or_none,
    wrong,
)
from ..opening import body_object
from .shapes import NAME

_KNOWN = frozenset(
    [
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "stream",
        "metadata",
        "thinking",
        "output_config",
    ]
)
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_TOOL = frozenset({"name", "description", "input_schema", "type", "strict"})
_TEXT = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "name", "input"})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    return _request(body, headers, is_counting=False)


def decode_count(body: bytes, headers: Mapping[str, str]) -> Request:
    """A count_tokens request: the same body without what only an answer needs."""
    return _request(body, headers, is_counting=True)


def _request(body: bytes, headers: Mapping[str, str], *, is_counting: bool) -> Request:
    top = body_object(body)
    model = need_name(top, "model", "")
    if "max_tokens" not in top and not is_counting:
        raise missing("max_tokens", "an integer of at least 1")
    choice = object_or_none(top, "tool_choice")
    metadata = object_or_none(top, "metadata")
    return Request(
        model=model,
        messages=(*_system(top.get("system")), *_messages(top)),
        tools=_tools(top),
        tool_choice=_tool_choice(choice),
        parallel_calls=_parallel(choice),
        max_tokens=count_or_none(top, "max_tokens", least=1),
        sampling=_sampling(top),
        thinking=_thinking(top),
        output=_output(top),
        stream=flag_or_none(top, "stream") or False,
        stream_usage=True,
        user=text_or_none(metadata, "user_id", "metadata") if metadata else None,
        metadata=metadata,
        state=_state(top),
        extra=rest(top, _KNOWN, NAME),
        origin=NAME,
        source=top,
        wire=body,
        headers=dict(headers),
    )


def _state(top: JsonObject) -> State | None:
    """Server-side threads: the official tool runners replay the whole history when told in these words that there are none."""
    if not top.get("thread"):
        return None
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    return State(field="thread", why="this back end keeps no threads", refusal={"details": details})


def _system(value: Any) -> tuple[Message, ...]:
    if value is None or value == "":
        return ()
    parts = _content(value, "system", _user_part)
    return (Message(role="system", parts=parts, is_head=True, source=Source(NAME, value)),)


def _messages(top: JsonObject) -> tuple[Message, ...]:
    items = need_list(top, "messages", "")
    if not items:
        raise BadRequest("it is empty; expected at least one message.", where="messages")
    return tuple(_message(item, f"messages[{index}]") for index, item in enumerate(items))


def _message(item: Any, where: str) -> Message:
    need_object(item, where)
    role = _ROLES.get(given := need_text(item, "role", where))
    if role is None:
        raise wrong(f"{where}.role", given, "one of user, assistant, system")
    if "content" not in item:
        raise missing(f"{where}.content", "a string or an array of blocks")
    read = _assistant_part if role == "assistant" else _user_part
    return Message(
        role=role,
        parts=_content(item["content"], f"{where}.content", read),
        extra=rest(item, frozenset({"role", "content"}), NAME),
        source=Source(NAME, item),
    )


def _content(content: Any, where: str, read: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(text=content),) if content else ()
    if not isinstance(content, list):
        raise wrong(where, content, "a string or an array of blocks")
    return tuple(read(item, f"{where}[{index}]") for index, item in enumerate(content))


def _user_part(item: Any, where: str) -> Part:
    need_object(item, where)
    match need_text(item, "type", where):
        case "text":
            return Text(text=need_text(item, "text", where), extra=rest(item, _TEXT, NAME))
        case "tool_result":
            return _result(item, where)
        case "image" | "document" as kind:
            return _medium(item, kind, where)
        case _:
            return Opaque(dialect=NAME, value=item)


def _assistant_part(item: Any, where: str) -> Part:
    need_object(item, where)
    match need_text(item, "type", where):
        case "text":
            return Text(text=need_text(item, "text", where), extra=rest(item, _TEXT, NAME))
        case "tool_use":
            return _call(item, where)
        case "thinking":
            text, signature = need_text(item, "thinking", where), text_or_none(item, "signature", where)
            return Reasoning(text=text, signature=signature or None)
        case "redacted_thinking":
            return Reasoning(text="", redacted=need_text(item, "data", where))
        case _:
            return Opaque(dialect=NAME, value=item)


def _call(item: JsonObject, where: str) -> ToolCall:
    if "input" not in item:
        raise missing(f"{where}.input", "an object")
    args = need_object(item["input"], f"{where}.input")
    return ToolCall(
        id=need_name(item, "id", where),
        name=need_name(item, "name", where),
        raw=encode(args).decode("utf-8"),
        args=args,
        extra=rest(item, _CALL, NAME),
    )


def _result(item: JsonObject, where: str) -> ToolResult:
    content = item.get("content")
    parts = () if content is None else _content(content, f"{where}.content", _user_part)
    return ToolResult(
        call_id=need_name(item, "tool_use_id", where),
        parts=tuple(part for part in parts if isinstance(part, Text | Media | Opaque)),
        is_error=flag_or_none(item, "is_error", where) or False,
        extra=rest(item, _RESULT, NAME),
    )


def _medium(item: JsonObject, kind: str, where: str) -> Part:
    source = need_object(item.get("source"), f"{where}.source")
    name = (text_or_none(item, "title", where) or "") if kind == "document" else ""
    extra = rest(item, frozenset({"type", "source", "title"}), NAME)
    media_kind: Any = "image" if kind == "image" else "file"
    match source:
        case {"type": "base64", "data": str(data), "media_type": str(mime)}:
            return Media(kind=media_kind, mime=mime, data=data, name=name, extra=extra)
        case {"type": "url", "url": str(url)}:
            return Media(kind=media_kind, url=url, name=name, extra=extra)
        case {"type": "file", "file_id": str(file_id)}:
            return Media(kind=media_kind, file_id=file_id, name=name, extra=extra)
        case {"type": "text", "data": str(text)}:
            data = b64encode(text.encode("utf-8", "replace")).decode()
            return Media(kind="file", mime="text/plain", data=data, name=name, extra=extra)
        case {"type": "base64" | "url" | "file" | "text"}:
            raise BadRequest(f"it lacks a member that its type {quote(source['type'])} needs.", where=f"{where}.source")
        case _:
            return Opaque(dialect=NAME, value=item)


def _tools(top: JsonObject) -> tuple[Tool, ...]:
    return tuple(_tool(item, f"tools[{index}]") for index, item in enumerate(list_or_none(top, "tools") or ()))


def _tool(item: Any, where: str) -> Tool:
    need_object(item, where)
    kind = text_or_none(item, "type", where)
    source = Source(NAME, item)
    if kind not in (None, "custom"):
        name = item.get("name")
        return Tool(name=name if isinstance(name, str) and name else str(kind), kind="hosted", source=source)
    name = need_name(item, "name", where)
    if "input_schema" not in item:
        raise missing(f"{where}.input_schema", "an object")
    return Tool(
        name=name,
        description=text_or_none(item, "description", where),
        schema=need_object(item["input_schema"], f"{where}.input_schema"),
        strict=flag_or_none(item, "strict", where),
        extra=rest(item, _TOOL, NAME),
        source=source,
    )


def _tool_choice(choice: JsonObject | None) -> ToolChoice | None:
    if choice is None:
        return None
    source = Source(NAME, choice)
    match need_text(choice, "type", "tool_choice"):
        case "auto" | "none" as mode:
            return ToolChoice(mode=mode, source=source)
        case "any":
            return ToolChoice(mode="required", source=source)
        case "tool":
            return ToolChoice(mode="named", names=(need_name(choice, "name", "tool_choice"),), source=source)
        case other:
            raise wrong("tool_choice.type", other, "one of auto, any, tool, none")


def _parallel(choice: JsonObject | None) -> bool | None:
    disabled = flag_or_none(choice, "disable_parallel_tool_use", "tool_choice") if choice else None
    return None if disabled is None else not disabled


def _sampling(top: JsonObject) -> Sampling:
    stops = list_or_none(top, "stop_sequences") or []
    if not all(isinstance(stop, str) for stop in stops):
        raise wrong("stop_sequences", stops, "an array of strings")
    return Sampling(
        temperature=number_or_none(top, "temperature"),
        top_p=number_or_none(top, "top_p"),
        top_k=count_or_none(top, "top_k"),
        stop=tuple(stops),
    )


def _thinking(top: JsonObject) -> Thinking | None:
    given, config = object_or_none(top, "thinking"), object_or_none(top, "output_config") or {}
    effort = text_or_none(config, "effort", "output_config")
    if given is None:
        return Thinking(effort=effort) if effort else None
    match need_text(given, "type", "thinking"):
        case "disabled":
            return Thinking(mode="off", effort=effort)
        case "adaptive":
            return Thinking(mode="adaptive", effort=effort)
        case "enabled":
            budget = count_or_none(given, "budget_tokens", "thinking", least=1)
            return Thinking(mode="on", effort=effort, budget=budget)
        case other:
            raise wrong("thinking.type", other, "one of enabled, disabled, adaptive")


def _output(top: JsonObject) -> Output:
    config = object_or_none(top, "output_config") or {}
    form = object_or_none(config, "format", "output_config")
    if form is None or form.get("type") != "json_schema":
        return Output()
    return Output(format="schema", name="answer", schema=object_or_none(form, "schema", "output_config.format"))
