"""The result: one markdown table that can be quoted, notes on what went wrong, and everything as JSON."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import Check, Flow, Sample
from scenarios import Scenario
from targets import Target

MARKS = ("<!-- bench -->", "<!-- /bench -->")
# What the README shows of the table.
MAIN_ROWS = ("(`plain.c16`)", "(`tools.c16`)", "(`m2o.tools.c16`)", "RSS MB")
TITLES = {"litellm": "LiteLLM", "tensorzero": "TensorZero"}

# (dividend, divisor): a column is there when both were measured.
RATIOS = (("toolwire", "nginx"), ("tensorzero", "toolwire"), ("litellm", "toolwire"))


@dataclass
class Results:
    targets: list[Target]
    scenarios: list[Scenario]
    rounds: int
    seconds: float
    stat: str
    checks: dict[tuple[str, str], Check] = field(default_factory=dict)
    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    flows: dict[str, Flow] = field(default_factory=dict)

    def value(self, target: str, scenario: str, read: Callable[[Sample], float | None]) -> float | None:
        """Over the rounds: the median or, as noise only ever adds, the least."""
        values = [value for sample in self.samples.get((target, scenario), []) if (value := read(sample)) is not None]
        if not values:
            return None
        return min(values) if self.stat == "best" else statistics.median(values)


def table(results: Results) -> str:
    names = [target.name for target in results.targets]
    ratios = [pair for pair in RATIOS if set(pair) <= set(names)]
    titles = [title_of(name) for name in names] + [f"{title_of(over)} / {title_of(under)}" for over, under in ratios]
    lines = [_row("", titles), _row("---", ["---:"] * len(titles))]
    for title, figures in _figures(results):
        cells = [cell(figures.get(name)) for name in names]
        lines.append(_row(title, cells + [_ratio(figures.get(over), figures.get(under)) for over, under in ratios]))
    lines += [_row(title, cells + [""] * len(ratios)) for title, cells in _flow_rows(results)]
    return "\n".join([*lines, "", _caption(results)])


def main_rows(text: str) -> str:
    """A few rows of a table, without its caption."""
    head, rule, *rows = [line for line in text.splitlines() if line.startswith("|")]
    return "\n".join([head, rule, *(row for row in rows if any(mark in row for mark in MAIN_ROWS))])


def notes(results: Results) -> list[str]:
    """What a reader of the table has to know: wrong answers, failed requests, load that was not delivered."""
    found = []
    for (target, scenario), check in results.checks.items():
        if check.fault:
            found.append(f"{title_of(target)} was not measured in {scenario}: {check.fault}")
    for (target, scenario), samples in results.samples.items():
        if bad := sum(sample.bad for sample in samples):
            error = next(sample.error for sample in samples if sample.bad)
            found.append(f"{title_of(target)} failed {bad} requests in {scenario}, the first with: {error[:200]}")
        delivered = [sample.delivered for sample in samples if sample.delivered is not None]
        if delivered and max(delivered) < 0.9:
            found.append(
                f"{title_of(target)} delivered at most {max(delivered):.0%} of the chunks in time in {scenario}."
            )
    return found


def as_json(results: Results) -> dict[str, Any]:
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "cores": os.cpu_count(),
        "rounds": results.rounds,
        "seconds": results.seconds,
        "stat": results.stat,
        "versions": {target.name: target.version for target in results.targets},
        "checks": {f"{target}/{scenario}": check.fault or "ok" for (target, scenario), check in results.checks.items()},
        "samples": {
            f"{target}/{scenario}": [sample.as_json() for sample in samples]
            for (target, scenario), samples in results.samples.items()
        },
        "flows": {target: flow.as_json() for target, flow in results.flows.items()},
        "notes": notes(results),
    }


def write_block(path: Path, text: str) -> None:
    """Put text between the marks in a document, in place of what was there."""
    document = path.read_text(encoding="utf-8")
    begin, end = MARKS
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise SystemExit(
            f'bench: {path} has no block to write to; expected one line "{begin}" and after it one "{end}".'
        )
    before, after = document.partition(begin)[0], document.partition(end)[2]
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _figures(results: Results) -> Iterable[tuple[str, dict[str, float | None]]]:
    """The rows that have ratios: CPU in each scenario, then the memory that held streams take."""
    names = [target.name for target in results.targets]
    for scenario in results.scenarios:
        unit = f"CPU µs per {scenario.unit}"
        title = f"{scenario.title} (`{scenario.name}`), {unit}"
        yield title, {name: results.value(name, scenario.name, lambda sample: sample.cpu) for name in names}
    for scenario in results.scenarios:
        if scenario.name == "paced.500":
            title = f"memory with {scenario.connections} live streams, RSS MB"
            yield (
                title,
                {name: results.value(name, scenario.name, lambda sample: sample.memory_peak_mb) for name in names},
            )


def _flow_rows(results: Results) -> Iterable[tuple[str, list[str]]]:
    if not results.flows:
        return
    flows = [results.flows.get(target.name) for target in results.targets]
    yield "client stops reading: gateway grows by, MB", [f"{flow.grown_mb:.1f}" if flow else "-" for flow in flows]
    yield "client disconnects: back end closed after, ms", [_closed_after(flow) if flow else "-" for flow in flows]


def _closed_after(flow: Flow) -> str:
    if flow.lost_ms is None:
        return "never"
    return f"{flow.lost_ms:.0f}" if flow.lost_ms >= 1 else "< 1"


def _caption(results: Results) -> str:
    how = "best" if results.stat == "best" else "median"
    versions = ", ".join(f"{title_of(target.name)} {target.version}" for target in results.targets if target.version)
    versions = versions.replace("toolwire Python", "toolwire on Python")
    return (
        f"CPU time of all processes of a gateway with one worker, {how} of {results.rounds} interleaved rounds of "
        f"{results.seconds:g} s against the same mock model, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}; {versions}."
    )


def title_of(name: str) -> str:
    return TITLES.get(name, name)


def _row(title: str, cells: list[str]) -> str:
    return f"| {' | '.join([title, *cells])} |"


def cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _ratio(over: float | None, under: float | None) -> str:
    if over is None or not under:
        return "-"
    ratio = over / under
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"
