"""Wire formats, one package each, both directions. A new dialect is one package and one line in the table."""

from __future__ import annotations

from . import chat, gemini, messages, responses
from .base import Dialect
from .messages import threads
from .responses import state
from .shared.memory import Memory

DIALECTS: dict[str, Dialect] = {
    chat.name: chat,
    responses.name: responses,
    messages.name: messages,
    gemini.name: gemini,
}
MEMORIES: dict[str, Memory] = {responses.name: state, messages.name: threads}  # those that lean on the past at all

__all__ = ["DIALECTS", "MEMORIES", "Dialect"]
