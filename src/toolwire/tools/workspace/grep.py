"""The tool that searches files for a pattern.

Which files there are is found by our own walk, and each is opened in it. The engine (ripgrep, or a Python program where there is none)
gets descriptors, never paths: it cannot be led anywhere else, and both give the same lines.
"""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from ...errors import quote
from ..base import Output
from .confinement import Place, Root, opened
from .engines import Hit, Query, search
from .limits import Budget, Limits
from .messages import Refused, cut, fitting
from .patterns import Patterns
from .walk import Walk

_MAX_CONTEXT = 20
_MAX_PATTERN = 2000
_BINARY_HEAD = 8192
_BATCH = 256


class Grep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: str
    path: str | None = None
    glob: str | None = None
    ignore_case: bool | None = None
    context: int | None = None
    mode: str | None = None
    include_ignored: bool | None = None


class _Opened(Struct, frozen=True):
    file: int
    path: str


def grep(root: Root, limits: Limits, budget: Budget, asked: Grep) -> Output:
    _require_one_line(asked.pattern)
    found = _Found(limits, asked.mode or "lines")
    query = Query(
        pattern=asked.pattern,
        ignore_case=bool(asked.ignore_case),
        context=min(max(asked.context or 0, 0), _MAX_CONTEXT) if found.mode == "lines" else 0,
        most={"lines": limits.matches + 1, "files": 1}.get(found.mode, 0),
        enough=limits.matches + 1 if found.mode == "lines" else 0,
        counting=found.mode == "count",
    )
    with _files(root, limits, budget, asked, found) as batches:
        for batch in batches:
            for hit in search(root.path, query, [item.file for item in batch], budget):
                found.add(batch[hit.index].path, hit)
                if found.is_enough:
                    break
            if found.is_enough or budget.is_over:
                break
    budget.check()
    if budget.is_over and not found.stopped:
        found.stopped = f"stopped after {limits.seconds:g} seconds"
    return Output.of_text(found.text())


def _require_one_line(pattern: str) -> None:
    if not pattern:
        raise Refused("the pattern is empty, so every line matches; write what is looked for.")
    if len(pattern) > _MAX_PATTERN:
        raise Refused(
            f"the pattern has {len(pattern):,} characters, expected at most {_MAX_PATTERN:,}; use a shorter one."
        )
    if "\n" in pattern or "\0" in pattern:
        raise Refused(
            "the pattern holds a line break or NUL, but lines are searched one by one; look for a part in one line."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in pattern):
        raise Refused("the pattern holds half a character (a lone surrogate); write it in full.")


@contextmanager
def _files(root: Root, limits: Limits, budget: Budget, asked: Grep, found: _Found) -> Iterator[Iterator[list[_Opened]]]:
    """The files to search, open, some at a time."""
    path = asked.path or "."
    with root.place(path) as place:
        if place.name and stat.S_ISREG(os.lstat(place.name, dir_fd=place.folder).st_mode):
            with opened(place, path) as file:
                if os.fstat(file).st_size > limits.file_bytes:
                    raise Refused(f"{quote(path)} has more than {limits.file_bytes:,} bytes; search another file.")
                yield iter([[_Opened(file, place.inside)]])
            return
    patterns = Patterns(asked.glob) if asked.glob else None
    with root.folder(path) as place:
        walk = Walk(root, limits, budget, with_ignored=bool(asked.include_ignored))
        yield _batches(walk, place, patterns, limits.file_bytes, found)
        found.stopped = found.stopped or walk.stopped


def _batches(walk: Walk, place: Place, patterns: Patterns | None, most: int, found: _Found) -> Iterator[list[_Opened]]:
    size = min(_BATCH, max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))
    batch = list[_Opened]()
    try:
        for entry in walk.files_below(place):
            if patterns is not None and not patterns.matches(entry.parts[len(place.parts) :]):
                continue
            with suppress(OSError, Refused), opened(entry.place, entry.name) as file:  # or gone, or not ours to read
                if os.fstat(file).st_size > most:
                    found.too_large += 1
                elif b"\0" not in os.pread(file, _BINARY_HEAD, 0):
                    batch.append(_Opened(os.dup(file), entry.place.inside))
            if len(batch) >= size:
                yield batch
                _close(batch)
        if batch:
            yield batch
    finally:
        _close(batch)


def _close(batch: list[_Opened]) -> None:
    while batch:
        os.close(batch.pop().file)


class _Found:
    """What was found so far, in the form that was asked for."""

    def __init__(self, limits: Limits, mode: str) -> None:
        if mode not in ("lines", "files", "count"):
            raise Refused(f'mode is {quote(mode)}, expected "lines", "files" or "count".')
        self.mode = mode
        self.stopped = ""
        self.too_large = 0
        self._limits = limits
        self._counts = dict[str, int]()
        self._lines = list[str]()
        self._matches = 0

    @property
    def is_enough(self) -> bool:
        if self.mode == "lines":
            return self._matches > self._limits.matches
        return len(self._counts) > self._limits.entries

    def add(self, path: str, hit: Hit) -> None:
        if hit.is_match:
            self._counts[path] = hit.number
            self._matches += 1
        if self.mode == "lines" and not self.is_enough:
            sign = ":" if hit.is_match else "-"
            self._lines.append(f"{path}{sign}{hit.number}{sign}{cut(hit.text, self._limits.line_characters // 4)}")

    def text(self) -> str:
        lines = self._asked_for()
        kept = fitting(lines, self._limits.output_characters)
        notes = list[str]()
        if not lines:
            notes.append("no line matches")
        if self.is_enough or len(kept) < len(lines):
            notes.append("there are more; use a narrower pattern, a glob or a folder as path")
        if self.stopped:
            notes.append(f"{self.stopped}; give a folder as path, or a simpler pattern")
        if self.too_large:
            notes.append(f"{self.too_large:,} files of more than {self._limits.file_bytes:,} bytes were not searched")
        return "\n".join([*kept, *(f"[{note}]" for note in notes)])

    def _asked_for(self) -> list[str]:
        if self.mode == "lines":
            return self._lines
        counts = list(self._counts.items())[: self._limits.entries]
        return [f"{path}:{count}" if self.mode == "count" else path for path, count in counts]
