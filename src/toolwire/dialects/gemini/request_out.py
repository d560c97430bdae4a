"""Gemini: requests out. What this dialect cannot express is reworded or dropped, and recorded as a loss."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, assert_never
from urllib.parse import quote

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
    ToolChoice,
    ToolResult,
)
from ...wire.exact_json import encode, object_of
from ..base import Encoded
from ..shared.calls import arguments_of
from ..shared.media.policy import MediaAdapter, MediaSupport, check_size
from ..shared.media.text import text_of
from ..shared.media.types import is_text
from ..shared.requests import (
    NO_SUMMARY,
    as_note,
    foreign_members,
    form_instruction,
    lose_thinking,
    split_head,
    with_listener,
)
from .shapes import GENERATE, NAME, SIGNATURE, STREAM, UNSIGNED, camel, name_out

_AUDIO = frozenset({"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"})
_MEDIA = MediaSupport(
    has_text_files=True,
    image_schemes=frozenset({"https"}),
    file_schemes=frozenset({"https"}),
    has_any_url=True,
    audio_types=_AUDIO,
)
_LONG_NUMBER = re.compile(r"(?<![\d.])\d{16,}(?![\d.eE])")
_EXACT = 1 << 53  # the back end keeps numbers as doubles (H072)
_DIGITS = 16  # of that number
_LEVELS = {"none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}
_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
_MOST_STOPS = 5
_MOST_SEED = 1 << 31
_MOST_LOGPROBS = 20


def path_of(request: Request) -> str:
    """Streams are requested as server-sent events; without alt=sse they would be one long JSON array."""
    model, method = request.model, f"{STREAM}?alt=sse" if request.stream else GENERATE
    folder, _, name = (model if model.startswith(("models/", "tunedModels/")) else f"models/{model}").partition("/")
    return f"/v1beta/{folder}/{quote(name, safe='')}:{method}"


def encode_request(request: Request, profile: Profile) -> Encoded:
    losses: list[Loss] = []
    is_own = request.origin == NAME and bool(request.source)
    writer = _Writer(request, profile, losses, MediaAdapter(request, profile, NAME, _MEDIA, losses))
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
    if not is_own or request.has_new_tools:
        _offer(request, profile, body, losses)
    encoded = encode(body)
    return Encoded(path_of(request), encoded if is_own else check_size(encoded, profile), tuple(losses))


class _Writer:
    """Contents with alternating roles; the responses of a turn are in one content, before its other parts (H042)."""

    def __init__(self, request: Request, profile: Profile, losses: list[Loss], media: MediaAdapter) -> None:
        self._profile = profile
        self._losses = losses
        self._media = media
        self._names = _names_in(request.messages)
        self._signs = bool(profile.signing_models and re.search(profile.signing_models, request.model))
        self._out: list[JsonObject] = []
        self._made: list[JsonObject] = []
        self._grown: JsonObject | None = None  # the last content, if we made it and it may still grow

    def system(self, head: list[Message], form: str) -> list[JsonObject]:
        """form: an instruction about the output format, which comes last."""
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
        """The first call of a turn needs a signature (H074). A call of another model has none, and never gets one: it is marked
        with the provider's constant for that case."""
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and SIGNATURE not in first:
            first[SIGNATURE] = UNSIGNED
            self._losses.append(Loss("signature", "messages", "a call of another model has none, and is marked so"))

    def _parts(self, parts: Iterable[Part], where: str, only_text: str = "") -> list[JsonObject]:
        pieces = self._media.adapt_all(parts, where, only_text)
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
            case Opaque():  # those of other dialects are text by now
                return [part.value]
            case _:
                assert_never(part)

    def _call(self, call: ToolCall, where: str) -> JsonObject:
        if any(len(digits) > _DIGITS or int(digits) > _EXACT for digits in _LONG_NUMBER.findall(call.raw)):
            self._losses.append(Loss("number", where, "a whole number beyond 2^53 in a call may lose its last digits"))
        value: JsonObject = {"name": name_out(call.name), "args": arguments_of(call)}
        if self._profile.has_call_ids:
            value = {"id": call.id, **value}
        return _with_members("functionCall", value, call.extra.get(NAME, {}))

    def _response(self, result: ToolResult, where: str) -> list[JsonObject]:
        """Its content is text, so that numbers keep their digits; media follow the responses, where every model sees them."""
        parts = self._media.adapt_all(result.parts, where)
        media = [_medium(part) for part in parts if isinstance(part, Media)]
        said = text_of(tuple(part for part in parts if not isinstance(part, Media)), where, self._losses)
        name = self._names.get(result.call_id) or result.name or "unknown"
        value: JsonObject = {"name": name_out(name), "response": {"error" if result.is_error else "output": said}}
        if self._profile.has_call_ids:
            value = {"id": result.call_id, **value}
        written = _with_members("functionResponse", value, result.extra.get(NAME, {}))
        if not media:
            return [written]
        self._losses.append(Loss("result.media", where, "moved after the responses, which contain text only here"))
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
    """A medium in the form of this dialect."""
    own = media.extra.get(NAME, {})
    if media.url is not None or media.file_id is not None:
        value = {"fileUri": media.url or media.file_id}
        return {"fileData": {**value, **({"mimeType": media.mime} if media.mime else {})}, **own}
    mime = "text/plain" if is_text(media.mime) else media.mime
    return {"inlineData": {"mimeType": mime, "data": media.data}, **own}


def _offer(request: Request, profile: Profile, body: JsonObject, losses: list[Loss]) -> None:
    """Write the tools and the tool choice; without tools there is neither (H063)."""
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
    """A choice among some tools, of which none must be called, is expressed by offering only those."""
    choice = request.tool_choice
    if choice is None or choice.mode != "allowed" or choice.is_required:
        return request.tools
    return tuple(tool for tool in request.tools if tool.name in choice.names)


def _declaration(tool: Tool, profile: Profile) -> JsonObject:
    """Any schema is accepted as JSON Schema (H060); the older form refuses one without properties, so it is dropped (H067)."""
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
    """An object without properties: a function without parameters."""
    is_closed = schema.get("additionalProperties") in (None, False)
    return is_closed and schema.keys() <= {"type", "properties", "required", "additionalProperties", "$schema", "title"}


def members(request: Request, profile: Profile, losses: list[Loss]) -> JsonObject:
    config: JsonObject = {}
    _sampling(request, config, losses)
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    _output(request, profile, config, losses)
    _thinking(request, profile, config, losses)
    if request.parallel_calls is False and request.tools:
        losses.append(Loss("parallel_calls", "parallel_tool_calls", "this dialect cannot forbid several calls at once"))
    if request.user is not None:
        losses.append(Loss("user", "user", "not part of this dialect"))
    own = request.extra.get(NAME, {})
    body: JsonObject = {"contents": [], **own}
    more = own.get("generationConfig", {})
    if "thinkingConfig" in config and "thinkingConfig" in more:
        config["thinkingConfig"] = {**more["thinkingConfig"], **config["thinkingConfig"]}
    if config := {**more, **config}:
        body["generationConfig"] = config
    return body


def choice_out(choice: ToolChoice | None, losses: list[Loss]) -> JsonObject | None:
    if choice is None:
        return None
    names = [name_out(name) for name in choice.names]
    match choice.mode:
        case "auto" | "none":
            return {"mode": choice.mode.upper()}
        case "required":
            return {"mode": "ANY"}
        case "named":
            return {"mode": "ANY", "allowedFunctionNames": names}
        case "allowed":  # where none must be called, only these are offered
            return {"mode": "ANY", "allowedFunctionNames": names} if choice.is_required else {"mode": "AUTO"}
        case "hosted":
            losses.append(Loss("tool_choice", "tool_choice", "it names a tool that this dialect does not have"))
            return None
        case _:
            assert_never(choice.mode)


def _sampling(request: Request, config: JsonObject, losses: list[Loss]) -> None:
    sampling = request.sampling
    for key, value in (
        ("temperature", sampling.temperature),
        ("topP", sampling.top_p),
        ("topK", sampling.top_k),
        ("frequencyPenalty", sampling.frequency_penalty),
        ("presencePenalty", sampling.presence_penalty),
    ):
        if value is not None:
            config[key] = value
    if isinstance(sampling.seed, int) and -_MOST_SEED <= sampling.seed < _MOST_SEED:
        config["seed"] = sampling.seed
    elif sampling.seed is not None:
        losses.append(Loss("sampling.seed", "seed", "only whole numbers of 32 bits are taken"))
    if sampling.stop:
        config["stopSequences"] = list(sampling.stop[:_MOST_STOPS])
    if len(sampling.stop) > _MOST_STOPS:
        losses.append(Loss("sampling.stop", "stop", f"only {_MOST_STOPS} stop sequences are taken"))
    if sampling.choices > 1:
        config["candidateCount"] = sampling.choices
    if sampling.logprobs:
        config["responseLogprobs"] = True
        if sampling.top_logprobs:
            config["logprobs"] = min(sampling.top_logprobs, _MOST_LOGPROBS)
    elif sampling.top_logprobs:
        losses.append(Loss("sampling.top_logprobs", "top_logprobs", "log probabilities are not requested"))


def _output(request: Request, profile: Profile, config: JsonObject, losses: list[Loss]) -> None:
    output = request.output
    if output.format != "text":
        config["responseMimeType"] = "application/json"
    if output.format == "schema" and profile.has_json_schemas:
        config["responseJsonSchema"] = output.schema or {}
    elif output.format == "schema":
        losses.append(
            Loss("output.schema", "response_format", "requested by an instruction: the back end accepts no JSON Schema")
        )
    if output.description is not None:
        losses.append(Loss("output.description", "response_format", "not part of this dialect"))
    if output.verbosity is not None:
        losses.append(Loss("output.verbosity", "verbosity", "not part of this dialect"))


def _thinking(request: Request, profile: Profile, config: JsonObject, losses: list[Loss]) -> None:
    """By a level where the model has levels, else by a budget; models that do not think refuse both."""
    thinking = request.thinking
    if thinking is None:
        return
    if profile.plain_models and re.search(profile.plain_models, request.model):
        if thinking.mode != "off" and thinking.effort != "none":
            losses.append(Loss("thinking", "thinking", "this model does not think"))
        return
    is_off = thinking.mode == "off" or thinking.effort == "none"
    value: JsonObject = {} if is_off else {"includeThoughts": thinking.summary != NO_SUMMARY}
    if re.search(profile.level_models, request.model):
        if is_off or thinking.effort is not None:
            value["thinkingLevel"] = "minimal" if is_off else _LEVELS.get(thinking.effort or "", "high")
        elif thinking.budget is not None:
            value["thinkingLevel"] = level = _level_for(thinking.budget)
            losses.append(Loss("thinking.budget", "thinking", f"this model takes a level; it is {level}"))
    elif is_off:
        value["thinkingBudget"] = 0
    elif thinking.budget is not None:
        value["thinkingBudget"] = thinking.budget
    elif thinking.effort is not None:
        value["thinkingBudget"] = _BUDGETS.get(thinking.effort, _BUDGETS["high"])
    config["thinkingConfig"] = value


def _level_for(budget: int) -> str:
    """The lowest level whose own budget is no smaller."""
    return next((level for level in ("low", "medium") if budget <= _BUDGETS[level]), "high")


def without_signatures(body: bytes) -> bytes | None:
    """A request without the signatures of earlier turns, for a back end that refuses one; None if there are none. The first call of each
    turn is marked with the provider's constant for a call without a signature."""
    top = object_of(body.decode("utf-8", "replace")) or {}
    given = top.get("contents")
    if not isinstance(given, list):
        return None
    contents = [_without(content) for content in given]
    return None if contents == given else encode({**top, "contents": contents})


def _without(content: Any) -> Any:
    if not isinstance(content, dict) or not isinstance(parts := content.get("parts"), list):
        return content
    written = [_unsigned(part) for part in parts]
    if content.get("role") == "model":
        first = next((part for part in written if isinstance(part, dict) and "functionCall" in part), None)
        if first is not None:
            first[SIGNATURE] = UNSIGNED
    kept = [part for part in written if part != {"text": ""}]
    return {**content, "parts": kept}


def _unsigned(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    members: JsonObject = camel(part)
    return {key: value for key, value in members.items() if key != SIGNATURE}
