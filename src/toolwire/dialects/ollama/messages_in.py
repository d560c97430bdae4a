"""Ollama: messages in.

The API has ids of calls, but most clients drop them: the official Python library has no member for them, and Home Assistant returns
results with neither id nor name. Such results answer the open calls in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import JsonObject, Media, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ...wire.exact_json import encode
from ...wire.fields import list_or_none, need_name, need_object, object_or_none, rest, text_or_none, wrong
from ..shared.calls import CallPairs
from ..shared.foreign_history import HistoryReader
from ..shared.media.data import from_data
from ..shared.requests import split_result
from .shapes import NAME

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_MESSAGE = frozenset({"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"})
_RESULT = frozenset({"role", "content", "images", "tool_name", "tool_call_id", "name"})
_CALL = frozenset({"index", "name", "arguments"})


def messages_in(listed: list[Any], history: HistoryReader, pairs: CallPairs) -> tuple[Message, ...]:
    """history reads messages that are not in the form of this dialect."""
    return tuple(_paired(message, pairs) for message in _messages(listed, history))


def history_reader() -> HistoryReader:
    return HistoryReader(NAME, _part, has_text_arguments=False)


def images_in(item: JsonObject, where: str) -> list[Media]:
    images = list_or_none(item, "images", where) or []
    if not all(isinstance(image, str) for image in images):
        raise wrong(f"{where}.images" if where else "images", images, "an array of base64 strings")
    return [from_data("image", image) for image in images]


def _messages(listed: list[Any], history: HistoryReader) -> Iterator[Message]:
    for index, item in enumerate(listed):
        where = f"messages[{index}]"
        try:
            message = _message(need_object(item, where), where)
        except BadRequest as error:
            if error.where.endswith(".images"):
                raise
            yield from history.messages(item, where, error)
        else:
            yield message


def _message(item: JsonObject, where: str) -> Message:
    """Calls and results without an id have the id "" here."""
    given = text_or_none(item, "role", where) or ""
    role = _ROLES.get(given.lower())
    if role is None:
        raise wrong(f"{where}.role", given, "one of system, user, assistant, tool")
    texts = [Text(text=text)] if (text := text_or_none(item, "content", where)) else []
    if role == "tool":
        is_error, parts = split_result((*texts, *images_in(item, where)))
        result = ToolResult(
            call_id=text_or_none(item, "tool_call_id", where) or "",
            name=text_or_none(item, "tool_name", where) or text_or_none(item, "name", where) or "",
            parts=parts,
            is_error=is_error,
        )
        return Message(role=role, parts=(result,), extra=rest(item, _RESULT, NAME))
    found: list[Part] = []
    if role == "assistant" and (thought := text_or_none(item, "thinking", where)):
        found.append(Reasoning(text=thought))
    found += [*texts, *images_in(item, where)]
    calls = list_or_none(item, "tool_calls", where) or []
    if calls and role != "assistant":
        raise wrong(f"{where}.role", given, "assistant, because the message has calls")
    found += [_call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(calls)]
    return Message(role=role, parts=tuple(found), extra=rest(item, _MESSAGE, NAME))


def _call(given: Any, where: str) -> ToolCall:
    item = need_object(given, where)
    function = need_object(item.get("function"), f"{where}.function")
    arguments = object_or_none(function, "arguments", f"{where}.function") or {}
    return ToolCall(
        id=text_or_none(item, "id", where) or "",
        name=need_name(function, "name", f"{where}.function"),
        raw=encode(arguments).decode("utf-8"),
        args=arguments,
        extra=rest(function, _CALL, NAME),
    )


def _paired(message: Message, pairs: CallPairs) -> Message:
    if not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
        return message
    return replace(message, parts=tuple(_with_ids(message.parts, pairs)))


def _with_ids(parts: Iterable[Part], pairs: CallPairs) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, ToolCall):
            yield pairs.add(part if part.id else replace(part, id=pairs.next_id()))
        elif isinstance(part, ToolResult):
            yield replace(part, call_id=pairs.answered(part.call_id, part.name))
        else:
            yield part


def _part(item: Any, where: str, role: Role) -> Part:
    """This dialect has no parts, only texts."""
    if isinstance(item, str):
        return Text(text=item)
    raise wrong(where, item, "a string")
