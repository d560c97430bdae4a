"""Write calls in every form and many wrong ones, have them read, and print how many came back as they were.

python -m bench.written                                  sets of tools that come with bench/repairs
python -m bench.written --bfcl .../bfcl_eval/data        those of the package bfcl-eval instead
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from . import cost, rounds, tables
from .cases import Case, from_bfcl, from_samples
from .measure import Measurement, Tally, every_damage

SEED = 20
PARTS = ("forms", "cuts", "damages", "prose", "rounds", "cost")


def main() -> int:
    options = _read_options()
    cases = from_bfcl(options.bfcl) if options.bfcl else from_samples(options.seed)
    cases = cases[:: options.every]
    calls = sum(len(case.calls) for case in cases)
    print(f"{len(cases)} sets of tools, {calls} calls, {sum(len(case.calls) > 1 for case in cases)} sets with several")
    run = _Run(cases, options)
    parts: dict[str, Callable[[], bool]] = {part: getattr(run, part) for part in PARTS}
    results = []
    for part in options.parts:
        print(f"\n### {part}\n")
        results.append(parts[part]())
        sys.stdout.flush()
    return 0 if all(results) else 1


class _Run:
    """One table for each method; whether it is as it must be."""

    def __init__(self, cases: list[Case], options: argparse.Namespace) -> None:
        self._cases = cases
        self._options = options
        self._measurement = Measurement(cases, options.seed)

    def forms(self) -> bool:
        told, untold = (list(self._measurement.forms(is_instructed=is_instructed)) for is_instructed in (True, False))
        is_good = tables.show_forms(told, untold, print)
        self._show_examples(told, untold)
        return is_good

    def cuts(self) -> bool:
        modes = ((True, True), (True, False), (False, True))
        known, unknown, untold = (
            list(self._measurement.cuts(is_instructed=is_instructed, is_known=is_known))
            for is_instructed, is_known in modes
        )
        is_good = tables.show_cuts(known, unknown, untold, print)
        self._show_examples(known, unknown, untold)
        return is_good

    def damages(self) -> bool:
        chosen = [damage for damage in every_damage() if self._options.only in damage.name]
        told, untold = (
            list(self._measurement.damages(chosen, is_instructed=is_instructed)) for is_instructed in (True, False)
        )
        is_good = tables.show_damages(chosen, told, untold, print)
        self._show_examples(told, untold)
        return is_good

    def prose(self) -> bool:
        told, untold = (
            self._measurement.prose(is_instructed=is_instructed, count=7) for is_instructed in (True, False)
        )
        is_good = tables.show_prose(told, untold, print)
        self._show_examples(told, untold)
        return is_good

    def rounds(self) -> bool:
        every = every_damage()
        kinds = {"clear": [damage for damage in every if damage.hope == "clear"], "any": every}
        results = {
            (kind, chance, setting.name): rounds.run(self._cases, damages, chance, setting, self._options.seed)
            for kind, damages in kinds.items()
            for chance in (0.1, 0.3, 0.5)
            for setting in rounds.SETTINGS
        }
        tables.show_rounds(results, print)
        return True

    def cost(self) -> bool:
        tables.show_cost({name: cost.measured(text) for name, text in cost.TEXTS.items()}, print)
        return True

    def _show_examples(self, *runs: list[Tally]) -> None:
        wanted = self._options.outcomes.split(",")
        for tally in (tally for run in runs for tally in run):
            found = [example for example in tally.examples if example[0] in wanted]
            for outcome, text, heard in found[: self._options.examples]:
                calls = [(call.name, call.raw) for call in heard.calls]
                print(f"\n{tally.name}: {outcome}\n  said  {text!r}\n  calls {calls}\n  text  {heard.words!r}")


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bfcl", type=Path, help="the folder bfcl_eval/data of the package bfcl-eval")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="these tables only")
    parser.add_argument("--every", type=int, default=1, help="take each n-th set of tools only")
    parser.add_argument("--only", default="", help="damages whose name holds this")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed, other words and other places")
    parser.add_argument("--examples", type=int, default=0, help="show so many of each line that did not come back")
    parser.add_argument("--outcomes", default="wrong,uneven,verbatim_wrong", help="which of them, by comma")
    return parser.parse_args()


sys.exit(main())
