"""Chat Completions: the shape of a streamed chunk, read fast when it is as documented and by hand when it is not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ...errors import UpstreamError
from ...types import Citation, JsonObject, Reason, Usage
from ...wire.exact_json import decode, encode, typed_decoder
from ...wire.fields import count_of, is_count
from ..shared.errors import error_from
from .reasoning_details import MEMBER as DETAILS

NAME = "chat"
NAMELESS = "the back end sent a tool call without a name."
FAILED = "the back end ended its answer with an error and no message."

REASONS: dict[str, Reason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "refused",
}
# Other values that servers of this dialect send, in any case; None: the answer failed.
_OTHER_REASONS: dict[str, Reason | None] = {
    "function_call": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",  # Mistral
    "model_context_window_exceeded": "length",
    "safety": "refused",  # Gemini
    "recitation": "refused",
    "blocklist": "refused",
    "prohibited_content": "refused",
    "spii": "refused",
    "sensitive": "refused",  # Zhipu
    "refusal": "refused",
    "error": None,
    "abort": None,  # vLLM, SGLang
    "aborted": None,
    "cancelled": None,
    "network_error": None,  # Zhipu
    "insufficient_system_resource": None,  # DeepSeek
}
_CALL = frozenset({"index", "id", "type", "function", "custom"})
_FLAT = frozenset(
    {"name", "arguments", "parameters"}
)  # members of the function, in a call of a server that has no function
_LATEST = 1 << 40  # seconds
_TEXTS = ("role", "content", "refusal", "reasoning_content", "reasoning")


class FunctionDelta(Struct, forbid_unknown_fields=True):
    name: str | None = None
    arguments: str | None = None


class CallDelta(Struct, forbid_unknown_fields=True):
    """members: what a server adds to a call and wants back with it (H074)."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionDelta | None = None
    is_custom: bool = False
    members: JsonObject | None = msgspec.field(default=None, name="(members)")


class ChunkDelta(Struct, forbid_unknown_fields=True):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = msgspec.field(default=None, name="(reasoning_details)")  # read by hand only

    @property
    def has_text(self) -> bool:
        return bool(self.content or self.refusal)

    @property
    def says_something(self) -> bool:
        return bool(self.content or self.tool_calls or self.reasoning_content or self.reasoning or self.refusal)


class ChunkChoice(Struct, forbid_unknown_fields=True):
    delta: ChunkDelta
    index: int
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None
    is_message: bool = False  # it came as a whole message


class Chunk(Struct, forbid_unknown_fields=True):
    id: str
    choices: list[ChunkChoice]
    model: str
    created: int
    object: Literal["chat.completion.chunk"]
    usage: dict[str, Any] | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    obfuscation: str | None = None


_fast = typed_decoder(Chunk)
_TOP = frozenset(Chunk.__struct_fields__)
_CHOICE = frozenset(ChunkChoice.__struct_fields__) | {"message", "text"}
_DELTA = frozenset(ChunkDelta.__struct_fields__) | {"function_call", "annotations"}


class ChunkReading:
    """One chunk, with what it holds beyond the documented shape."""

    __slots__ = ("annotations", "chunk", "faults", "unknown", "value")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.faults = ""
        self.unknown: JsonObject = {}
        self.annotations: list[tuple[int, Any]] = []
        self.value: JsonObject = {}

    def keep_first_choice(self) -> None:
        """Drop undocumented members of the other choices."""
        self.annotations = [(index, annotation) for index, annotation in self.annotations if index == 0]
        own = [choice for choice in self.unknown.pop("choices", ()) if choice["index"] == 0]
        if own:
            self.unknown["choices"] = own


def reason_of(raw: object) -> Reason | None:
    """The meaning of a finish reason; None: the answer failed."""
    if not isinstance(raw, str):
        return "stop"
    word = raw.lower()
    known = REASONS.get(word)
    return known if known is not None else _OTHER_REASONS.get(word, "other")


def fault_in(value: JsonObject) -> UpstreamError | None:
    """An error in a response with status 200: next to the choices, or inside one of them, as OpenRouter reports errors of its providers."""
    choices = value.get("choices")
    error = value.get("error")
    for choice in choices if isinstance(choices, list) and not error else ():
        error = error or (choice.get("error") if isinstance(choice, dict) else None)
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else value.get("status")
    status = code if isinstance(code, int) and 400 <= code <= 599 else 502
    return error_from(status, {"error": error}, encode(value), {})


def usage_in(value: JsonObject) -> Usage:
    given = value.get("prompt_tokens_details")
    details = given if isinstance(given, dict) else {}
    given = value.get("completion_tokens_details")
    produced = given if isinstance(given, dict) else {}
    return Usage(
        input=count_of(value.get("prompt_tokens")),
        output=count_of(value.get("completion_tokens")),
        cached=count_of(details.get("cached_tokens")) if details else 0,
        cache_written=count_of(details.get("cache_write_tokens")) if details else 0,
        reasoning=count_of(produced.get("reasoning_tokens")) if produced else 0,
        extra={NAME: value},
    )


def is_counted(usage: JsonObject) -> bool:
    return (
        is_count(usage.get("prompt_tokens"))
        and is_count(usage.get("completion_tokens"))
        and ("total_tokens" not in usage or is_count(usage["total_tokens"]))
    )


def citation_in(value: Any) -> Citation | None:
    if not isinstance(value, dict) or not isinstance(inner := value.get("url_citation"), dict):
        return None
    start, end = inner.get("start_index"), inner.get("end_index")
    return Citation(
        url=str(inner.get("url") or ""),
        title=str(inner.get("title") or ""),
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
        extra={NAME: value},
    )


def logprobs_in(value: JsonObject | None, key: str) -> tuple[Any, ...] | None:
    entries = value.get(key) if value else None
    return tuple(entries) if isinstance(entries, list) and entries else None


def read_fast(data: bytes) -> Chunk | None:
    """The chunk, if it is exactly as documented."""
    try:
        return _fast.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def read_by_hand(data: bytes) -> ChunkReading:
    """Tolerant of wrong types and unknown members; raises BadJson if it is not JSON at all."""
    value = decode(data)
    reading = ChunkReading(_empty())
    if not isinstance(value, dict):
        reading.faults = "not an object"
        return reading
    reading.value = value
    chunk = reading.chunk
    chunk.id = _text(value.get("id")) or ""
    chunk.model = _text(value.get("model")) or ""
    created = value.get("created")
    chunk.created = int(created) if isinstance(created, int | Decimal) and 0 < created < _LATEST else 0
    if chunk.created != created or not chunk.model or value.get("object") != "chat.completion.chunk":
        reading.faults = "a chunk without its time, model or kind"
    chunk.system_fingerprint = _text(value.get("system_fingerprint"))
    chunk.service_tier = _text(value.get("service_tier"))
    chunk.usage = value.get("usage") if isinstance(value.get("usage"), dict) else None
    if unknown := {key: item for key, item in value.items() if key not in _TOP}:
        reading.unknown.update(unknown)
    choices = value.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict):
            chunk.choices.append(_choice(choice, reading))
        else:
            reading.faults = "a choice that is no object"
    if not isinstance(choices, list):
        reading.faults = "no choices"
    return reading


def read_message(message: Any) -> ChunkReading | None:
    """A whole message, read as the one delta that it is."""
    if not isinstance(message, dict):
        return None
    reading = ChunkReading(_empty())
    reading.chunk.choices.append(_choice({"index": 0, "delta": message}, reading))
    return reading


def _empty() -> Chunk:
    return Chunk(id="", choices=[], model="", created=0, object="chat.completion.chunk")


def _choice(value: JsonObject, reading: ChunkReading) -> ChunkChoice:
    delta, message = value.get("delta"), value.get("message")
    is_message = not isinstance(delta, dict) and isinstance(message, dict)
    if not isinstance(delta, dict):  # some servers put the whole message into a streamed chunk
        delta = message if isinstance(message, dict) else {}
        reading.faults = "a choice without a delta"
        if not delta and isinstance(value.get("text"), str):  # as servers for plain completions send it
            delta = {"content": value["text"]}
    index = value.get("index")
    if not isinstance(index, int):
        index, reading.faults = 0, "a choice without an index"
    finish, logprobs = value.get("finish_reason"), value.get("logprobs")
    choice = ChunkChoice(
        delta=_delta(delta, reading),
        index=index,
        finish_reason=finish if isinstance(finish, str) else None,
        logprobs=logprobs if isinstance(logprobs, dict) else None,
        is_message=is_message,
    )
    if isinstance(annotations := delta.get("annotations"), list):
        reading.annotations += [(index, annotation) for annotation in annotations]
    unknown: JsonObject = {}
    if not value.keys() <= _CHOICE:
        unknown = {key: item for key, item in value.items() if key not in _CHOICE}
    inner: JsonObject = {}
    if not delta.keys() <= _DELTA:
        inner = {key: item for key, item in delta.items() if key not in _DELTA}
    if DETAILS in delta and not isinstance(delta[DETAILS], list):
        inner[DETAILS] = delta[DETAILS]
    if inner:
        unknown["delta"] = inner
    if unknown:
        reading.unknown.setdefault("choices", []).append({"index": index, **unknown})
    return choice


def _delta(value: JsonObject, reading: ChunkReading) -> ChunkDelta:
    texts: JsonObject = {key: text for key in _TEXTS if isinstance(text := value.get(key), str)}
    delta = ChunkDelta(**texts)
    if isinstance(details := value.get(DETAILS), list) and details:
        delta.reasoning_details = details
    content = value.get("content")
    if isinstance(content, list):
        reading.faults = "content in a list"
        delta.content, thought = _joined(content)
        delta.reasoning_content = delta.reasoning_content or thought or None
    calls = value.get("tool_calls")
    found = [_call(call, reading) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    if isinstance(legacy := value.get("function_call"), dict):
        found.append(CallDelta(index=0, id=None, type="function", function=_function(legacy, reading)))
    delta.tool_calls = found or None
    return delta


def _call(value: JsonObject, reading: ChunkReading) -> CallDelta:
    index, custom = value.get("index"), value.get("custom")
    if isinstance(index, str) and index.isascii() and index.isdigit() and len(index) < 10:
        index, reading.faults = int(index), "an index that is a string"
    call = CallDelta(
        index=index if isinstance(index, int) else None, id=_text(value.get("id")), type=_text(value.get("type"))
    )
    call.members = {key: item for key, item in value.items() if key not in _CALL} or None
    if call.type == "custom" or isinstance(custom, dict):
        call.is_custom = True
        inner = custom if isinstance(custom, dict) else {}
        call.function = FunctionDelta(name=_text(inner.get("name")), arguments=_text(inner.get("input")))
    elif isinstance(function := value.get("function"), dict):
        call.function = _function(function, reading)
    elif not _FLAT.isdisjoint(value):
        reading.faults = "a call without a function"
        call.function = _function({key: value[key] for key in _FLAT if key in value}, reading)
        call.members = {key: item for key, item in value.items() if key not in _CALL | _FLAT} or None
    return call


def _function(value: JsonObject, reading: ChunkReading) -> FunctionDelta:
    arguments = value.get("arguments", value.get("parameters"))
    if arguments is not None and not isinstance(arguments, str):
        reading.faults = "arguments that are no text"
        arguments = encode(arguments).decode()
    return FunctionDelta(name=_text(value.get("name")), arguments=_text(arguments))


def _joined(content: list[Any]) -> tuple[str, str]:
    """Text and thinking out of a list of content parts (seen from Mistral's reasoning models)."""
    texts, thoughts = [], []
    for item in content:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            texts.append(item["text"])
        elif isinstance(item, dict) and isinstance(item.get("thinking"), list):
            thoughts += [piece["text"] for piece in item["thinking"] if isinstance(piece, dict) and "text" in piece]
    return "".join(texts), "".join(map(str, thoughts))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
