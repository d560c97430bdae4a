"""The tools that show what there is: list, a folder as a tree, and glob, files by their names."""

from __future__ import annotations

import heapq
import os
import stat
from collections import deque
from collections.abc import Iterator

from msgspec import Struct

from ..base import Output
from .confinement import Place, Root
from .limits import Budget, Limits
from .messages import Refused, fitting, shown, size_of
from .patterns import IgnoreFile, Patterns
from .walk import Entry, Walk, entries_of, ignore_files

_USUAL_DEPTH = 2


class List(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str | None = None
    depth: int | None = None
    include_ignored: bool | None = None


class Glob(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pattern: str
    path: str | None = None
    include_ignored: bool | None = None


def list_folder(root: Root, limits: Limits, budget: Budget, asked: List) -> Output:
    depth = min(max(asked.depth or _USUAL_DEPTH, 1), limits.depth)
    with root.folder(asked.path or ".") as place:
        tree = _Tree(root, limits, budget, depth, with_ignored=bool(asked.include_ignored))
        tree.grow(place)
    lines = [f"{place.inside.removesuffix('/')}/", *tree.lines()]
    kept = fitting(lines, limits.output_characters)
    if len(kept) < len(lines):
        kept.append(f"[{len(lines) - len(kept):,} lines left out; list a folder below, or ask for less depth]")
    return Output.of_text("\n".join([*kept, *(f"[{note}]" for note in tree.notes)]))


def glob(root: Root, limits: Limits, budget: Budget, asked: Glob) -> Output:
    patterns = Patterns(asked.pattern)
    with root.folder(asked.path or ".") as place:
        walk = Walk(root, limits, budget, with_ignored=bool(asked.include_ignored))
        count, newest = _newest(walk.files_below(place), patterns, len(place.parts), limits.entries)
    lines = fitting((shown("/".join(parts)) for parts in newest), limits.output_characters)
    notes = [f"{walk.stopped}; there may be more, so give a folder as path"] if walk.stopped else []
    if len(lines) < count:
        notes.append(f"the newest {len(lines):,} of {count:,} files; use a narrower pattern, or give a folder as path")
    if not count:
        notes.append("no file matches; ignored files are left out unless include_ignored is set")
    return Output.of_text("\n".join([*lines, *(f"[{note}]" for note in notes)]))


def _newest(files: Iterator[Entry], patterns: Patterns, base: int, most: int) -> tuple[int, list[tuple[str, ...]]]:
    count = 0

    def dated() -> Iterator[tuple[int, tuple[str, ...]]]:
        nonlocal count
        for entry in files:
            if patterns.matches(entry.parts[base:]) and (changed := _changed(entry)) is not None:
                count += 1
                yield -changed, entry.parts

    found = heapq.nsmallest(most, dated())
    return count, [parts for _, parts in found]


def _changed(entry: Entry) -> int | None:
    try:
        return os.lstat(entry.name, dir_fd=entry.folder).st_mtime_ns
    except OSError:  # gone since it was seen
        return None


class _Tree:
    """Grown a level at a time, so that what is left out when there is no more room is what lies deepest."""

    def __init__(self, root: Root, limits: Limits, budget: Budget, depth: int, *, with_ignored: bool) -> None:
        self._root = root
        self._limits = limits
        self._budget = budget
        self._depth = depth
        self._with_ignored = with_ignored
        self._room = limits.entries
        self._below = dict[tuple[str, ...], list[tuple[Entry, str]]]()
        self._left_out = dict[tuple[str, ...], int]()
        self._base: tuple[str, ...] = ()
        self.notes = list[str]()

    def grow(self, place: Place) -> None:
        self._base = place.parts
        rules = () if self._with_ignored else ignore_files(self._root, place)
        self._add(place, rules)
        waiting = deque(entry for entry, _ in self._below[place.parts])
        while waiting:
            entry = waiting.popleft()
            if self._is_shut(entry):
                continue
            self._budget.check()
            if self._room <= 0 or self._budget.is_over:
                self.notes.append("not every folder is shown; list a folder below, or ask for less depth")
                return
            try:
                with self._root.folder("/".join(entry.parts)) as inner:
                    rules = () if self._with_ignored else ignore_files(self._root, inner)
                    self._add(inner, rules)
            except Refused:  # gone, not ours to read, or no folder any more
                continue
            waiting += [child for child, _ in self._below.get(entry.parts, [])]

    def lines(self) -> Iterator[str]:
        yield from self._lines(self._base, 1)

    def _add(self, place: Place, rules: tuple[IgnoreFile, ...]) -> None:
        entries = entries_of(place.folder, place.parts, rules, self._limits.scanned)
        kept = entries[: self._room]
        self._room -= len(kept)
        self._below[place.parts] = [(entry, _about(entry)) for entry in kept]
        self._left_out[place.parts] = len(entries) - len(kept)

    def _is_shut(self, entry: Entry) -> bool:
        if entry.kind != "folder" or len(entry.parts) - len(self._base) >= self._depth:
            return True
        return entry.is_ignored or entry.name == ".git"

    def _lines(self, parts: tuple[str, ...], level: int) -> Iterator[str]:
        for entry, about in self._below.get(parts, []):
            yield "  " * level + shown(entry.name) + about
            yield from self._lines(entry.parts, level + 1)
        if left_out := self._left_out.get(parts):
            yield "  " * level + f"[{left_out:,} more here; use glob with a pattern]"


def _about(entry: Entry) -> str:
    ignored = " (ignored)" if entry.is_ignored else ""
    try:
        if entry.kind == "folder":
            return "/" + ignored
        if entry.kind == "link":
            return " -> " + shown(os.readlink(entry.name, dir_fd=entry.folder)) + ignored
        found = os.lstat(entry.name, dir_fd=entry.folder)
    except OSError:
        return " (gone)"
    return "  " + (size_of(found.st_size) if stat.S_ISREG(found.st_mode) else "(no file)") + ignored
