"""OpenAI Responses: input items in, each one message of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import Extra, JsonObject, Media, Message, Opaque, Part, Refusal, Role, Source, Text, ToolCall, ToolResult
from ...wire.fields import missing, need_name, need_object, need_text, rest, text_or_none, wrong
from ..shared.foreign_forms import (
    CHAT_MEMBERS,
    LEFTOVERS,
    has_foreign_members,
    is_foreign,
    is_foreign_item,
    is_thought,
)
from ..shared.foreign_history import HistoryReader
from ..shared.media.data import from_data, from_url
from ..shared.requests import split_result
from ..shared.sealed_reasoning import is_sealed, unseal
from .shapes import NAME, call_in, reasoning_in, thoughts_in
from .typed_tools import is_typed, typed_call, typed_result

_MADE = ("_call", "program")  # items of an answer, by the end of their type
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "developer"}
_MESSAGE = frozenset({"type", "role", "content", "id", "status"})
_RESULT = frozenset({"type", "call_id", "output", "id", "status"})
_STATUSES = ("completed", "in_progress", "incomplete")
_REASONING = frozenset({"summary", "content", "encrypted_content"})
_SAYING = frozenset({"role", "content", "call_id", "name", "arguments", "output", "summary"})
_TEXT = frozenset({"type", "text"})
_LISTED = frozenset({"annotations", "logprobs"})
_IMAGE = frozenset({"type", "detail", "file_id", "image_url"})
_FILE = frozenset({"type", "filename", "file_id", "file_url", "file_data"})
_AUDIO = frozenset({"type", "input_audio"})
_TEXTS: dict[Role, str] = {"user": "input_text", "system": "input_text", "developer": "input_text", "assistant": "output_text"}  # fmt: skip
_ITEM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
_RESULT_ID = re.compile(r"(fc|ctc)[a-zA-Z0-9_-]{0,61}\Z")
_FOREIGN = (LEFTOVERS - {"id"}) | CHAT_MEMBERS | {"role", "content"}  # members that no call and no result has
_IDS = {kind: re.compile(f"{prefix}[a-zA-Z0-9_-]{{0,{64 - len(prefix)}}}\\Z") for kind, prefix in _PREFIXES.items()}


def is_reference(item: Any) -> bool:
    """The type may be missing: nothing else consists of an id only."""
    return isinstance(item, dict) and (
        item.get("type") == "item_reference" or (item.get("type") is None and "id" in item and _SAYING.isdisjoint(item))
    )


def history_reader() -> HistoryReader:
    return HistoryReader(NAME, _any_part, members=("phase",), keeps_thoughts=False)


def messages_in(items: list[Any], reader: HistoryReader, where: str = "input") -> Iterator[Message]:
    """Items after reasoning that could not be read lose their ids: the provider refuses them without it."""
    has_lost = False
    for index, item in enumerate(items):
        try:
            message = message_in(item, f"{where}[{index}]")
        except BadRequest as error:
            if (typed := _typed_without_id(item)) is not None:
                reader.note("form", error.where, "a call or result without an id is sent as that of a function")
                yield typed
                continue
            yield from reader.messages(item, f"{where}[{index}]", error)
            has_lost = has_lost or is_thought(item)
        else:
            if has_lost:
                has_lost = message.role in ("assistant", "tool")
                message = _without_id(message) if message.role == "assistant" else message
            yield message


def _without_id(message: Message) -> Message:
    """A call of a typed tool becomes one of a function: its own item needs an id."""
    parts = tuple(map(_new, message.parts))
    return message if parts == message.parts else message.with_parts(parts)


def _new(part: Part) -> Part:
    if isinstance(part, ToolCall):
        return replace(part, item_id="", **({"kind": "function", "extra": {}} if part.kind == "typed" else {}))
    return replace(part, item_id="") if isinstance(part, Text | Refusal) else part


def _typed_without_id(item: Any) -> Message | None:
    """A call or result of a tool with items of its own that lacks its ids; the ledger pairs it by order."""
    if not isinstance(item, dict):
        return None
    call_id = item.get("call_id")
    known = {**item, "call_id": call_id if isinstance(call_id, str) and call_id else "?", "id": ""}
    if (call := typed_call(known)) is not None:
        call = replace(call, id=call.id.removeprefix("?"), kind="function", item_id="")
        return Message(role="assistant", parts=(call,))
    if (result := typed_result(known)) is not None:
        result = replace(result, call_id=result.call_id.removeprefix("?"), kind="function")
        return Message(role="tool", parts=(result,))
    return None


def message_in(item: Any, where: str) -> Message:
    need_object(item, where)
    kind = text_or_none(item, "type", where)
    source = Source(NAME, item)
    match kind:
        case None if is_reference(item):
            return Message(role="user", parts=(Opaque(dialect=NAME, value=item),), source=source)
        case None | "message":
            if kind is None and "type" in item:
                raise wrong(f"{where}.type", None, "message")
            return _message(item, where, source)
        case "function_call" | "custom_tool_call":
            need_name(item, "call_id", where)
            need_name(item, "name", where)
            need_text(item, "input" if kind == "custom_tool_call" else "arguments", where)
            if "id" in item:
                need_item_id(item, kind, where)
            _check_status(item, where)
            _check_members(item, where)
            made = call_in(item)
            if kind == "function_call" and not item["arguments"].strip():  # some servers refuse that in a history
                made = replace(made, raw="", args=None)
            return Message(role="assistant", parts=(made,), source=source)
        case "function_call_output" | "custom_tool_call_output":
            return Message(role="tool", parts=(_result(item, kind, where),), source=source)
        case "reasoning":
            if _REASONING.isdisjoint(item) or not isinstance(item.get("summary", []), list):
                raise missing(f"{where}.summary", "an array of texts")
            if "id" in item:
                need_item_id(item, kind, where)
            if is_sealed(seal := item.get("encrypted_content")):
                return Message(role="assistant", parts=tuple(unseal(seal, thoughts_in(item))))
            return Message(role="assistant", parts=tuple(reasoning_in(item)), source=source)
        case "additional_tools" | "configuration_update":  # tools_in() or settings_in() reads it; it has no content
            return Message(role="developer", parts=(), declares_tools=True, source=source)
        case _:
            if (call := typed_call(item)) is not None:
                if "id" in item and not (isinstance(item["id"], str) and _ITEM_ID.match(item["id"])):
                    raise wrong(f"{where}.id", item["id"], "an id of at most 64 letters, digits, _ and -")
                return Message(role="assistant", parts=(call,), source=source)
            if (result := typed_result(item)) is not None:
                return Message(role="tool", parts=(result,), source=source)
            if is_foreign_item(item, kind):
                raise wrong(f"{where}.type", kind, "an item of this dialect")
            if is_typed(kind) and item.get("execution") != "server":
                raise wrong(f"{where}.call_id", item.get("call_id"), "a non-empty string")
            part = Opaque(dialect=NAME, value=item)
            role: Role = "tool" if kind.endswith("_output") else "assistant" if kind.endswith(_MADE) else "user"
            return Message(role=role, parts=(part,), source=source)


def _message(item: JsonObject, where: str, source: Source) -> Message:
    role = _ROLES.get(given := need_text(item, "role", where))
    if role is None:
        raise wrong(f"{where}.role", given, "one of user, assistant, system, developer")
    if "content" not in item:
        raise missing(f"{where}.content", "a string or an array of parts")
    item_id = need_item_id(item, "message", where) if "id" in item else ""
    _check_status(item, where)
    extra = rest(item, _MESSAGE, NAME)
    if extra and has_foreign_members(extra[NAME]):
        raise wrong(where, "members of another dialect", "members of a message")
    parts = _content(item["content"], f"{where}.content", item_id, _TEXTS[role])
    return Message(role=role, parts=parts, extra=extra, source=source)


def need_item_id(item: JsonObject, kind: str, where: str) -> str:
    """The id of an item. The provider refuses ids that it cannot have made."""
    given = item["id"]
    if isinstance(given, str) and _IDS[kind].match(given):
        return given
    raise wrong(f"{where}.id", given, f'an id that begins with "{_PREFIXES[kind]}"')


def _check_status(item: JsonObject, where: str) -> None:
    if "status" in item and item["status"] not in _STATUSES:
        raise wrong(f"{where}.status", item["status"], "completed, in_progress or incomplete")


def _check_members(item: JsonObject, where: str) -> None:
    if not _FOREIGN.isdisjoint(item):
        raise wrong(where, "members of a message", "members of a call or a result")


def _content(content: Any, where: str, item_id: str, text: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(text=content, item_id=item_id),)
    if not isinstance(content, list):
        raise wrong(where, content, "a string or an array of parts")
    return tuple(_part(piece, f"{where}[{index}]", item_id, text) for index, piece in enumerate(content))


def _any_part(piece: Any, where: str, role: Role) -> Part:
    return _part(piece, where, "", _TEXTS.get(role, "input_text"))


def _part(piece: Any, where: str, item_id: str, text: str) -> Part:
    """text: the type of texts in this place."""
    need_object(piece, where)
    kind = need_text(piece, "type", where)
    if kind == text:
        return Text(text=need_text(piece, "text", where), item_id=item_id, extra=_text_extra(piece))
    match kind:
        case "input_text" | "output_text":
            raise wrong(f"{where}.type", kind, text)
        case "refusal":
            return Refusal(text=need_text(piece, "refusal", where), item_id=item_id)
        case "input_image":
            return _image(piece, where)
        case "input_file":
            return _file(piece, where)
        case "input_audio":
            audio = need_object(piece.get("input_audio"), f"{where}.input_audio")
            form, data = text_or_none(audio, "format", where) or "wav", need_text(audio, "data", f"{where}.input_audio")
            return Media(kind="audio", mime=f"audio/{form}", data=data, extra=rest(piece, _AUDIO, NAME))
        case _:
            if is_foreign(piece):
                raise wrong(f"{where}.type", kind, "a part of this dialect")
            return Opaque(dialect=NAME, value=piece)


def _text_extra(piece: JsonObject) -> Extra:
    """Members of a text; servers send empty lists of annotations and log probabilities, too."""
    if piece.keys() <= _TEXT:
        return {}
    found = {key: value for key, value in piece.items() if key not in _TEXT and (value or key not in _LISTED)}
    return {NAME: found} if found else {}


def _image(piece: JsonObject, where: str) -> Part:
    detail, extra = text_or_none(piece, "detail", where), rest(piece, _IMAGE, NAME)
    if (file_id := text_or_none(piece, "file_id", where)) is not None:
        return Media(kind="image", file_id=file_id, detail=detail, extra=extra)
    url = piece.get("image_url")
    if isinstance(url, dict):  # seen from clients that follow the Chat shape
        url = url.get("url")
    if not isinstance(url, str):
        raise wrong(f"{where}.image_url", url, "a string")
    return from_url("image", url, detail=detail, extra=extra)


def _file(piece: JsonObject, where: str) -> Part:
    name, extra = text_or_none(piece, "filename", where) or "", rest(piece, _FILE, NAME)
    if (file_id := text_or_none(piece, "file_id", where)) is not None:
        return Media(kind="file", file_id=file_id, name=name, extra=extra)
    if (url := text_or_none(piece, "file_url", where)) is not None:
        return from_url("file", url, name=name, extra=extra)
    return from_data("file", need_text(piece, "file_data", where), name=name, extra=extra)


def _result(item: JsonObject, kind: str, where: str) -> ToolResult:
    output = item.get("output")
    if output is None:
        raise missing(f"{where}.output", "a string or an array of parts")
    _check_status(item, where)
    _check_members(item, where)
    if "id" in item and not _RESULT_ID.match(need_text(item, "id", where)):
        raise wrong(f"{where}.id", item["id"], 'an id that begins with "fc"')
    is_error, kept = split_result((Text(text=output),) if isinstance(output, str) else _output(output, where))
    return ToolResult(
        call_id=need_name(item, "call_id", where),
        parts=kept,
        is_error=is_error or item.get("status") == "incomplete",
        kind="custom" if kind == "custom_tool_call_output" else "function",
        item_id=text_or_none(item, "id", where) or "",
        extra=rest(item, _RESULT, NAME),
    )


def _output(output: Any, where: str) -> tuple[Text | Media, ...]:
    parts = _content(output, f"{where}.output", "", "input_text")
    for part in parts:
        if not isinstance(part, Text | Media):
            raise wrong(f"{where}.output", type(part).__name__, "text, images and files")
    return tuple(part for part in parts if isinstance(part, Text | Media))
