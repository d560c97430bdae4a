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
from ..shared.foreign_forms import has_foreign_members, is_foreign
from ..shared.foreign_history import HistoryReader, without_choice
from ..shared.media.data import from_text, from_url
from ..shared.requests import NO_SUMMARY
from ..shared.sealed_reasoning import WIRE_MARK, is_sealed, unseal
from ..shared.tool_lists import TOOL_LISTS
from .compaction import compaction_in
from .instructions import INSTRUCTION, with_settings
from .shapes import NAME
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
_BETA = "anthropic-beta"
_INSTRUCTIONS = ("system", "developer")
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_THINKING = frozenset({"type", "budget_tokens", "display"})
_OUTPUT = frozenset({"effort", "format"})
_DISPLAYS = {"summarized": "auto", "omitted": NO_SUMMARY}  # what the client wants to see of the thinking
_MESSAGE = frozenset({"role", "content"})
_TEXT = frozenset({"type", "text"})
_CALL = frozenset({"type", "id", "name", "input"})
_STREAMED = frozenset({"partial_json", "index"})  # left by clients that collect a stream
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
_RESULT_PARTS = frozenset({"search_result", "tool_reference", "image", "document", "container_upload"})
_OWN = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})  # in messages of the other role
THREAD_MEMBERS = ("system", "tools")  # fixed by the first request of a thread


def decode_request(body: bytes, headers: Mapping[str, str]) -> Request:
    return _request(body, headers, is_counting=False)


def decode_count_request(body: bytes, headers: Mapping[str, str]) -> Request:
    """A count_tokens request: the same body without the members that only an answer needs."""
    return _request(body, headers, is_counting=True)


def _request(body: bytes, headers: Mapping[str, str], *, is_counting: bool) -> Request:
    top = TOOL_LISTS.decode(body)
    model = need_name(top, "model", "")
    if "max_tokens" not in top and not is_counting:
        raise missing("max_tokens", "an integer of at least 1")
    reader = history_reader()
    try:
        head = system_in(top.get("system"))
    except BadRequest:
        top = {**top, "system": reader.head_text(top["system"], "system")}
        head = system_in(top["system"])
    found = _messages(top, reader)
    is_moved = _BETA not in headers and not {message.role for message in found}.isdisjoint(_INSTRUCTIONS)
    if is_moved:
        top, head, found = _without_system_messages(top, head, found, reader)
    thinking = _thinking(top)
    if any(message.role == "system" for message in found):
        found, thinking = with_settings(found, thinking)
    messages, tools = (*head, *found), tools_in(top)
    if not tools and "tool_choice" in top:
        top = without_choice(top, reader)
    choice = object_or_none(top, "tool_choice")
    metadata = object_or_none(top, "metadata")
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=_tool_choice(choice),
        parallel_calls=_parallel(choice),
        max_tokens=count_or_none(top, "max_tokens", least=1),
        sampling=_sampling(top),
        thinking=thinking,
        output=_output(top),
        stream=flag_or_none(top, "stream") or False,
        stream_usage=True,
        user=text_or_none(metadata, "user_id", "metadata") if metadata else None,
        metadata={key: value for key, value in metadata.items() if key != "user_id"} if metadata else None,
        state=state_in(top),
        compaction=compaction_in(top, body),
        repaired=tuple(reader.losses),
        extra=_extra(top),
        origin=NAME,
        source=top,
        # Seals are internal and must not reach a back end. A count request is sent as bytes, without sealed reasoning.
        wire=encode(_unsealed(top)) if is_counting and WIRE_MARK in body else _wire(body, is_counting or not is_moved),
        headers=dict(headers),
    )


def _wire(body: bytes, is_sent: bool) -> bytes:
    return body if is_sent and WIRE_MARK not in body else b""


def _extra(top: JsonObject) -> Extra:
    """Members that are not read, also of those that are read in part."""
    found = rest(top, _KNOWN, NAME).get(NAME, {})
    found = {**found, **unread(top, "thinking", _THINKING), **unread(top, "output_config", _OUTPUT)}
    return {NAME: found} if found else {}


def _unsealed(top: JsonObject) -> JsonObject:
    """The same messages without sealed reasoning."""
    messages = []
    for item in top["messages"]:
        content: Any = item.get("content") if isinstance(item, dict) else item
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


def _messages(top: JsonObject, reader: HistoryReader) -> tuple[Message, ...]:
    given = top.get("messages")
    found = list(messages_in(given if isinstance(given, list) else reader.listed(top, "messages"), reader))
    if not found and not is_continuing(top):  # a paused turn continues without a new message
        if not top.get("system"):
            raise BadRequest("it is empty; expected at least one message.", where="messages")
        found.append(reader.opening("messages"))
    return tuple(found)


def _without_system_messages(
    top: JsonObject, head: tuple[Message, ...], messages: tuple[Message, ...], reader: HistoryReader
) -> tuple[JsonObject, tuple[Message, ...], tuple[Message, ...]]:
    """Only newer versions of the API have instructions among the messages. The first ones become the system prompt; the others
    have no source, and become notes where they are."""
    count = 0
    while count < len(messages) and messages[count].role in _INSTRUCTIONS and not messages[count].declares_tools:
        count += 1
    texts = [part for message in messages[:count] for part in message.parts if isinstance(part, Text)]
    if texts and count < len(messages):
        reader.note("role", "messages[0].role", "instructions before the first message are part of the system prompt")
        given = top.get("system") or []
        given = [{"type": "text", "text": given}] if isinstance(given, str) else given
        top = {**top, "system": [*given, *({"type": "text", "text": part.text} for part in texts if part.text)]}
        head, messages = system_in(top["system"]), messages[count:]
    return (
        top,
        head,
        tuple(
            replace(message, source=None) if message.role in _INSTRUCTIONS and not message.declares_tools else message
            for message in messages
        ),
    )


def messages_in(items: list[Any], reader: HistoryReader) -> Iterator[Message]:
    for index, item in enumerate(items):
        try:
            yield message_in(item, f"messages[{index}]")
        except BadRequest as error:
            yield from reader.messages(item, f"messages[{index}]", error)


def history_reader() -> HistoryReader:
    return HistoryReader(NAME, _part, result_parts=_RESULT_PARTS, has_text_arguments=False)


def message_in(item: Any, where: str) -> Message:
    need_object(item, where)
    role = _ROLES.get(given := need_text(item, "role", where))
    if role is None:
        raise wrong(f"{where}.role", given, "one of user, assistant, system")
    if "content" not in item and not (role == "system" and "output_config" in item):
        raise missing(f"{where}.content", "a string or an array of blocks")
    if len(item) > 2 and has_foreign_members(item):
        raise wrong(where, "members of an answer", "members of a message")
    read = _assistant_part if role == "assistant" else _user_part
    parts = _content(item.get("content", ""), f"{where}.content", read)
    count = len(parts)
    if role == "system":  # tool changes are part of request.tools
        parts = tuple(part for part in parts if not isinstance(part, Opaque) or part.value["type"] not in CHANGES)
    return Message(
        role=role,
        parts=parts,
        declares_tools=len(parts) < count,
        extra=rest(item, INSTRUCTION if role == "system" else _MESSAGE, NAME),
        source=None if role == "assistant" and _has_seal(item.get("content")) else Source(NAME, item),
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


def _part(item: Any, where: str, role: Role) -> Part:
    return _assistant_part(item, where) if role == "assistant" else _user_part(item, where)


def _user_part(item: Any, where: str) -> Part:
    need_object(item, where)
    match need_text(item, "type", where):
        case "text":
            return Text(text=need_text(item, "text", where), extra=rest(item, _TEXT, NAME))
        case "tool_result":
            return _result(item, where)
        case "image" | "document" as kind:
            return _medium(item, kind, where)
        case other:
            return _other_part(item, other, where)


def _assistant_part(item: Any, where: str) -> Part:
    need_object(item, where)
    match need_text(item, "type", where):
        case "text":
            return Text(text=need_text(item, "text", where), extra=rest(item, _TEXT, NAME))
        case "tool_use":
            return _call(item, where)
        case "thinking":
            text, signature = need_text(item, "thinking", where), need_text(item, "signature", where)
            if signature and is_sealed(signature):
                return next(iter(unseal(signature, [text] if text else [])), Reasoning(text=text))
            return Reasoning(text=text, signature=signature or None)
        case "redacted_thinking":
            return Reasoning(text="", redacted=need_text(item, "data", where))
        case "image" | "document" as kind:
            return _medium(item, kind, where)
        case other:
            return _other_part(item, other, where)


def _other_part(item: JsonObject, kind: str, where: str) -> Part:
    """A part that only this dialect knows; those of other dialects are read in another way."""
    if is_foreign(item, _OWN):
        raise wrong(f"{where}.type", kind, "a block of this dialect")
    if kind.endswith("_tool_use"):
        need_name(item, "id", where)
        if "name" in item:
            need_name(item, "name", where)
        need_object(item.get("input", {}), f"{where}.input")
    elif kind.endswith("_tool_result"):
        need_name(item, "tool_use_id", where)
    return Opaque(dialect=NAME, value=item)


def _call(item: JsonObject, where: str) -> ToolCall:
    if "input" not in item:
        raise missing(f"{where}.input", "an object")
    args = need_object(item["input"], f"{where}.input")
    extra = rest(item, _CALL, NAME)
    if extra and not _STREAMED.isdisjoint(item):
        raise wrong(where, "members of a stream", "members of a block")
    return ToolCall(
        id=need_text(item, "id", where),
        name=need_name(item, "name", where),
        raw=encode(args).decode("utf-8"),
        args=args,
        extra=extra,
    )


def _result(item: JsonObject, where: str) -> ToolResult:
    content = item.get("content", "")
    parts: tuple[Part, ...]
    kept: tuple[Text | Media | Opaque, ...]
    if type(content) is str:
        parts = kept = (Text(text=content),) if content else ()
    else:
        parts = _content(content, f"{where}.content", _user_part)
        for part in parts:
            if type(part) is Opaque and part.value["type"] not in _RESULT_PARTS:
                raise wrong(f"{where}.content", part.value["type"], "a block of a result")
        kept = tuple(_in_words(part) for part in parts if isinstance(part, Text | Media | Opaque))
    if type(is_error := item.get("is_error", False)) is not bool:
        raise wrong(f"{where}.is_error", is_error, "true or false")
    return ToolResult(
        call_id=need_text(item, "tool_use_id", where),
        parts=kept,
        is_error=is_error,
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
