"""The measurement: damage, judge, compare; one line for each damage."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

from toolwire.calls.arguments import Invalid, Repaired, judge
from toolwire.calls.schemas import Schemas
from toolwire.types import Tool, ToolCall

from . import values, wrappings, writing
from .cuts import in_strings, prefixes
from .damage import DAMAGES, Case, Damage
from .samples import Sample, livened

Json = Any
SEED = 20


@dataclass
class Tally:
    """What became of one damage; examples are (damaged, what came back) of what did not come back equal."""

    name: str
    hope: str
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, Sample, str, Json]] = field(default_factory=list)

    @property
    def repairable(self) -> int:
        return self.counts["equal"] + self.counts["missed"] + self.counts["wrong"]

    @property
    def wrong(self) -> int:
        return self.counts["wrong"]


class Measurement:
    """Judges damaged calls by their tools' own schemas."""

    def __init__(self, seed: int = SEED) -> None:
        self._schemas = Schemas(64 << 20)
        self._seed = seed

    def is_right(self, sample: Sample) -> bool:
        """Whether a sample is a legal call: some of BFCL's do not keep to their own schema."""
        return self._is_legal(sample, sample.arguments)

    def run(self, samples: list[Sample], damages: Iterable[Damage]) -> Iterator[Tally]:
        """One tally for each damage, over all samples."""
        for damage in damages:
            tally = Tally(damage.name, damage.hope)
            for index, sample in enumerate(samples):
                random = Random(f"{self._seed}/{damage.name}/{index}")
                if (found := self.damaged(damage, sample, random)) is not None:
                    self._count(tally, *found)
            yield tally

    def run_cuts(self, samples: list[Sample], count: int) -> Iterator[Tally]:
        """Cut calls: those known to be cut, those cut inside a string, and those cut anywhere without a word of it."""
        for name, is_cut, pieces in (
            ("cut, and known to be", True, prefixes),
            ("cut in a string, not known", False, in_strings),
            ("cut anywhere, not known", False, prefixes),
        ):
            tally = Tally(name, "doubtful")
            for index, sample in enumerate(samples):
                random = Random(f"{self._seed}/{name}/{index}")
                for text in pieces(sample.arguments, random, count):
                    self._count(tally, sample, text, is_cut)
            yield tally

    def damaged(self, damage: Damage, sample: Sample, random: Random) -> tuple[Sample, str] | None:
        """A third of the samples get a string that is hard to write, and so do those that have nothing to damage."""
        first = livened(sample, random) if random.random() < 0.34 else sample
        for tried in (first, livened(sample, random)):
            text = damage.apply(Case(tried, random, partial(self._is_legal, tried)))
            if text is not None:
                return tried, text
        return None

    def _count(self, tally: Tally, sample: Sample, text: str, is_cut: bool = False) -> None:
        verdict = self._judge(sample, text, is_cut)
        outcome = _outcome(verdict, sample.arguments)
        tally.counts[outcome] += 1
        if outcome in ("missed", "wrong") and len(tally.examples) < 1000:
            tally.examples.append((outcome, sample, text, getattr(verdict, "args", getattr(verdict, "errors", None))))

    def _judge(self, sample: Sample, text: str, is_cut: bool = False, may_repair: bool = True) -> Json:
        call = ToolCall(id="call_1", name=sample.tool, raw=text)
        tool = Tool(name=sample.tool, schema=sample.schema)
        return judge(call, tool, self._schemas, is_cut=is_cut, may_repair=may_repair)

    def _is_legal(self, sample: Sample, value: Json) -> bool:
        return not isinstance(self._judge(sample, json.dumps(value), may_repair=False), Invalid)


def _outcome(verdict: Json, meant: Json) -> str:
    if isinstance(verdict, Invalid):
        return "missed"
    if isinstance(verdict, Repaired):
        return (
            "equal"
            if same(verdict.args, meant) and same(json.loads(verdict.raw, parse_float=Decimal), meant)
            else "wrong"
        )
    return "equal" if same(verdict.args, meant) else "legal"


def same(one: Json, other: Json) -> bool:
    """Equal as JSON: numbers by value, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Decimal):
        return one == other if isinstance(other, int) else float(one) == other
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def pairs(seed: int, count: int) -> list[Damage]:
    """Damages of two groups at once, chosen by the seed: bent values badly written, bad writing in wrappers, and so on."""
    random = Random(seed)
    bends, writings, wraps = values.BENDS, writing.WRITINGS, wrappings.WRAPS
    chosen: dict[str, Damage] = {}
    while len(chosen) < count:
        makers = [_bent_and_written, _bent_and_wrapped, _written_and_wrapped]
        damage = random.choice(makers)(random, bends, writings, wraps)
        chosen[damage.name] = damage
    return list(chosen.values())


def _bent_and_written(random: Random, bends: Json, writings: Json, wraps: Json) -> Damage:
    bend, write = random.choice(list(bends)), random.choice(list(writings))

    def apply(case: Case) -> str | None:
        value = bends[bend](case)
        return None if value is values.NOTHING else writings[write](value, case.random)

    return Damage(f"{bend} + {write}", "repairable", "pairs", apply)


def _bent_and_wrapped(random: Random, bends: Json, writings: Json, wraps: Json) -> Damage:
    bend, wrap = random.choice(list(bends)), random.choice(list(wraps))

    def apply(case: Case) -> str | None:
        value = bends[bend](case)
        return None if value is values.NOTHING else wraps[wrap](json.dumps(value, ensure_ascii=False), case)

    return Damage(f"{bend} + {wrap}", "repairable", "pairs", apply)


def _written_and_wrapped(random: Random, bends: Json, writings: Json, wraps: Json) -> Damage:
    write, wrap = random.choice(list(writings)), random.choice(list(wraps))

    def apply(case: Case) -> str | None:
        text = writings[write](case.sample.arguments, case.random)
        return None if text is None else wraps[wrap](text, case)

    return Damage(f"{write} + {wrap}", "repairable", "pairs", apply)


def every_damage() -> list[Damage]:
    return list(DAMAGES.values())


Show = Callable[[str], None]


def show(tallies: list[Tally], say: Show) -> bool:
    """Print the table; whether it is as it must be: 95 % of the repairable equal, and nothing wrong."""
    say(f"{'damage':44} {'hope':10} {'calls':>6} {'equal':>6} {'%':>6} {'missed':>6} {'legal':>6} {'wrong':>6}")
    for tally in tallies:
        say(_line(tally.name, tally.hope, tally))
    sure = _sum("repairable", tallies)
    doubtful = _sum("doubtful", tallies)
    say(_line("all repairable", "", sure))
    say(_line("all doubtful", "", doubtful))
    return sure.counts["equal"] >= 0.95 * sure.repairable and not sure.wrong + doubtful.wrong


def _line(name: str, hope: str, tally: Tally) -> str:
    counts, total = tally.counts, sum(tally.counts.values())
    share = f"{100 * counts['equal'] / tally.repairable:6.1f}" if tally.repairable else "     -"
    return f"{name:44} {hope:10} {total:6} {counts['equal']:6} {share} {counts['missed']:6} {counts['legal']:6} {tally.wrong:6}"


def _sum(hope: str, tallies: list[Tally]) -> Tally:
    total = Tally(hope, hope)
    for tally in tallies:
        if tally.hope == hope:
            total.counts.update(tally.counts)
    return total
