"""Anthropic Messages: requests in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from ...wire.exact_json import encode
from ...wire.fields import (
    body_object,
    count_or_none,
    flag_or_none,
    list_or_none,
    missing,
    need_list,
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
from ..shared.media.data import from_text, from_url
from ..shared.requests import CACHE_HINT, NO_SUMMARY
from ..shared.sealed_reasoning import WIRE_MARK, is_sealed, unseal
from .shapes import NAME
from .typed_tools import schema_for

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
CHANGES = ("tool_addition", "tool_removal")  # blocks without content that change which tools exist
_TOOL = frozenset({"name", "description", "input_schema", "type", "strict", "defer_loading"})
THREAD_MEMBERS = ("system", "tools")  # fixed by the first request of a thread


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    return _request(body, headers, is_counting=False)


def decode_count_request(body: bytes, headers: Mapping[str, str]) -> Request:
    """A count_tokens request: the same body without the members that only an answer needs."""
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
        # Seals are internal and must not reach a back end. A count request is sent as bytes, without sealed reasoning.
        wire=body if WIRE_MARK not in body else encode(_unsealed(top)) if is_counting else b"",
        headers=dict(headers),
    )


def _extra(top: JsonObject) -> Extra:
    """Members that are not read, also of those that are read in part."""
    found = rest(top, _KNOWN, NAME).get(NAME, {})
    found = {**found, **unread(top, "thinking", _THINKING), **unread(top, "output_config", _OUTPUT)}
    return {NAME: found} if found else {}


def _unsealed(top: JsonObject) -> JsonObject:
    """The same messages without sealed reasoning."""
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
    if not items and not is_continuing(top):  # a paused turn continues without a new message
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
    if role == "system":  # tool changes are part of request.tools
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
    """A tool that a search has found is in request.tools; models without references get a text."""
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
        **numbers(top, "temperature", "top_p"),
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


def _output(top: JsonObject) -> OutputFormat:
    config = object_or_none(top, "output_config") or {}
    form = object_or_none(config, "format", "output_config")
    if form is None or form.get("type") != "json_schema":
        return OutputFormat()
    return OutputFormat(format="schema", name="answer", schema=object_or_none(form, "schema", "output_config.format"))


def tools_in(top: JsonObject) -> tuple[Tool, ...]:
    """A deferred tool is hidden until a reference in the conversation loads it. If the provider would search
    itself, all tools are visible, because no other back end can search."""
    listed = list_or_none(top, "tools") or []
    found = {tool.name: tool for index, item in enumerate(listed) for tool in [_tool(item, f"tools[{index}]")]}
    for block in _changes(top):
        _apply(block, found)
    if any(tool.kind == "hosted" and _type(tool).startswith("tool_search_tool") for tool in found.values()):
        found = {name: _shown(tool) for name, tool in found.items()}
    return tuple(found.values())


def _type(tool: Tool) -> str:
    return str(tool.source.value.get("type")) if tool.source is not None else ""


def _changes(top: JsonObject) -> Iterator[JsonObject]:
    """Blocks that load, add or remove a tool, in order: references in results, changes in system messages."""
    messages = top.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if not isinstance(block, dict):
                continue
            if block.get("type") in CHANGES:
                yield block
            elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                yield from (piece for piece in block["content"] if isinstance(piece, dict))


def _apply(block: JsonObject, found: dict[str, Tool]) -> None:
    match block:
        case {"type": "tool_reference", "tool_name": str(name)}:
            _load(name, found)
        case {"type": "tool_addition", "tool": {"type": "tool_reference", "name": str(name)}}:
            _load(name, found)
        case {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": dict(definition)}}:
            tool = _shown(_tool(definition, "tool_addition.tool.definition"))
            found[tool.name] = tool
        case {"type": "tool_removal", "tool": {"type": "tool_reference", "name": str(name)}}:
            found.pop(name, None)


def _load(name: str, found: dict[str, Tool]) -> None:
    if name in found:
        found[name] = _shown(found[name])


def _shown(tool: Tool) -> Tool:
    if not tool.is_deferred:
        return tool
    members = {field: getattr(tool, field) for field in tool.__struct_fields__}
    return Tool(**members | {"is_deferred": False})


def _tool(item: Any, where: str) -> Tool:
    need_object(item, where)
    kind = text_or_none(item, "type", where)
    if kind not in (None, "custom"):
        return _builtin(item, str(kind))
    name = need_name(item, "name", where)
    if "input_schema" not in item:
        raise missing(f"{where}.input_schema", "an object")
    return Tool(
        name=name,
        description=text_or_none(item, "description", where),
        schema=need_object(item["input_schema"], f"{where}.input_schema"),
        strict=flag_or_none(item, "strict", where),
        is_deferred=flag_or_none(item, "defer_loading", where) or False,
        extra=rest(item, _TOOL, NAME),
        source=Source(NAME, item),
    )


def _builtin(item: JsonObject, kind: str) -> Tool:
    """A tool known by its type. One that the client runs has a schema for any model; others are hosted by the provider."""
    given = item.get("name")
    name = given if isinstance(given, str) and given else kind
    told = schema_for(kind, item)
    if told is None:
        return Tool(name=name, kind="hosted", source=Source(NAME, item))
    return Tool(
        name=name,
        description=told.description,
        schema=told.schema,
        kind="typed",
        is_deferred=item.get("defer_loading") is True,
        extra={NAME: {CACHE_HINT: item[CACHE_HINT]}} if CACHE_HINT in item else {},
        source=Source(NAME, item),
    )


def state_in(top: JsonObject) -> State | None:
    """The refusal of a back end without threads makes the official tool runners send the whole history again."""
    thread = object_or_none(top, "thread")
    if thread is None:
        return None
    details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    why = "this back end stores no threads"
    state = State(field="thread", why=why, refusal={"details": details}, is_leaning=True, is_kept=True)
    match need_text(thread, "type", "thread"):
        case "create":
            return state
        case "continue":
            previous = need_name(thread, "previous_message_id", "thread")
            for name in THREAD_MEMBERS:
                _refuse(top, name)
            return replace(state, previous=previous)
        case other:
            raise wrong("thread.type", other, "create or continue")


def is_continuing(top: JsonObject) -> bool:
    thread = top.get("thread")
    return isinstance(thread, dict) and thread.get("type") == "continue"


def _refuse(top: JsonObject, name: str) -> None:
    if top.get(name):
        message = "found it in a request that continues a thread; expected it only in the one that creates the thread."
        raise BadRequest(message, where=name)
