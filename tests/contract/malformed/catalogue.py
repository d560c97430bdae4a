"""All kinds of malformed answers, by the dialect of the server."""

from __future__ import annotations

from . import chat_kinds, contents, framing, gemini_kinds, messages_kinds, responses_kinds
from .kinds import DIALECTS, Malformed

_OWN = {
    "chat": chat_kinds.kinds,
    "responses": responses_kinds.kinds,
    "messages": messages_kinds.kinds,
    "gemini": gemini_kinds.kinds,
}


def catalogue() -> list[Malformed]:
    return [malformed for dialect in DIALECTS for malformed in kinds_of(dialect)]


def kinds_of(dialect: str) -> list[Malformed]:
    return [*framing.kinds(dialect), *contents.kinds(dialect), *_OWN[dialect]()]
