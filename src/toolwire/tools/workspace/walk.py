"""All that lies below a folder of the root, without ever leaving it: each folder is opened in the one above, links are not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Literal, TypeAlias

from msgspec import Struct

from .confinement import FOLDER, Place, Root, contents, opened
from .limits import Budget, Limits
from .messages import Refused
from .patterns import IgnoreFile, is_ignored

Kind: TypeAlias = Literal["file", "folder", "link", "other"]

_IGNORE_FILE = ".gitignore"
_MAX_IGNORE_FILE = 1 << 18


class Entry(Struct, frozen=True, kw_only=True):
    """folder is open only until the next entry is asked for."""

    folder: int
    name: str
    parts: tuple[str, ...]
    kind: Kind
    is_ignored: bool

    @property
    def place(self) -> Place:
        return Place(folder=self.folder, name=self.name, parts=self.parts)


class Walk:
    """One walk, in the order of names. .git is not entered, nor what is ignored unless it was asked for."""

    def __init__(self, root: Root, limits: Limits, budget: Budget, *, with_ignored: bool) -> None:
        self._root = root
        self._limits = limits
        self._budget = budget
        self._with_ignored = with_ignored
        self._seen = 0
        self.stopped = ""  # why it ended early; "" if it did not

    def files_below(self, place: Place) -> Iterator[Entry]:
        """Every file below an open folder."""
        rules = () if self._with_ignored else ignore_files(self._root, place)
        with _stack() as stack:
            first = os.dup(place.folder)
            stack.append((first, self._entries(first, place.parts, rules), rules))
            while stack:
                _, entries, rules = stack[-1]
                entry = next(entries, None)
                if entry is None:
                    os.close(stack.pop()[0])
                elif entry.kind == "file":
                    yield entry
                elif entry.kind == "folder" and self._is_entered(entry, len(stack)):
                    self._enter(stack, entry, rules)

    def _entries(self, folder: int, parts: tuple[str, ...], rules: tuple[IgnoreFile, ...]) -> Iterator[Entry]:
        if self._is_enough():
            return
        room = self._limits.scanned - self._seen
        found = entries_of(folder, parts, rules, room)
        self._seen += len(found)
        for entry in found:
            if self._is_enough():
                return
            if not entry.is_ignored:
                yield entry

    def _is_enough(self) -> bool:
        self._budget.check()
        if self._budget.is_over:
            self.stopped = f"stopped after {self._limits.seconds:g} seconds"
        elif self._seen > self._limits.scanned:
            self.stopped = f"stopped after {self._limits.scanned:,} files and folders"
        return bool(self.stopped)

    def _is_entered(self, entry: Entry, depth: int) -> bool:
        if entry.name == ".git":
            return False
        if depth > self._limits.depth:
            self.stopped = self.stopped or f"folders more than {self._limits.depth} deep were left out"
            return False
        return True

    def _enter(self, stack: list[_Level], entry: Entry, rules: tuple[IgnoreFile, ...]) -> None:
        try:
            folder = os.open(entry.name, FOLDER, dir_fd=entry.folder)
        except OSError:  # gone, not ours to read, or no folder any more
            return
        if not self._with_ignored:
            rules = (*rules, *_ignore_file(folder, entry.parts))
        stack.append((folder, self._entries(folder, entry.parts, rules), rules))


_Level: TypeAlias = tuple[int, Iterator[Entry], tuple[IgnoreFile, ...]]


def entries_of(folder: int, parts: tuple[str, ...], rules: tuple[IgnoreFile, ...], most: int) -> list[Entry]:
    """What lies in an open folder, in the order of names; one more than most, if there are more."""
    with os.scandir(folder) as scan:
        found = [(entry.name, _kind(entry)) for entry in islice(scan, most + 1)]
    entries = list[Entry]()
    for name, kind in sorted(found):
        inner = (*parts, name)
        ignored = bool(rules) and is_ignored(rules, inner, is_folder=kind == "folder")
        entries.append(Entry(folder=folder, name=name, parts=inner, kind=kind, is_ignored=ignored))
    return entries


def ignore_files(root: Root, place: Place) -> tuple[IgnoreFile, ...]:
    """The .gitignore files from the root down to a folder; none above the root is ever looked at."""
    files = list[IgnoreFile]()
    for depth in range(len(place.parts)):
        with root.folder("/".join(place.parts[:depth])) as above:
            files += _ignore_file(above.folder, above.parts)
    return (*files, *_ignore_file(place.folder, place.parts))


def _ignore_file(folder: int, parts: tuple[str, ...]) -> tuple[IgnoreFile, ...]:
    place = Place(folder=folder, name=_IGNORE_FILE, parts=(*parts, _IGNORE_FILE))
    try:
        os.lstat(_IGNORE_FILE, dir_fd=folder)
        with opened(place, _IGNORE_FILE) as file:
            text = contents(file, _MAX_IGNORE_FILE, _IGNORE_FILE).decode("utf-8", "surrogateescape")
    except (OSError, Refused):
        return ()
    return (IgnoreFile(text, len(parts)),)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


@contextmanager
def _stack() -> Iterator[list[_Level]]:
    """Levels whose folders are closed in the end, also when nobody asks for the rest."""
    stack = list[_Level]()
    try:
        yield stack
    finally:
        while stack:
            os.close(stack.pop()[0])
