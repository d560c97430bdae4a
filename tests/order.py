"""The order of tests in a run with several workers: those that drive real programs begin first, spread over all workers.

xdist gives each worker an equal, contiguous share, and idle workers steal from the end of the longest queue. In the order of the files
one worker would get all real programs, and the others would wait for a test of a minute that begins last.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

_Test = TypeVar("_Test", bound=Hashable)

PROGRAMS = Path(__file__).parent / "programs"
# They take minutes.
LONGEST = (
    PROGRAMS / "vscode/test_vscode.py",
    PROGRAMS / "codex_backend/test_codex_backend.py",
    PROGRAMS / "test_shown_code.py",
    PROGRAMS / "cursor/test_long_tasks.py",
)


def deal(tests: Sequence[tuple[_Test, Path]], workers: int) -> list[_Test]:
    """Each share begins with whole files of PROGRAMS, the longest first, and is filled up with other tests in their order."""
    files = [[test for test, _ in group] for _, group in groupby(_sorted_programs(tests), key=lambda test: test[1])]
    others = [test for test, path in tests if not path.is_relative_to(PROGRAMS)]
    ordered: list[_Test] = []
    for worker in range(workers):
        size = (len(tests) - len(ordered)) // (workers - worker)
        share = [test for file in files[worker::workers] for test in file]
        room = max(0, size - len(share))
        ordered += share + others[:room]
        del others[:room]
    return ordered + others


def _sorted_programs(tests: Iterable[tuple[_Test, Path]]) -> list[tuple[_Test, Path]]:
    found = [(test, path) for test, path in tests if path.is_relative_to(PROGRAMS)]
    return sorted(found, key=lambda test: (LONGEST.index(test[1]) if test[1] in LONGEST else len(LONGEST), test[1]))
