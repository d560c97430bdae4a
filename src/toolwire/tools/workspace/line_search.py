"""A replacement for ripgrep: prints the matching lines of open files in ripgrep's format.

It is a program with only the standard library, so that a pattern that takes for ever can be killed:
    python -I -S line_search.py PATTERN IGNORE_CASE CONTEXT MOST COUNT DESCRIPTOR...
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from itertools import islice


def main(arguments: list[str]) -> int:
    """Returns 0 if a line matches, 1 if none does, 2 if the pattern is not a regular expression."""
    pattern, ignore_case, context, most, count, *files = arguments
    try:
        search = re.compile(pattern, re.IGNORECASE if ignore_case == "1" else 0).search
    except (re.error, OverflowError, RecursionError, MemoryError) as fault:
        sys.stderr.write(str(fault))
        return 2
    found = False
    for file in files:
        lines = _lines(int(file))
        matching = (number for number, line in enumerate(lines) if search(line))
        hits = list(islice(matching, int(most) or None))
        found = found or bool(hits)
        if count == "1":
            _print(f"{file}\0{len(hits)}" if hits else "")
            continue
        for number, sign in _with_context(hits, int(context), len(lines)):
            _print(f"{file}\0{number + 1}{sign}{lines[number]}")
    return 0 if found else 1


def _print(line: str) -> None:
    if line:
        sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
        sys.stdout.flush()


def _lines(file: int) -> list[str]:
    pieces = list[bytes]()
    while piece := os.read(file, 1 << 20):
        pieces.append(piece)
    lines = b"".join(pieces).decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _with_context(hits: list[int], context: int, count: int) -> Iterator[tuple[int, str]]:
    """Each line once, in order: ":" for a match, "-" for context."""
    matching, done = set(hits), 0
    for hit in hits:
        for number in range(max(done, hit - context), min(count, hit + context + 1)):
            yield number, ":" if number in matching else "-"
            done = number + 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
