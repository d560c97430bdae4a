"""Gemini: contents in, as messages.

Calls and their responses need no ids here: who has none is known by order. So each call gets an id that depends on its place alone,
and a response without an id, or with one that no call has, answers the first open call of its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import (
    Extra,
    JsonObject,
    Media,
    MediaKind,
    Message,
    Opaque,
    Part,
    Reasoning,
    Role,
    Source,
    Text,
    ToolCall,
    ToolResult,
)
from ...wire.exact_json import encode
from ...wire.fields import list_or_none, need_name, need_object, need_text, object_or_none, rest, text_or_none, wrong
from ..shared.calls import CallPairs
from ..shared.foreign_forms import has_foreign_members, is_foreign
from ..shared.foreign_history import HistoryReader
from ..shared.media.data import from_url
from ..shared.sealed_reasoning import sealed_in, unseal
from .shapes import NAME, SIGNATURE, camel

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user"}
_CONTENT = frozenset({"role", "parts"})
_TEXT = frozenset({"text", "thought"})
_CALL = frozenset({"id", "name", "args"})
_RESPONSE = frozenset({"id", "name", "response", "parts"})
_DATA = frozenset({"mimeType", "data", "displayName"})
_FILE = frozenset({"mimeType", "fileUri", "displayName"})
_SAID = ("output", "result")  # members that wrap the text of a response


def system_in(value: Any, where: str) -> tuple[Message, ...]:
    """Instructions are one content, or a text, or parts alone."""
    if value is None or value == "":
        return ()
    parts = _Reader().parts(_listed(value, where), where)
    return (Message(role="system", parts=parts, is_head=True, source=Source(NAME, value)),) if parts else ()


def contents_in(value: Any, history: HistoryReader) -> tuple[Message, ...]:
    """Empty if there are none. history: notes what is not in the form of this dialect."""
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list):
        raise wrong("contents", value, "an array of contents")
    reader = _Reader(value)
    try:
        return tuple(reader.content(item, f"contents[{index}]") for index, item in enumerate(value))
    except BadRequest:
        return tuple(_foreign_contents(value, history))


def _foreign_contents(value: list[Any], history: HistoryReader) -> Iterator[Message]:
    """The same, where some are not in the form of this dialect."""
    reader = _Reader(value)
    for index, item in enumerate(value):
        try:
            _Reader().content(item, f"contents[{index}]")
        except BadRequest as error:
            for message in history.messages(item, f"contents[{index}]", error):
                yield replace(message, parts=tuple(map(reader.adopt, message.parts)))
        else:
            yield reader.content(item, f"contents[{index}]")


def history_reader() -> HistoryReader:
    return HistoryReader(NAME, _only_part, has_text_arguments=False)


def _only_part(item: Any, where: str, role: Role) -> Part:
    found = _Reader().parts([need_object(item, where)], where)
    if len(found) != 1 or isinstance(found[0], ToolCall | ToolResult):  # their ids depend on their places
        raise wrong(where, item, "a part of its own")
    return found[0]


class _Reader:
    """contents: the whole history, whose calls may have the id of a result that came too early."""

    def __init__(self, contents: Sequence[Any] = ()) -> None:
        self._pairs = CallPairs(self._is_call)
        self._contents = contents
        self._ids: frozenset[str] | None = None

    def _is_call(self, call_id: str) -> bool:
        if self._ids is None:
            self._ids = frozenset(_call_ids(self._contents))
        return call_id in self._ids

    def content(self, given: Any, where: str) -> Message:
        item = camel(need_object(given, where))
        role = _ROLES.get(spelled := text_or_none(item, "role", where) or "user")
        if role is None:
            raise wrong(f"{where}.role", spelled, "one of user, model")
        extra = rest(item, _CONTENT, NAME)
        if extra and ("content" in item or has_foreign_members(extra[NAME])):
            raise wrong(where, item, "the members role and parts")
        count = self._pairs.count
        parts = self.parts(_listed(item, where), f"{where}.parts")
        if role != "assistant" and count != self._pairs.count:
            raise wrong(f"{where}.role", spelled, "model, because the content has calls")
        if role == "assistant" and any(type(part) is ToolResult for part in parts):
            raise wrong(f"{where}.role", spelled, "user, because the content has results")
        if "role" not in item and "parts" not in item and isinstance(parts[0] if parts else None, Opaque):
            raise wrong(where, given, "the members role and parts")
        is_ours = any(_is_sealed(part) for part in _listed(item, where))
        return Message(
            role=role,
            parts=parts,
            extra=extra,
            source=None if is_ours else Source(NAME, given),
        )

    def parts(self, given: list[Any], where: str) -> tuple[Part, ...]:
        found: list[Part] = []
        for index, item in enumerate(given):
            self._add(found, item, f"{where}[{index}]")
        return tuple(found)

    def _add(self, found: list[Part], given: Any, where: str) -> None:
        item = camel(need_object(given, where))
        if not item:
            raise wrong(where, given, "a part")
        if len(item) > 1 and "type" in item:
            raise wrong(where, item["type"], "a part without a type")
        if "functionCall" in item:
            found.append(self._call(item, where))
        elif "functionResponse" in item:
            found.append(self._response(item, where))
        elif item.get("thought") is True:
            _add_thought(found, item, where)
        elif "text" in item:
            _add_text(found, item, where)
        elif "inlineData" in item or "fileData" in item:
            found.append(_medium(item, where))
        else:
            if is_foreign(item):
                raise wrong(where, item, "a part of this dialect")
            found.append(Opaque(dialect=NAME, value=item))

    def adopt(self, part: Part) -> Part:
        """A part in another form, with the id that its place gives it."""
        if isinstance(part, ToolCall):
            part = self._pairs.add(part if part.id else replace(part, id=self._pairs.next_id()))
        elif isinstance(part, ToolResult):
            part = replace(part, call_id=self._pairs.answered(part.call_id, part.name))
        return part

    def _call(self, item: JsonObject, where: str) -> ToolCall:
        value = camel(need_object(item["functionCall"], f"{where}.functionCall"))
        args = object_or_none(value, "args", f"{where}.functionCall") or {}
        call = ToolCall(
            id=text_or_none(value, "id", f"{where}.functionCall") or self._pairs.next_id(),
            name=need_name(value, "name", f"{where}.functionCall"),
            raw=encode(args).decode("utf-8"),
            args=args,
            extra=_extra(item, "functionCall", value, _CALL),
        )
        return self._pairs.add(call)

    def _response(self, item: JsonObject, where: str) -> ToolResult:
        where = f"{where}.functionResponse"
        value = camel(need_object(item["functionResponse"], where))
        name = need_name(value, "name", where)
        is_error, parts = _response_content(need_object(value.get("response"), f"{where}.response"))
        for index, piece in enumerate(list_or_none(value, "parts", where) or ()):
            part = _medium(camel(need_object(piece, f"{where}.parts[{index}]")), f"{where}.parts[{index}]")
            parts.append(part)
        return ToolResult(
            call_id=self._pairs.answered(text_or_none(value, "id", where) or "", name),
            parts=tuple(parts),
            is_error=is_error,
            name=name,
            extra=_extra(item, "functionResponse", value, _RESPONSE),
        )


def _call_ids(contents: Sequence[Any]) -> Iterator[str]:
    for content in contents:
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else ():
            call = camel(part).get("functionCall") if isinstance(part, dict) else None
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                yield call["id"]


def _listed(owner: Any, where: str) -> list[Any]:
    """The parts of a content, in any of the forms that the API takes."""
    if isinstance(owner, dict):
        owner = owner.get("parts") if "parts" in owner or "role" in owner else [owner] if owner else []
    if owner is None:
        return []
    if isinstance(owner, str | dict):
        return [owner]
    if not isinstance(owner, list):
        raise wrong(f"{where}.parts", owner, "an array of parts")
    return owner


def _extra(part: JsonObject, key: str, value: JsonObject, known: frozenset[str]) -> Extra:
    """Members that are not read: of the part, and under its own name those of what it holds."""
    members = {name: item for name, item in part.items() if name != key}
    inner = {name: item for name, item in value.items() if name not in known}
    found = members | ({key: inner} if inner else {})
    return {NAME: found} if found else {}


def _is_sealed(part: Any) -> bool:
    signature = camel(part).get(SIGNATURE) if isinstance(part, dict) else None
    return isinstance(signature, str) and bool(sealed_in(signature))


def _add_thought(found: list[Part], item: JsonObject, where: str) -> None:
    """A seal covers all the text of its reasoning, which streams send in pieces."""
    text, signature = text_or_none(item, "text", where) or "", text_or_none(item, SIGNATURE, where) or ""
    seal = sealed_in(signature)
    if not seal:
        if text or signature:
            extra: Extra = rest(item, _TEXT | {SIGNATURE}, NAME) or {NAME: {}}
            found.append(Reasoning(text=text, encrypted=signature or None, extra=extra))
        return
    while found and isinstance(before := found[-1], Reasoning) and not before.encrypted:
        text = before.text + text
        found.pop()
    found.extend(unseal(seal, [text] if text else []))


def _add_text(found: list[Part], item: JsonObject, where: str) -> None:
    """A signature without text belongs to the text before it, or to the part that follows."""
    text, signature = need_text(item, "text", where), text_or_none(item, SIGNATURE, where)
    if text:
        found.append(Text(text=text, extra=rest(item, _TEXT, NAME)))
    elif signature and found and isinstance(last := found[-1], Text):
        found[-1] = replace(last, extra={NAME: {**last.extra.get(NAME, {}), SIGNATURE: signature}})
    elif signature:
        found.append(Reasoning(text="", encrypted=signature, extra={NAME: {}}))


def _response_content(response: JsonObject) -> tuple[bool, list[Text | Media | Opaque]]:
    """Whether it reports a failure, and its text: the wrapped text if there is nothing else, otherwise the response as JSON."""
    if not response:
        return False, []
    if len(response) == 1:
        ((key, value),) = response.items()
        if key == "error":
            return True, [Text(text=_words(value))]
        if key in _SAID:
            return False, [Text(text=_words(value))]
    return False, [Text(text=encode(response).decode("utf-8"))]


def _words(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode("utf-8")


def _medium(item: JsonObject, where: str) -> Media | Opaque:
    key = "inlineData" if "inlineData" in item else "fileData"
    known, member = (_DATA, "data") if key == "inlineData" else (_FILE, "fileUri")
    if key not in item:
        return Opaque(dialect=NAME, value=item)
    value = camel(need_object(item[key], f"{where}.{key}"))
    given = need_text(value, member, f"{where}.{key}")
    mime = text_or_none(value, "mimeType", f"{where}.{key}") or ""
    inner = rest(value, known, NAME).get(NAME, {})
    outer = rest(item, frozenset({key}), NAME).get(NAME, {})
    extra: Extra = {NAME: {**inner, **outer}} if inner or outer else {}
    name = text_or_none(value, "displayName", f"{where}.{key}") or ""
    if member == "data":
        return Media(kind=_kind(mime), mime=mime, data=given, name=name, extra=extra)
    if "/files/" in given and "generativelanguage" in given[:60]:  # only the provider that keeps it can open it
        return Media(kind=_kind(mime), mime=mime, file_id=given, name=name, extra=extra)
    return from_url(_kind(mime), given, mime=mime, name=name, extra=extra)


def _kind(mime: str) -> MediaKind:
    main = mime.partition("/")[0]
    return "image" if main == "image" else "audio" if main == "audio" else "file"
