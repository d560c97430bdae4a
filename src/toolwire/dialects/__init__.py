"""Wire formats, one package each, both directions. A new dialect is one package and one line in the table."""

from __future__ import annotations

from . import chat, gemini, messages, responses
from .base import Dialect
from .messages import threads
from .responses import state
from .shared.memory import Memory

DIALECTS: dict[str, Dialect] = {
    package.DIALECT.name: package.DIALECT for package in (chat, responses, messages, gemini)
}
MEMORIES: dict[str, Memory] = {
    "responses": state,
    "messages": threads,
}  # dialects whose requests refer to earlier answers

__all__ = ["DIALECTS", "MEMORIES", "Dialect"]
