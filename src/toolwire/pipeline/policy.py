"""What the owner configured for the calls of one back end."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from ..config.file import BackendConfig, Guard
from .correction import Terms


class Policy(Struct, frozen=True, kw_only=True):
    """guard: "off" changes nothing, "check" streams calls and counts invalid ones, "repair" and "retry" hold calls until they
    are valid. guards: the same for models whose names match a pattern; the first match takes precedence over guard."""

    verbatim: str = "auto"
    tools: Literal["auto", "native", "simulate"] = "auto"
    guard: Guard = "check"
    guards: Mapping[str, Guard] = {}
    terms: Terms = Terms()

    def guard_for(self, model: str) -> Guard:
        for pattern, guard in self.guards.items():
            if fnmatchcase(model, pattern):
                return guard
        return self.guard


def policy_of(config: BackendConfig) -> Policy:
    return Policy(
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
