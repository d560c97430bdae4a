"""Gemini Interactions: steps in, each one a message of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import BadRequest
from ...types import Extra, JsonObject, Media, MediaKind, Message, Opaque, Part, Reasoning, Role, Source, Text, ToolCall
from ...types import ToolResult as Result
from ...wire.exact_json import encode
from ...wire.fields import flag_or_none, list_or_none, need_name, need_object, object_or_none, rest, text_or_none, wrong
from ..shared.foreign_history import HistoryReader
from ..shared.media.data import from_url
from ..shared.sealed_reasoning import sealed_in, unseal
from .shapes import NAME

_CONTENTS = frozenset({"text", "image", "audio", "video", "document"})
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "file", "document": "file"}
_TEXT = frozenset({"type", "text", "annotations"})
_MEDIA = frozenset({"type", "data", "uri", "mime_type"})
_CALL = frozenset({"type", "id", "name", "arguments"})
_RESULT = frozenset({"type", "call_id", "name", "result", "is_error"})
_CONTENT = frozenset({"type", "content"})


def steps_of(given: Any) -> list[Any]:
    """The input of a request as steps: a text, one content, several contents, or steps."""
    if given is None or given == "" or given == []:
        return []
    if isinstance(given, str):
        return [_user_step([{"type": "text", "text": given}])]
    listed = given if isinstance(given, list) else [given]
    if all(map(_is_content, listed)):
        return [_user_step(listed)]
    return [_user_step([item]) if _is_content(item) else item for item in listed]


def messages_in(steps: list[Any], history: HistoryReader) -> tuple[Message, ...]:
    """history reads what is not in the form of this dialect."""
    return tuple(_messages(steps, history))


def history_reader() -> HistoryReader:
    return HistoryReader(NAME, _only_part, has_text_arguments=False)


def _messages(steps: list[Any], history: HistoryReader) -> Iterator[Message]:
    for index, item in enumerate(steps):
        where = f"input[{index}]"
        try:
            message = _message(need_object(item, where), where)
        except BadRequest as error:
            yield from history.messages(item, where, error)
        else:
            yield message


def _is_content(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(kind := item.get("type"), str) and kind in _CONTENTS


def _user_step(contents: list[Any]) -> JsonObject:
    return {"type": "user_input", "content": contents}


def _message(step: JsonObject, where: str) -> Message:
    source = Source(NAME, step)
    match step.get("type"):
        case "user_input":
            return _content_message("user", step, where)
        case "model_output":
            return _content_message("assistant", step, where)
        case "thought":
            return Message(role="assistant", parts=tuple(_thought(step, where)), source=source)
        case "function_call":
            return Message(role="assistant", parts=(_call(step, where),), source=source)
        case "function_result":
            return Message(role="tool", parts=(_result(step, where),), source=source)
        case str(kind) if kind.endswith(("_call", "_result")):
            return Message(role="assistant", parts=(Opaque(dialect=NAME, value=step),), source=source)
        case kind:
            raise wrong(f"{where}.type", kind, "the type of a step")


def _content_message(role: Role, step: JsonObject, where: str) -> Message:
    given = step.get("content")
    contents = [{"type": "text", "text": given}] if isinstance(given, str) else list_or_none(step, "content", where)
    parts = tuple(_content(item, f"{where}.content[{index}]") for index, item in enumerate(contents or ()))
    return Message(role=role, parts=parts, extra=rest(step, _CONTENT, NAME), source=Source(NAME, step))


def _content(given: Any, where: str) -> Text | Media:
    item = need_object(given, where)
    kind = text_or_none(item, "type", where) or ("text" if "text" in item else "")
    if kind == "text":
        return Text(text=text_or_none(item, "text", where) or "", extra=rest(item, _TEXT, NAME))
    if kind not in _KINDS:
        raise wrong(f"{where}.type", kind, "one of text, image, audio, video, document")
    mime, extra = text_or_none(item, "mime_type", where) or "", rest(item, _MEDIA, NAME)
    if (data := text_or_none(item, "data", where)) is not None:
        return Media(kind=_KINDS[kind], mime=mime, data=data, extra=extra)
    return from_url(_KINDS[kind], need_name(item, "uri", where), mime=mime, extra=extra)


def _thought(step: JsonObject, where: str) -> list[Part]:
    """A signature that is no seal of ours belongs to the provider of this dialect, and is lost elsewhere."""
    summary = [_content(item, f"{where}.summary") for item in list_or_none(step, "summary", where) or ()]
    text = "".join(part.text for part in summary if isinstance(part, Text))
    signature = text_or_none(step, "signature", where) or ""
    if seal := sealed_in(signature):
        return [*unseal(seal, [text] if text else [])]
    extra: Extra = {NAME: {"signature": signature}} if signature else {}
    return [Reasoning(text=text, is_summary=True, extra=extra)] if text or signature else []


def _call(step: JsonObject, where: str) -> ToolCall:
    arguments = object_or_none(step, "arguments", where) or {}
    return ToolCall(
        id=need_name(step, "id", where),
        name=need_name(step, "name", where),
        raw=encode(arguments).decode("utf-8"),
        args=arguments,
        extra=rest(step, _CALL, NAME),
    )


def _result(step: JsonObject, where: str) -> Result:
    given = step.get("result")
    if given is None:
        parts: tuple[Text | Media, ...] = ()
    elif isinstance(given, list) and all(map(_is_content, given)):
        parts = tuple(_content(item, f"{where}.result[{index}]") for index, item in enumerate(given))
    else:
        parts = (Text(text=given if isinstance(given, str) else encode(given).decode("utf-8")),)
    return Result(
        call_id=need_name(step, "call_id", where),
        name=text_or_none(step, "name", where) or "",
        parts=parts,
        is_error=flag_or_none(step, "is_error", where) or False,
        extra=rest(step, _RESULT, NAME),
    )


def _only_part(item: Any, where: str, role: Role) -> Part:
    return _content(item, where)
