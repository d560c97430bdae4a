"""Wire formats, one package each. A new dialect is one package and one line in a table.

DIALECTS have both directions. FRONTS are all that clients can use: these, and the ones that no back end speaks.
"""

from __future__ import annotations

from . import chat, gemini, messages, ollama, responses
from .base import Dialect, FrontDialect
from .messages import threads
from .responses import state
from .shared.memory import Memory

DIALECTS: dict[str, Dialect] = {
    package.DIALECT.name: package.DIALECT for package in (chat, responses, messages, gemini)
}
FRONTS: dict[str, FrontDialect] = {**DIALECTS, **{package.DIALECT.name: package.DIALECT for package in (ollama,)}}
MEMORIES: dict[str, Memory] = {
    "responses": state,
    "messages": threads,
}  # dialects whose requests refer to earlier answers

__all__ = ["DIALECTS", "FRONTS", "MEMORIES", "Dialect", "FrontDialect"]
