"""Chat Completions: simpler forms of a request, for servers whose chat template refused it. Bodies in, bodies out; None: nothing to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...types import JsonObject
from ...wire.exact_json import encode, object_of
from ..shared.requests import label_instruction

_INSTRUCTIONS = ("system", "developer")


def with_texts(body: bytes) -> bytes | None:
    """Assistant messages that only call tools get an empty text (H111)."""
    return _changed(body, lambda messages: [_with_text(message) for message in messages])


def with_plain_roles(body: bytes) -> bytes | None:
    """One system message at the start; later ones become notes in the next user message, or a user message (H112, H141)."""
    return _changed(body, _plain)


def _changed(body: bytes, change: Callable[[list[JsonObject]], list[JsonObject]]) -> bytes | None:
    top = object_of(body.decode("utf-8", "replace")) or {}
    given = top.get("messages")
    if not isinstance(given, list) or not all(isinstance(message, dict) for message in given):
        return None
    messages = change(given)
    return encode({**top, "messages": messages}) if messages != given else None


def _plain(messages: list[JsonObject]) -> list[JsonObject]:
    count = 0
    while count < len(messages) and messages[count].get("role") in _INSTRUCTIONS:
        count += 1
    head, rest = messages[:count], messages[count:]
    if head and not rest:  # there are only instructions
        head, rest = head[:-1], [{**head[-1], "role": "user"}]
    return [*_one(head), *_noted(rest)]


def _with_text(message: JsonObject) -> JsonObject:
    is_mute = message.get("role") == "assistant" and message.get("content") is None
    return {**message, "content": ""} if is_mute else message


def _one(head: list[JsonObject]) -> list[JsonObject]:
    if len(head) < 2 and all(message["role"] == "system" for message in head):
        return head
    return [{**head[0], "role": "system", "content": "\n\n".join(_text(message) for message in head)}]


def _noted(messages: list[JsonObject]) -> list[JsonObject]:
    """Results must directly follow their calls, so a note between them waits."""
    written: list[JsonObject] = []
    waiting: list[str] = []
    for message in messages:
        role = message.get("role")
        if role in _INSTRUCTIONS:
            waiting.append(label_instruction(_text(message)))
            continue
        if waiting and role != "tool":
            if role == "user":
                message = {**message, "content": _joined(waiting, message.get("content"))}
            else:
                written.append({"role": "user", "content": "\n\n".join(waiting)})
            waiting = []
        written.append(message)
    return [*written, {"role": "user", "content": "\n\n".join(waiting)}] if waiting else written


def _joined(notes: list[str], content: Any) -> Any:
    if isinstance(content, list):
        return [*({"type": "text", "text": note} for note in notes), *content]
    return "\n\n".join([*notes, str(content or "")])


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, list):
        texts = [piece.get("text") for piece in content if isinstance(piece, dict)]
        return "\n\n".join(text for text in texts if isinstance(text, str))
    return str(content or "")
