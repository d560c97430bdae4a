"""What the owner configured for the calls of one back end."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from ..calls.written.splitter import UnknownTool
from .file import BackendConfig, Guard
from .values import Budget, Grammar


class Corrections(Struct, frozen=True, kw_only=True):
    """corrections: how often the model may try again. policy: what happens to calls that stay invalid: "pass", "text" or "error".

    unknown: for calls of a tool that was not offered: "correct" treats them like other invalid calls, the others apply at once.
    is_strict: an invalid call of a strict tool fails the answer. reminder: sent to a model that had to call a tool and did not, "" where
    it need not; reminders: how often, even if fewer corrections are allowed.
    """

    corrections: int = 2
    policy: str = "pass"
    unknown: UnknownTool = "correct"
    is_strict: bool = False
    reminder: str = ""
    reminders: int = 0


class ToolsBudget(Struct, frozen=True, kw_only=True):
    """How many tools, or tokens of their definitions, a model gets at a time: one of them is not 0."""

    count: int = 0
    tokens: int = 0


class Policy(Struct, frozen=True, kw_only=True):
    """guard: "off" changes nothing, "check" streams calls and counts invalid ones, "repair" repairs them while they stream, "retry" holds
    calls until they are valid. guards: the same for models whose names match a pattern; the first match takes precedence over guard. grammar: whether
    requests constrain the output to a schema; "auto" where the profile says so or a trial worked. max_tools: how many the back end takes,
    None where its profile says so. tool_search: "gateway" runs it here also where the back end has one of its own.
    tools_diet: definitions are shortened. max_result_tokens: longer results are sent by handle; 0 means none. context_windows: sizes in tokens
    by the pattern of the model name, for lists that do not contain them."""

    verbatim: str = "auto"
    tools: Literal["auto", "native", "simulate"] = "auto"
    guard: Guard = "repair"
    guards: Mapping[str, Guard] = {}
    terms: Corrections = Corrections()
    grammar: Grammar = "auto"
    tools_budget: ToolsBudget | None = None
    max_tools: int | None = None
    tool_search: Literal["auto", "gateway", "off"] = "auto"
    tools_diet: bool = False
    max_result_tokens: int = 0
    context_windows: Mapping[str, int] = {}

    def guard_for(self, model: str) -> Guard:
        for pattern, guard in self.guards.items():
            if fnmatchcase(model, pattern):
                return guard
        return self.guard

    def context_for(self, model: str) -> int:
        """0 if it is not configured."""
        return next((size for pattern, size in self.context_windows.items() if fnmatchcase(model, pattern)), 0)


def policy_of(config: BackendConfig) -> Policy:
    return Policy(
        verbatim=config.verbatim,
        tools="simulate" if config.is_simulated else config.tools,
        guard=config.guard,
        guards=config.guards,
        grammar=config.grammar,
        tools_budget=_budget(config.tools_budget),
        max_tools=config.max_tools,
        tool_search=config.tool_search,
        tools_diet=config.tools_diet,
        max_result_tokens=config.max_result_tokens,
        context_windows=config.context_windows,
        terms=Corrections(
            corrections=config.max_corrections,
            policy=config.policy,
            unknown=config.unknown_tool,
            is_strict=config.is_simulated,
        ),
    )


def _budget(value: Budget) -> ToolsBudget | None:
    if isinstance(value, int):
        return ToolsBudget(count=value) if value else None
    number = value.removesuffix(" tokens")
    return ToolsBudget(tokens=int(number.removesuffix("k")) * (1000 if number.endswith("k") else 1))
