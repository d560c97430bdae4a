"""Wire formats, one package each. A new dialect is one package and one line in a table.

DIALECTS have both directions. FRONTS are all that clients can use: these, and the ones that no back end speaks.
"""

from __future__ import annotations

from . import chat, gemini, interactions, messages, ollama, responses
from .base import Dialect, FrontDialect
from .interactions import state as interaction_state
from .messages import threads
from .responses import state
from .shared.memory import BackgroundMemory, Memory

DIALECTS: dict[str, Dialect] = {
    package.DIALECT.name: package.DIALECT for package in (chat, responses, messages, gemini)
}
FRONTS: dict[str, FrontDialect] = {
    **DIALECTS,
    **{package.DIALECT.name: package.DIALECT for package in (ollama, interactions)},
}
# Dialects whose answers can be made in the background, and all dialects whose requests refer to earlier answers.
BACKGROUNDS: dict[str, BackgroundMemory] = {"responses": state, "interactions": interaction_state}
MEMORIES: dict[str, Memory] = {**BACKGROUNDS, "messages": threads}

__all__ = ["BACKGROUNDS", "DIALECTS", "FRONTS", "MEMORIES", "Dialect", "FrontDialect"]
