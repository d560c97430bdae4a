"""Conversations as plain data: saved, loaded, and gone on with, also by another model.

Proof of reasoning belongs to the model that made it, so each of its turns is marked with that model; another model reads the
conversation without it.
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
    """model is the one that spoke last."""

    messages: tuple[Message, ...] = ()
    model: str = ""

    def to_data(self) -> JsonObject:
        """What JSON can hold."""
        messages = [replace(message, source=None) for message in self.messages]
        # Decimals are left to whoever writes the JSON, so that numbers keep their digits.
        return {
            "version": VERSION,
            "model": self.model,
            "messages": [msgspec.to_builtins(message, builtin_types=(Decimal,)) for message in messages],
        }

    def save(self, path: Path) -> None:
        """Whole or not at all, and for its owner's eyes: a file that is complete takes the old one's place."""
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


def marked(messages: tuple[Message, ...], model: str, since: int) -> tuple[Message, ...]:
    """Turns of the assistant from this one on are this model's."""
    return tuple(
        replace(message, extra={**message.extra, _MARK: {"model": model}})
        if place >= since and message.role == "assistant"
        else message
        for place, message in enumerate(messages)
    )


def readable(messages: tuple[Message, ...], model: str) -> tuple[Message, ...]:
    """As this model may read it: thoughts of others are left out, their words and calls stay. Places stay, too."""
    return tuple(_readable(message, model) for message in messages)


def _readable(message: Message, model: str) -> Message:
    maker = message.extra.get(_MARK, {}).get("model", model)
    if message.role != "assistant" or maker == model:
        return message
    kept = tuple(_unnamed(part) for part in message.parts if not isinstance(part, Reasoning))
    return Message(role=message.role, parts=kept)


def _unnamed(part: Part) -> Part:
    """Without what ties it to thoughts that are left out: the id of an item, and members that only its maker understands."""
    match part:
        case Text() | Refusal() | ToolCall() if part.item_id or part.extra:
            return replace(part, item_id="", extra={})
        case _:
            return part
