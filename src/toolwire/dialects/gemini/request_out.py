"""Gemini: requests out. What this dialect cannot say is reworded or left out, and recorded as a loss."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from ...profiles import Profile
from ...types import (
    JsonObject,
    Loss,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from ...wire.exact_json import encode
from ..base import Encoded
from ..shared.instructions import as_note, split_head, with_listener
from ..shared.losses import foreign_members, lose_thinking
from ..shared.media.limits import check_size
from ..shared.media.policy import Courier, Takes
from ..shared.media.text import text_of
from ..shared.media.types import is_text
from ..shared.output_format import form_instruction
from .paths import path_of
from .request_options import choice_out, members
from .shapes import NAME, SIGNATURE, UNSIGNED, args_of, name_out

_AUDIO = frozenset({"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"})
_TAKES = Takes(
    has_text_files=True,
    image_schemes=frozenset({"https"}),
    file_schemes=frozenset({"https"}),
    has_any_url=True,
    audio_types=_AUDIO,
)
_LONG_NUMBER = re.compile(r"(?<![\d.])\d{16,}(?![\d.eE])")
_EXACT = 1 << 53  # the back end keeps numbers as doubles (H072)
_DIGITS = 16  # of that number


def encode_request(request: Request, profile: Profile) -> Encoded:
    losses: list[Loss] = []
    is_own = request.origin == NAME and bool(request.source)
    writer = _Writer(request, profile, losses, Courier(request, profile, NAME, _TAKES, losses))
    if is_own:
        body = dict(request.source)
        contents = [message for message in request.messages if not message.is_head]
    else:
        body = members(request, profile, losses)
        foreign_members(request, NAME, losses)
        head, contents = split_head(with_listener(request.messages, losses))
        if system := writer.system(head, _form(request, profile)):
            body["systemInstruction"] = {"parts": system}
    body["contents"] = writer.contents(contents)
    if not is_own or request.is_lowered:
        _offer(request, profile, body, losses)
    encoded = encode(body)
    return Encoded(path_of(request), encoded if is_own else check_size(encoded, profile), tuple(losses))


class _Writer:
    """Contents with alternating roles; the responses of a turn stand in one content, before all else in it (H042)."""

    def __init__(self, request: Request, profile: Profile, losses: list[Loss], courier: Courier) -> None:
        self._profile = profile
        self._losses = losses
        self._courier = courier
        self._names = _names_in(request.messages)
        self._signs = bool(profile.signing_models and re.search(profile.signing_models, request.model))
        self._out: list[JsonObject] = []
        self._made: list[JsonObject] = []
        self._grown: JsonObject | None = None  # the last content, if we made it and it may still grow

    def system(self, head: list[Message], form: str) -> list[JsonObject]:
        """form: what is said of the answer's form, last of all."""
        parts = [part for message in head for part in message.parts] + ([Text(text=form)] if form else [])
        return [part for part in self._parts(parts, "system", "the system prompt holds text only") if "text" in part]

    def contents(self, messages: list[Message]) -> list[JsonObject]:
        for index, message in enumerate(messages):
            self._message(message, f"messages[{index}]")
        for made in self._made:
            if made["role"] == "user":
                made["parts"].sort(key=_place)
            elif self._signs:
                self._mark_unsigned(made["parts"])
        return self._out

    def _message(self, message: Message, where: str) -> None:
        if message.source is not None and message.source.dialect == NAME:
            self._out.append(message.source.value)
            self._grown = None
            return
        role = "model" if message.role == "assistant" else "user"
        only_text = "an assistant message holds text only" if role == "model" else ""
        parts = self._parts(message.parts, where, only_text)
        if message.role in ("system", "developer") and parts:
            text = "\n".join(str(part["text"]) for part in parts if "text" in part)
            parts = [{"text": as_note(text, where, self._losses)}, *(part for part in parts if "text" not in part)]
        if not parts:
            return
        own = message.extra.get(NAME, {})
        if self._grown is None or self._grown["role"] != role:
            self._grown = {"role": role, "parts": []}
            self._made.append(self._grown)
            self._out.append(self._grown)
        self._grown |= own
        self._grown["parts"] += parts

    def _mark_unsigned(self, parts: list[JsonObject]) -> None:
        """The first call of a turn needs a signature (H074). One that another model made has none, and never gets one: it is told
        by the provider's own word for that."""
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and SIGNATURE not in first:
            first[SIGNATURE] = UNSIGNED
            self._losses.append(Loss("signature", "messages", "a call of another model has none, and is marked so"))

    def _parts(self, parts: Iterable[Part], where: str, only_text: str = "") -> list[JsonObject]:
        pieces = self._courier.parts(parts, where, only_text)
        return [written for piece in pieces for written in self._part(piece, where)]

    def _part(self, part: Part, where: str) -> list[JsonObject]:
        own = part.extra.get(NAME, {})
        match part:
            case Text() | Refusal():
                return [{"text": part.text, **own}] if part.text.strip() else []
            case ToolCall():
                return [self._call(part, where)]
            case ToolResult():
                return self._response(part, where)
            case Media():
                return [_medium(part)]
            case Reasoning() if NAME in part.extra and (part.text or part.encrypted):
                thought: JsonObject = {"text": part.text}
                if part.text:
                    thought["thought"] = True
                return [{**thought, **({SIGNATURE: part.encrypted} if part.encrypted else {}), **own}]
            case Reasoning():
                lose_thinking(part, where, self._losses)
                return []
            case Opaque():  # other dialects' are words by now
                return [part.value]
            case _:
                assert_never(part)

    def _call(self, call: ToolCall, where: str) -> JsonObject:
        if any(len(digits) > _DIGITS or int(digits) > _EXACT for digits in _LONG_NUMBER.findall(call.raw)):
            self._losses.append(Loss("number", where, "a whole number beyond 2^53 in a call may lose its last digits"))
        value: JsonObject = {"name": name_out(call.name), "args": args_of(call)}
        if self._profile.has_call_ids:
            value = {"id": call.id, **value}
        return _with_members("functionCall", value, call.extra.get(NAME, {}))

    def _response(self, result: ToolResult, where: str) -> list[JsonObject]:
        """What it says is text, so that no digit of it is lost; media stand behind the responses, where every model sees them."""
        parts = self._courier.parts(result.parts, where)
        media = [_medium(part) for part in parts if isinstance(part, Media)]
        said = text_of(tuple(part for part in parts if not isinstance(part, Media)), where, self._losses)
        name = self._names.get(result.call_id) or result.name or "unknown"
        value: JsonObject = {"name": name_out(name), "response": {"error" if result.is_error else "output": said}}
        if self._profile.has_call_ids:
            value = {"id": result.call_id, **value}
        written = _with_members("functionResponse", value, result.extra.get(NAME, {}))
        if not media:
            return [written]
        self._losses.append(Loss("result.media", where, "it stands behind the responses, which hold text only here"))
        label = {"text": f"Attachment(s) of the result of {name} ({result.call_id}):"}
        return [written, label, *media]


def _form(request: Request, profile: Profile) -> str:
    """A schema of the answer, for a back end that takes no JSON Schema."""
    if request.output.format != "schema" or profile.has_json_schemas:
        return ""
    return form_instruction(request.output, has_tools=bool(request.tools))


def _names_in(messages: tuple[Message, ...]) -> dict[str, str]:
    calls = (part for message in messages for part in message.parts if isinstance(part, ToolCall))
    return {call.id: call.name for call in calls}


def _with_members(key: str, value: JsonObject, own: JsonObject) -> JsonObject:
    """A part, with what came beside what it holds and inside it."""
    inner = own.get(key)
    return {**own, key: {**value, **(inner if isinstance(inner, dict) else {})}}


def _place(part: JsonObject) -> int:
    return 0 if "functionResponse" in part else 1


def _medium(media: Media) -> JsonObject:
    """A medium that may go as it is, in the form that this dialect has for it."""
    own = media.extra.get(NAME, {})
    if media.url is not None or media.file_id is not None:
        value = {"fileUri": media.url or media.file_id}
        return {"fileData": {**value, **({"mimeType": media.mime} if media.mime else {})}, **own}
    mime = "text/plain" if is_text(media.mime) else media.mime
    return {"inlineData": {"mimeType": mime, "data": media.data}, **own}


def _offer(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    """Tools, and the choice among them, written anew; without tools neither stands there (H063)."""
    config = body.pop("toolConfig", None) or body.pop("tool_config", None) or {}
    for key in ("tools", "functionCallingConfig"):
        body.pop(key, None)
    tools = _offered(request)
    losses += [
        Loss("tool.strict", f'tools "{tool.name[:60]}"', "this dialect keeps to schemas loosely")
        for tool in tools
        if tool.strict and request.origin != NAME
    ]
    if declared := [_declaration(tool, profile) for tool in tools if tool.kind != "hosted"]:
        body["tools"] = [{"functionDeclarations": declared}]
        choice = choice_out(request.tool_choice, losses)
        if choice is not None:
            config = {**config, "functionCallingConfig": {**config.get("functionCallingConfig", {}), **choice}}
    if hosted := [tool.source.value for tool in tools if tool.kind == "hosted" and tool.source is not None]:
        body["tools"] = [*body.get("tools", []), *hosted]
    if config and body.get("tools"):
        body["toolConfig"] = config


def _offered(request: Request) -> tuple[Tool, ...]:
    """A choice among some tools, of which none must be called, is said by offering only those."""
    choice = request.tool_choice
    if choice is None or choice.mode != "allowed" or choice.is_required:
        return request.tools
    return tuple(tool for tool in request.tools if tool.name in choice.names)


def _declaration(tool: Tool, profile: Profile) -> JsonObject:
    """Any schema is taken as JSON Schema (H060); in the older form one without properties is refused, and left out (H067)."""
    if tool.source is not None and tool.source.dialect == NAME and tool.source.value.get("name") == tool.name:
        value: JsonObject = tool.source.value
        return value
    value = {"name": name_out(tool.name)}
    if tool.description:
        value["description"] = tool.description
    if tool.schema and (tool.schema.get("properties") or not _is_empty(tool.schema)):
        value["parametersJsonSchema" if profile.has_json_schemas else "parameters"] = tool.schema
    return value | tool.extra.get(NAME, {})


def _is_empty(schema: JsonObject) -> bool:
    """An object of which nothing is said: a function that takes nothing."""
    is_closed = schema.get("additionalProperties") in (None, False)
    return is_closed and schema.keys() <= {"type", "properties", "required", "additionalProperties", "$schema", "title"}
