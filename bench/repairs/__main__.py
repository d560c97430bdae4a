"""Damage calls in many ways, have them judged, and print how many came back as they were.

python -m bench.repairs                                  the samples that come with it
python -m bench.repairs --bfcl .../bfcl_eval/data        and all calls of the package bfcl-eval
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .measure import SEED, Measurement, every_damage, pairs, show
from .samples import bundled, from_bfcl


def main() -> int:
    options = _read_options()
    samples = bundled() + (from_bfcl(options.bfcl) if options.bfcl else [])
    measurement = Measurement(options.seed)
    right = [sample for sample in samples if measurement.is_right(sample)]
    print(f"{len(right)} calls ({len(samples) - len(right)} more do not keep to their own schema and are left out)")
    damages = [*every_damage(), *pairs(options.seed, options.pairs)]
    damages = [damage for damage in damages if options.only in damage.name]
    picked = right[:: options.every]
    tallies = list(measurement.run(picked, damages))
    if not options.only:
        tallies += measurement.run_cuts(picked, 5)
    is_good = show(tallies, print)
    for tally in tallies:
        for outcome, sample, text, came_back in tally.examples[: options.examples]:
            print(f"\n{tally.name}: {outcome}\n  meant   {sample.arguments}\n  damaged {text}\n  came    {came_back}")
    return 0 if is_good else 1


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bfcl", type=Path, help="the folder bfcl_eval/data of the package bfcl-eval")
    parser.add_argument("--every", type=int, default=1, help="take each n-th call only")
    parser.add_argument("--only", default="", help="damages whose name holds this")
    parser.add_argument("--pairs", type=int, default=60, help="how many damages of two kinds at once")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed, another choice of places and pairs")
    parser.add_argument("--examples", type=int, default=0, help="show so many of each damage that did not come back")
    return parser.parse_args()


sys.exit(main())
