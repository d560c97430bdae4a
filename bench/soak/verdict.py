"""Whether the samples of a soak are flat."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from .gateway import Sample

WARM_UP = 0.3  # of the run: caches fill, the allocator finds its size; of a short run it takes up to half
_FILLED = 25_000  # requests after which all caches are full
MOST_GROWTH = 0.03  # of the memory, from the first third after the warm-up to the last
LEAST_GROWTH = 3.0  # MB that are noise whatever the size
SPARE = {"fds": 8, "threads": 2, "tasks": 2}  # more than after the warm-up: connections that stand idle, and the like


def faults_of(samples: Sequence[Sample], noise: float = 0.0) -> list[str]:
    """One line for each figure that grew. noise: MB that may be there or not, because freed blocks wait in the allocator."""
    after = list(samples[first_after_warm_up(len(samples), samples[-1].requests) :])
    third = max(1, len(after) // 3)
    first, last = after[:third], after[-third:]
    faults = []
    began, ended = median(sample.rss for sample in first), median(sample.rss for sample in last)
    if ended - began > max(LEAST_GROWTH, noise, began * MOST_GROWTH):
        thousands = (last[0].requests - first[0].requests) / 1000
        rate = f", {(ended - began) / thousands:.2f} MB for 1,000 requests" if thousands else ""
        faults.append(f"memory grew from {began:.1f} to {ended:.1f} MB after the warm-up{rate}.")
    for name, spare in SPARE.items():
        was, found = (max(getattr(sample, name) for sample in part) for part in (first, last))
        if found > was + spare:
            faults.append(f"{name} grew from {was} to {found} after the warm-up.")
    return faults


def first_after_warm_up(samples: int, requests: int) -> int:
    return round(samples * max(WARM_UP, min(0.5, _FILLED / requests)))


def table_line(sample: Sample | None = None, seconds: float = 0.0) -> str:
    if sample is None:
        return f"{'requests':>9} {'seconds':>8} {'RSS MB':>8} {'fds':>5} {'threads':>8} {'tasks':>6} {'objects':>9}"
    counts = f"{sample.fds:>5} {sample.threads:>8} {sample.tasks:>6} {sample.objects:>9}"
    return f"{sample.requests:>9} {seconds:>8.1f} {sample.rss:>8.1f} {counts}"
