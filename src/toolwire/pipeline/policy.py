"""How far the calls of a back end's models are trusted, and what becomes of those that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from ..config.file import BackendConfig, Guard
from .correction import Terms


class Handling(Struct, frozen=True, kw_only=True):
    """What the owner set for one back end. off: nothing is touched; check: calls stream through and are counted; repair and
    retry: calls wait until they are right."""

    verbatim: str = "auto"
    tools: Literal["auto", "native", "simulate"] = "auto"
    guard: Guard = "check"
    guards: Mapping[str, Guard] = {}
    terms: Terms = Terms()

    def level(self, model: str) -> Guard:
        """The first pattern that fits a model's name goes before what is set for all."""
        for pattern, level in self.guards.items():
            if fnmatchcase(model, pattern):
                return level
        return self.guard


def handling_of(config: BackendConfig) -> Handling:
    return Handling(
        verbatim=config.verbatim,
        tools="simulate" if config.is_simulated else config.tools,
        guard=config.guard,
        guards=config.guards,
        terms=Terms(
            corrections=config.max_corrections,
            policy=config.policy,
            unknown=config.unknown_tool,
            is_strict=config.is_simulated,
        ),
    )
