"""The outcome of a check: one result for each probe, three verdicts, and the deviations behind them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from .deviations import Deviation

Area: TypeAlias = Literal["wire", "schema", "behaviour"]
AREAS: tuple[Area, ...] = ("wire", "schema", "behaviour")
Outcome: TypeAlias = Literal["pass", "fail", "unusual", "unsupported", "untested"]


class ProbeResult(Struct, kw_only=True):
    """fail: a fault. unusual: no fault, but something that clients rarely see. unsupported: the endpoint refuses this feature.
    untested: the model did not do what the probe needs, so it shows nothing."""

    name: str
    area: Area
    outcome: Outcome = "pass"
    note: str = ""
    deviations: list[Deviation] = field(default_factory=list)
    seconds: float = 0.0


class SchemaCount(Struct, kw_only=True):
    """Forced calls, in the terms of OpenRouter's tool-call error rate."""

    valid: int = 0
    invalid_json: int = 0
    unknown_name: int = 0
    schema_mismatch: int = 0
    no_call: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        return self.valid + self.invalid_json + self.unknown_name + self.schema_mismatch + self.no_call + self.refused


class CallDecision(Struct, kw_only=True):
    """Whether the model calls a tool where the baseline does. baseline: what the decisions are compared with."""

    baseline: str
    right_calls: int = 0
    missed_calls: int = 0
    extra_calls: int = 0
    right_texts: int = 0

    @property
    def f1(self) -> float:
        wrong = self.missed_calls + self.extra_calls
        return 2 * self.right_calls / (2 * self.right_calls + wrong) if self.right_calls or wrong else 1.0


class DialectReport(Struct, kw_only=True):
    """Everything found on one dialect of the endpoint."""

    dialect: str
    model: str
    results: list[ProbeResult] = field(default_factory=list)
    schemas: SchemaCount = field(default_factory=SchemaCount)
    decision: CallDecision | None = None
    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def verdict(self, area: Area) -> Outcome:
        outcomes = [result.outcome for result in self.results if result.area == area]
        for outcome in ("fail", "unusual", "unsupported"):
            if outcome in outcomes:
                return outcome
        return "pass" if "pass" in outcomes else "untested"

    @property
    def all_deviations(self) -> list[Deviation]:
        return [deviation for result in self.results for deviation in result.deviations]

    @property
    def deviations(self) -> list[Deviation]:
        """One for each code."""
        found: dict[str, Deviation] = {}
        for deviation in self.all_deviations:
            found.setdefault(deviation.code, deviation)
        return list(found.values())

    @property
    def faults(self) -> frozenset[str]:
        return frozenset(deviation.code for deviation in self.deviations if deviation.is_fault)
