"""Anthropic Messages: requests in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import BadRequest, quote
from ...types import (
    Extra,
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
    Text,
    Thinking,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ...wire.exact_json import encode
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
    unread,
    wrong,
)
from ..shared.effort import NO_SUMMARY
from ..shared.instructions import body_object
from ..shared.media.data import from_text, from_url
from ..shared.sealed_reasoning import WIRE_MARK, is_sealed, unseal
from .shapes import NAME
from .thread_in import is_continuing, state_in
from .tools_in import CHANGES, tools_in

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
_THINKING = frozenset({"type", "budget_tokens", "display"})
_OUTPUT = frozenset({"effort", "format"})
_DISPLAYS = {"summarized": "auto", "omitted": NO_SUMMARY}  # what the client wants to see of the thinking
_TEXT = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "name", "input"})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    return _request(body, headers, is_counting=False)


def decode_count_request(body: bytes, headers: Mapping[str, str]) -> Request:
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
        messages=(*system_in(top.get("system")), *_messages(top)),
        tools=tools_in(top),
        tool_choice=_tool_choice(choice),
        parallel_calls=_parallel(choice),
        max_tokens=count_or_none(top, "max_tokens", least=1),
        sampling=_sampling(top),
        thinking=_thinking(top),
        output=_output(top),
        stream=flag_or_none(top, "stream") or False,
        stream_usage=True,
        user=text_or_none(metadata, "user_id", "metadata") if metadata else None,
        metadata={key: value for key, value in metadata.items() if key != "user_id"} if metadata else None,
        state=state_in(top),
        extra=_extra(top),
        origin=NAME,
        source=top,
        # Seals are ours: the back end must not see them. A count is asked for in bytes, without what they seal.
        wire=body if WIRE_MARK not in body else encode(_unsealed(top)) if is_counting else b"",
        headers=dict(headers),
    )


def _extra(top: JsonObject) -> Extra:
    """Members that are not read, also of those that are read in part."""
    found = rest(top, _KNOWN, NAME).get(NAME, {})
    found = {**found, **unread(top, "thinking", _THINKING), **unread(top, "output_config", _OUTPUT)}
    return {NAME: found} if found else {}


def _unsealed(top: JsonObject) -> JsonObject:
    """The same messages without sealed thoughts."""
    messages = []
    for item in top["messages"]:
        content = item["content"]
        if _has_seal(content):
            content = [block for block in content if not is_sealed(block.get("signature"))]
            item = {**item, "content": content}
        if content:
            messages.append(item)
    return {**top, "messages": messages}


def system_in(value: Any) -> tuple[Message, ...]:
    if value is None or value == "":
        return ()
    parts = _content(value, "system", _user_part)
    return (Message(role="system", parts=parts, is_head=True, source=Source(NAME, value)),)


def _messages(top: JsonObject) -> tuple[Message, ...]:
    items = need_list(top, "messages", "")
    if not items and not is_continuing(top):  # a paused turn goes on without a word
        raise BadRequest("it is empty; expected at least one message.", where="messages")
    return tuple(message_in(item, f"messages[{index}]") for index, item in enumerate(items))


def message_in(item: Any, where: str) -> Message:
    need_object(item, where)
    role = _ROLES.get(given := need_text(item, "role", where))
    if role is None:
        raise wrong(f"{where}.role", given, "one of user, assistant, system")
    if "content" not in item:
        raise missing(f"{where}.content", "a string or an array of blocks")
    read = _assistant_part if role == "assistant" else _user_part
    parts = _content(item["content"], f"{where}.content", read)
    count = len(parts)
    if role == "system":  # changes of tools are told by the tools themselves
        parts = tuple(part for part in parts if not isinstance(part, Opaque) or part.value["type"] not in CHANGES)
    return Message(
        role=role,
        parts=parts,
        declares_tools=len(parts) < count,
        extra=rest(item, frozenset({"role", "content"}), NAME),
        source=None if role == "assistant" and _has_seal(item["content"]) else Source(NAME, item),
    )


def _has_seal(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(block, dict) and is_sealed(block.get("signature")) for block in content
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
            if signature and is_sealed(signature):
                return next(iter(unseal(signature, [text] if text else [])), Reasoning(text=text))
            return Reasoning(text=text, signature=signature or None)
        case "redacted_thinking":
            return Reasoning(text="", redacted=need_text(item, "data", where))
        case "image" | "document" as kind:
            return _medium(item, kind, where)
        case _:
            return Opaque(dialect=NAME, value=item)


def _call(item: JsonObject, where: str) -> ToolCall:
    if "input" not in item:
        raise missing(f"{where}.input", "an object")
    args = need_object(item["input"], f"{where}.input")
    return ToolCall(
        id=need_text(item, "id", where),
        name=need_name(item, "name", where),
        raw=encode(args).decode("utf-8"),
        args=args,
        extra=rest(item, _CALL, NAME),
    )


def _result(item: JsonObject, where: str) -> ToolResult:
    content = item.get("content")
    parts = () if content is None else _content(content, f"{where}.content", _user_part)
    kept = tuple(_in_words(part) for part in parts if isinstance(part, Text | Media | Opaque))
    return ToolResult(
        call_id=need_text(item, "tool_use_id", where),
        parts=kept,
        is_error=flag_or_none(item, "is_error", where) or False,
        kind="function" if kept == parts else "typed",
        extra=rest(item, _RESULT, NAME),
    )


def _in_words(part: Text | Media | Opaque) -> Text | Media | Opaque:
    """A tool that a search has found: it is among the tools now, and who knows no references is told so."""
    match part:
        case Opaque(value={"type": "tool_reference", "tool_name": str(name)}):
            return Text(text=f"Found, and callable from now on: {name}")
        case _:
            return part


def _medium(item: JsonObject, kind: str, where: str) -> Part:
    source = need_object(item.get("source"), f"{where}.source")
    name = (text_or_none(item, "title", where) or "") if kind == "document" else ""
    extra = rest(item, frozenset({"type", "source", "title"}), NAME)
    media_kind: Any = "image" if kind == "image" else "file"
    match source:
        case {"type": "base64", "data": str(data), "media_type": str(mime)}:
            return Media(kind=media_kind, mime=mime, data=data, name=name, extra=extra)
        case {"type": "url", "url": str(url)}:
            return from_url(media_kind, url, name=name, extra=extra)
        case {"type": "file", "file_id": str(file_id)}:
            return Media(kind=media_kind, file_id=file_id, name=name, extra=extra)
        case {"type": "text", "data": str(text)}:
            return from_text(text, name=name, extra=extra)
        case {"type": "base64" | "url" | "file" | "text"}:
            raise BadRequest(f"it lacks a member that its type {quote(source['type'])} needs.", where=f"{where}.source")
        case _:
            return Opaque(dialect=NAME, value=item)


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
    summary = _DISPLAYS.get(text_or_none(given, "display", "thinking") or "")
    match need_text(given, "type", "thinking"):
        case "disabled":
            return Thinking(mode="off", effort=effort)
        case "adaptive":
            return Thinking(mode="adaptive", effort=effort, summary=summary)
        case "enabled":
            budget = count_or_none(given, "budget_tokens", "thinking", least=1)
            return Thinking(mode="on", effort=effort, budget=budget, summary=summary)
        case other:
            raise wrong("thinking.type", other, "one of enabled, disabled, adaptive")


def _output(top: JsonObject) -> Output:
    config = object_or_none(top, "output_config") or {}
    form = object_or_none(config, "format", "output_config")
    if form is None or form.get("type") != "json_schema":
        return Output()
    return Output(format="schema", name="answer", schema=object_or_none(form, "schema", "output_config.format"))
