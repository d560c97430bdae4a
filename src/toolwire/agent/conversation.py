"""Conversations as plain data: they can be saved, loaded and continued, also by another model.

Signatures of reasoning are only valid for the model that made them. So each answer is marked with its model, and another model gets the
conversation without the reasoning.
"""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import BadRequest
from ..types import JsonObject, Message, Part, Reasoning, Refusal, Text, ToolCall
from ..wire.exact_json import BadJson, decode, encode

VERSION = 1
_MARK = "toolwire"


class Conversation(Struct, frozen=True, kw_only=True):
    """model: the one that answered last."""

    messages: tuple[Message, ...] = ()
    model: str = ""

    def to_data(self) -> JsonObject:
        """JSON data."""
        messages = [replace(message, source=None) for message in self.messages]
        # Decimals stay, so that numbers keep their digits.
        return {
            "version": VERSION,
            "model": self.model,
            "messages": [msgspec.to_builtins(message, builtin_types=(Decimal,)) for message in messages],
        }

    def save(self, path: Path) -> None:
        """Atomic: a complete file, readable only by its owner, replaces the old one."""
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(encode(self.to_data()))
        part.replace(path)

    @classmethod
    def from_data(cls, data: JsonObject) -> Conversation:
        if data.get("version") != VERSION:
            raise BadRequest(f"found a conversation of version {data.get('version')!r}; expected {VERSION}.")
        try:
            messages = msgspec.convert(data["messages"], tuple[Message, ...])
        except (KeyError, msgspec.ValidationError) as fault:
            raise BadRequest(f"this is no conversation: {fault}.") from None
        return cls(messages=messages, model=str(data.get("model", "")))

    @classmethod
    def load(cls, path: Path) -> Conversation:
        try:
            data = decode(path.read_bytes())
        except OSError as fault:
            raise BadRequest(f"{path}: this conversation cannot be read: {fault.strerror or fault}.") from None
        except BadJson as fault:
            raise BadRequest(f"{path} is no JSON: {fault}.") from None
        if not isinstance(data, dict):
            raise BadRequest(f"{path} is no conversation: expected a JSON object.")
        return cls.from_data(data)


def mark_model(messages: tuple[Message, ...], model: str, since: int) -> tuple[Message, ...]:
    """Marks the answers from index since on as this model's."""
    return tuple(
        replace(message, extra={**message.extra, _MARK: {"model": model}})
        if index >= since and message.role == "assistant"
        else message
        for index, message in enumerate(messages)
    )


def for_model(messages: tuple[Message, ...], model: str) -> tuple[Message, ...]:
    """Without the reasoning of other models; the number of messages stays the same."""
    return tuple(_for_model(message, model) for message in messages)


def _for_model(message: Message, model: str) -> Message:
    maker = message.extra.get(_MARK, {}).get("model", model)
    if message.role != "assistant" or maker == model:
        return message
    parts = tuple(_without_ids(part) for part in message.parts if not isinstance(part, Reasoning))
    return Message(role=message.role, parts=parts)


def _without_ids(part: Part) -> Part:
    """Without references to the dropped reasoning: the item id, and members that only its model understands."""
    match part:
        case Text() | Refusal() | ToolCall() if part.item_id or part.extra:
            return replace(part, item_id="", extra={})
        case _:
            return part
