"""A summary as the client stores it: sealed with a secret of the gateway, for one owner.

It contains what replaces the conversation: the text, and messages that follow it unchanged. Every gateway with the same secret opens it.
The first secret seals, all of them open, so secrets can be rotated.
"""

from __future__ import annotations

import os
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...dialects.shared.compaction import MARK
from ...types import Message, Part, Text, Tool, ToolCall
from ...wire.exact_json import object_of
from ...wire.sealed_box import NONCE, open_box, seal

_VERSION = 1
_MAX_SEALED = 16 << 20
_MAX_OPENED = 64 << 20
_INTRODUCTION = (
    "The conversation before this point was compacted. This summary replaces it; continue from here without repeating "
    "what is done.\n\n"
)


class Summary(Struct, frozen=True, kw_only=True):
    """replaces_past: the client may still send the messages before it, which it covers. tail: messages that follow the text. tools: those
    that the conversation has found, which the client does not send again."""

    version: int = _VERSION
    model: str = ""
    text: str
    replaces_past: bool = False
    tail: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()

    def messages(self) -> tuple[Message, ...]:
        return (text_message(self.text), *(_restored(message) for message in self.tail))


def text_message(summary: str) -> Message:
    return Message(role="user", parts=(Text(text=_INTRODUCTION + summary),))


def storable(message: Message) -> Message:
    """Without what can be found again, and without the object of one dialect."""
    parts = tuple([replace(part, args=None) if isinstance(part, ToolCall) else part for part in message.parts])
    return Message(role=message.role, parts=parts, is_head=message.is_head)


def _restored(message: Message) -> Message:
    return message.with_parts(tuple(map(_with_arguments, message.parts)))


def _with_arguments(part: Part) -> Part:
    return replace(part, args=object_of(part.raw)) if isinstance(part, ToolCall) and part.kind != "custom" else part


_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(Summary)


class SummarySeals:
    """secrets: returns the secrets, the current one first; called when one is needed."""

    def __init__(self, secrets: Callable[[], Sequence[bytes]]) -> None:
        self._secrets = secrets

    def seal(self, summary: Summary, owner: str) -> str:
        data = zlib.compress(_encoder.encode(summary))
        return MARK + b64encode(seal(data, self._secrets()[0], owner.encode(), os.urandom(NONCE))).decode()

    def open(self, sealed: str, owner: str) -> Summary | None:
        """None for what is altered, belongs to another owner, or was sealed with an unknown secret."""
        if not sealed.startswith(MARK) or len(sealed) > _MAX_SEALED:
            return None
        try:
            box = b64decode(sealed[len(MARK) :], validate=True)
        except (Base64Error, ValueError):
            return None
        data = open_box(box, self._secrets(), owner.encode())
        if data is None:
            return None
        try:
            summary = _decoder.decode(zlib.decompressobj().decompress(data, _MAX_OPENED))
        except (zlib.error, msgspec.DecodeError):  # of another version
            return None
        return summary if summary.version == _VERSION else None
