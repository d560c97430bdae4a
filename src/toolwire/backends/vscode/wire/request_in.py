"""VS Code bridge: decodes VS Code's requests to the gateway's models.

Data parts without a media type (usage, stateful_marker, cache_control, ...) are for a provider and its own models. Those of an
assistant's message are stored beside it, for a back end of the same dialect; no model reads them.
"""

from __future__ import annotations

from decimal import Decimal

from ....dialects.shared.media.types import normalize_type
from ....dialects.shared.requests import split_result
from ....types import (
    Json,
    JsonObject,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Request,
    Role,
    Sampling,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from ....wire.exact_json import BadJson, encode
from .frames import BadWindowFrame
from .shapes import NAME, Ask, AskMessage, CallPart, DataPart, ResultPart, TextPart, ThinkingPart
from .shapes import Part as WirePart

_SAMPLING = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")
_KNOWN = frozenset({*_SAMPLING, "max_tokens", "stop", "reasoning_effort"})
_PRIVATE = "_"  # the prefix of VS Code's own options
_TEMPORARY = frozenset({"cache_control", "usage", "token_usage"})  # of no use to the next request


def request_of(ask: Ask, owner: str = "") -> Request:
    """Raises BadWindowFrame if arguments cannot be encoded again."""
    options = {key: value for key, value in ask.options.items() if not key.startswith(_PRIVATE)}
    effort = options.get("reasoning_effort")
    others = {key: value for key, value in options.items() if key not in _KNOWN}
    return Request(
        model=ask.model,
        messages=tuple(message for given in ask.messages for message in _messages(given)),
        tools=tuple(
            Tool(name=tool.name, description=tool.description or None, schema=tool.schema) for tool in ask.tools
        ),
        tool_choice=ToolChoice(mode="required") if ask.required and ask.tools else None,
        max_tokens=_count(options.get("max_tokens")),
        sampling=_sampling(options),
        thinking=Thinking(effort=effort) if isinstance(effort, str) and effort else None,
        stream=True,
        stream_usage=True,
        owner=owner,
        extra={NAME: others} if others else {},
        origin=NAME,
    )


def _messages(given: AskMessage) -> list[Message]:
    """A user message with results becomes one message for each result, and one for the other parts."""
    results = [Message(role="tool", parts=(_result(part),)) for part in given.parts if isinstance(part, ResultPart)]
    rest = [part for part in given.parts if not isinstance(part, ResultPart)]
    role: Role = given.role
    parts = tuple(made for part in rest if (made := _part(part, role)) is not None)
    data = [
        {"type": "data", "mime": part.mime, "data": part.data}
        for part in rest
        if isinstance(part, DataPart) and not normalize_type(part.mime) and part.mime not in _TEMPORARY
    ]
    data = data if role == "assistant" else []
    if not parts and not data:
        return results
    return [*results, Message(role=role, parts=parts, extra={NAME: {"data": data}} if data else {})]


def _part(part: WirePart, role: Role) -> Part | None:
    match part:
        case TextPart():
            return Text(text=part.text) if part.text else None
        case CallPart():
            raw = _raw(part.input)
            # VS Code does not check that arguments are an object.
            args = part.input if isinstance(part.input, dict) else None
            return ToolCall(id=part.id, name=part.name, raw=raw, args=args) if role == "assistant" else Text(text=raw)
        case ThinkingPart():
            is_reasoning = role == "assistant" and part.text
            return Reasoning(text=part.text, item_id=part.id, extra={NAME: {}}) if is_reasoning else None
        case DataPart():
            return _medium(part)
        case ResultPart():
            return None  # a message of its own


def _raw(value: Json) -> str:
    if isinstance(value, str):
        return value
    try:
        return encode(value).decode()
    except BadJson as fault:
        raise BadWindowFrame(f"the arguments of a call cannot be written: {fault}.") from None


def _result(part: ResultPart) -> ToolResult:
    made = (Text(text=one.text) if isinstance(one, TextPart) else _medium(one) for one in part.parts)
    parts: tuple[Text | Media | Opaque, ...] = tuple(one for one in made if one is not None)
    is_error, parts = split_result(parts)
    return ToolResult(call_id=part.id, parts=parts, is_error=is_error)


def _medium(part: DataPart) -> Media | None:
    """Content has a media type with a slash."""
    mime = normalize_type(part.mime)
    if not mime:
        return None
    if mime.startswith("audio/"):
        return Media(kind="audio", mime=mime, data=part.data)
    return Media(kind="image" if mime.startswith("image/") else "file", mime=mime, data=part.data)


def _sampling(options: JsonObject) -> Sampling:
    stop = options.get("stop")
    texts = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    return Sampling(
        stop=tuple(text for text in texts if isinstance(text, str) and text),
        **{key: options[key] for key in _SAMPLING if _is_number(options.get(key))},
    )


def _is_number(value: Json) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
