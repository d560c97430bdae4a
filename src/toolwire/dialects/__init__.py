"""Wire formats, one package each, both directions. A new dialect is one package and one line in the table."""

from __future__ import annotations

from . import chat, messages, responses
from .base import Dialect

DIALECTS: dict[str, Dialect] = {chat.name: chat, responses.name: responses, messages.name: messages}

__all__ = ["DIALECTS", "Dialect"]
