"""The names that dialects and frameworks use for messages, calls, results and media, and what a value in their form is.

Used where a message is not in the form of its dialect; see foreign_history.
"""

from __future__ import annotations

import re
from typing import Any

from ...types import JsonObject, Media, MediaKind, Role
from ...wire.exact_json import encode
from .media.data import from_data, from_text, from_url

_ANSWER = ("object", "created", "model", "index", "finish_reason", "stop_reason", "stop_sequence", "usage")
_STORED = ("id", "timestamp", "created_at", "createdAt", "additional_kwargs", "response_metadata", "usage_metadata")
LEFTOVERS = frozenset({*_ANSWER, *_STORED, "finishReason"})
# Members that only messages of Chat Completions have, most of them only the assistant's.
CHAT_MEMBERS = frozenset(
    ["tool_calls", "function_call", "tool_call_id", "reasoning_content", "refusal", "annotations", "audio"]
)
ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
    "tool_result": "tool",
    "ipython": "tool",
    "observation": "tool",
}
TEXTS = frozenset({"text", "input_text", "output_text", "summary_text"})
CALLS = frozenset({"tool_use", "tool_call", "tool-call", "function_call", "custom_tool_call", "function"})
ITEM_CALLS = frozenset({"function_call", "custom_tool_call"})  # their id is that of an item
CUSTOM_CALLS = frozenset({"custom_tool_call", "custom"})
ITEMS = frozenset({*ITEM_CALLS, "function_call_output", "custom_tool_call_output"})
RESULTS = frozenset(
    ["tool_result", "tool-result", "function_call_output", "custom_tool_call_output", "function_response"]
)
THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "thought"})
MEDIA: dict[str, MediaKind] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "document": "file",
    "file": "file",
    "input_file": "file",
    "input_audio": "audio",
}
# Parts with one member that is the part itself, as Gemini and Bedrock write them.
WRAPPED_CALLS = ("functionCall", "function_call", "toolUse")
WRAPPED_RESULTS = ("functionResponse", "function_response", "toolResult")
CALL_IDS = ("call_id", "id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId")
RESULT_IDS = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "toolUseId", "id")
NAMES = ("name", "toolName", "tool_name")
ARGUMENTS = ("arguments", "input", "args", "parameters")
CALL_MEMBERS = frozenset({"type", "status", "function", "custom", *WRAPPED_CALLS, *CALL_IDS, *NAMES, *ARGUMENTS})
OUTPUTS = ("content", "output", "result", "response", "parts", "value", "text")
THOUGHT_TEXTS = ("thinking", "text", "reasoning", "summary", "content")
REASONING = ("reasoning_content", "reasoning", "thinking")
IDLE = frozenset({"type", "id", "status", "timestamp"})  # members that say nothing
_FAMILIES = re.compile(
    "_(url|use|result|call|output|reference|upload|addition|removal|request|response|embeds|screenshot|content)$"
    "|^(input|output|server|mcp|web)_|^(compaction|fallback|program|reference|video)$"
)
FOREIGN = TEXTS | CALLS | RESULTS | THOUGHTS | MEDIA.keys() | {"refusal"}


def is_foreign(part: JsonObject, own: frozenset[str] = frozenset()) -> bool:
    """Whether a part that its decoder does not know must be read here: it is one of another dialect, or of no family of types that
    providers use for new parts. own: types that the dialect knows in other places."""
    kind = part.get("type")
    if not isinstance(kind, str):
        return "toolUse" in part or "toolResult" in part
    if kind in own or (kind == "thinking" and isinstance(part.get(kind), list)):  # the latter is Mistral's
        return False
    return is_foreign_item(part, kind) or not _FAMILIES.search(kind)


def is_foreign_item(item: JsonObject, kind: str) -> bool:
    """The same for an item of its own. Unknown ones are the provider's, unless their members say what they are."""
    if (not kind and not item.keys() <= IDLE) or kind in FOREIGN or kind in ROLES or isinstance(item.get("text"), str):
        return True
    is_known = "call_id" in item or ("role" in item and "content" in item)
    return is_known and not _FAMILIES.search(kind)


def has_leftovers(members: JsonObject) -> bool:
    """Whether members that a message does not have are those of an answer that the client has stored as it came, or a null name."""
    return not LEFTOVERS.isdisjoint(members) or members.get("name", "") is None


def has_foreign_members(members: JsonObject) -> bool:
    """The same, or they are those of a message of Chat Completions."""
    return has_leftovers(members) or not CHAT_MEMBERS.isdisjoint(members)


def as_text(value: Any) -> str:
    """Any JSON value as text: a string as it is, null as an empty one."""
    return value if isinstance(value, str) else "" if value is None else encode(value).decode("utf-8", "surrogatepass")


def type_name(value: JsonObject) -> str:
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def is_call(value: JsonObject) -> bool:
    """By its type, by the member that wraps it, or by its members."""
    kind = type_name(value)
    if kind in CALLS:
        return True
    if kind in FOREIGN:
        return False
    if any(isinstance(value.get(key), dict) for key in WRAPPED_CALLS):
        return True
    return not is_result(value) and ("call_id" in value or ("name" in value and any(key in value for key in ARGUMENTS)))


def is_thought(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return type_name(value) in THOUGHTS or "encrypted_content" in value or isinstance(value.get("summary"), list)


def is_result(value: JsonObject) -> bool:
    kind = type_name(value)
    if kind in RESULTS:
        return True
    if kind in FOREIGN:
        return False
    is_wrapped = any(isinstance(value.get(key), dict) for key in WRAPPED_RESULTS)
    is_answer = any(key in value for key in RESULT_IDS[:-1]) and any(key in value for key in ("output", "content"))
    return is_wrapped or is_answer


def holds_results(item: JsonObject) -> bool:
    """Whether the content of a tool message consists of whole results."""
    pieces = item.get("content", item.get("parts"))
    return isinstance(pieces, list) and any(
        isinstance(piece, dict) and (type_name(piece) in RESULTS or any(key in piece for key in WRAPPED_RESULTS))
        for piece in pieces
    )


def names_tool(value: JsonObject) -> bool:
    return any(key in value for key in ("function", "name", "custom", "toolName"))


def is_part(piece: Any) -> bool:
    """Whether a piece of a result is a part of a message, not data of the tool."""
    if not isinstance(piece, dict):
        return False
    kind = piece.get("type")
    return isinstance(kind, str) and (kind in FOREIGN or _has_payload(piece, kind))


def _has_payload(piece: JsonObject, kind: str) -> bool:
    return isinstance(piece.get("text"), str) or kind in piece or "source" in piece


def first_text(owner: JsonObject, keys: tuple[str, ...]) -> str:
    for key in keys:
        value = owner.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return ""


def medium_in(piece: JsonObject, kind: MediaKind) -> Media | None:
    """An image or a file in the form of any dialect; None if it has no data and no address."""
    name = first_text(piece, ("filename", "title", "name"))
    for key in ("image_url", "source", "file", "input_audio", "inlineData", "inline_data", "fileData"):
        inner = piece.get(key)
        if isinstance(inner, str) and inner:
            return from_data(kind, inner, name=name)
        if isinstance(inner, dict):
            return _located(inner, kind, first_text(inner, ("filename", "displayName")) or name)
    return _located(piece, kind, name)


def _located(value: JsonObject, kind: MediaKind, name: str) -> Media | None:
    mime = first_text(value, ("media_type", "mime_type", "mimeType", "mediaType"))
    if not mime and kind == "audio":
        mime = f"audio/{first_text(value, ('format',)) or 'wav'}"
    if url := first_text(value, ("url", "image_url", "file_url", "fileUri", "uri")):
        return from_url(kind, url, name=name)
    if file_id := first_text(value, ("file_id",)):
        return Media(kind=kind, file_id=file_id, name=name)
    data = first_text(value, ("data", "file_data", "image", "bytes"))
    if data and value.get("type") == "text":
        return from_text(data, name=name)
    return from_data(kind, data, name=name, **({"mime": mime} if mime else {})) if data else None
