"""What is below a folder: a walk over its files, its tree, and files by name. Each folder is opened in its parent; links are not followed."""

from __future__ import annotations

import heapq
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, TypeAlias

from msgspec import Struct

from .confinement import FOLDER, Place, Root, Scope, open_file, read_all
from .messages import ToolRefused, display_path
from .patterns import IgnoreFile, Pattern, Patterns, is_ignored

Kind: TypeAlias = Literal["file", "folder", "link", "other", "gone"]
Parts: TypeAlias = tuple[str, ...]
SearchLimit: TypeAlias = Literal["", "seconds", "scanned", "depth"]  # the limit that ended a search early, "" for none

_DEFAULT_DEPTH = 2
_IGNORE_FILE = ".gitignore"
_MAX_IGNORE_FILE = 1 << 18


class FolderEntry(Place, frozen=True, kw_only=True):
    """folder is open only until the next entry of a walk."""

    kind: Kind
    is_ignored: bool


class TreeItem(Struct, frozen=True, kw_only=True):
    """One line of a tree; size is that of a file, target that of a link."""

    name: str
    parts: Parts
    kind: Kind
    is_ignored: bool
    size: int = 0
    target: str = ""


class TreeFolder(Struct, frozen=True):
    """left_out: entries for which the tree has no room."""

    items: tuple[TreeItem, ...]
    left_out: int


class Tree(Struct, frozen=True, kw_only=True):
    """The folders that were opened, by their parts, parents first. is_cut: not all folders of that depth were opened."""

    path: str
    base: Parts
    folders: dict[Parts, TreeFolder]
    is_cut: bool


class FoundFiles(Struct, frozen=True, kw_only=True):
    """The newest files that match, newest first; count is that of all."""

    paths: list[str]
    count: int
    stopped: SearchLimit


class Walk:
    """One walk over files, sorted by name. It skips .git, and ignored entries unless with_ignored is set."""

    def __init__(self, scope: Scope, *, with_ignored: bool = False) -> None:
        self._scope = scope
        self._with_ignored = with_ignored
        self._seen = 0
        self.stopped: SearchLimit = ""

    def files_below(self, place: Place) -> Iterator[FolderEntry]:
        """Every file below an open folder."""
        rules = () if self._with_ignored else ignore_files(self._scope.root, place)
        return self._files(place.folder, place.parts, rules, 1)

    def _files(self, folder: int, parts: Parts, rules: tuple[IgnoreFile, ...], depth: int) -> Iterator[FolderEntry]:
        if self._is_over():
            return
        entries = entries_of(folder, parts, rules, self._scope.limits.scanned - self._seen)
        self._seen += len(entries)
        for entry in entries:
            if self._is_over():
                return
            if entry.kind == "file" and not entry.is_ignored:
                yield entry
            elif entry.kind == "folder" and not entry.is_ignored and self._may_enter(entry, depth):
                try:
                    inner = os.open(entry.name, FOLDER, dir_fd=folder)
                except OSError:  # deleted, not readable, or not a folder any more
                    continue
                try:
                    more = () if self._with_ignored else _ignore_file(inner, entry.parts)
                    yield from self._files(inner, entry.parts, (*rules, *more), depth + 1)
                finally:
                    os.close(inner)

    def _is_over(self) -> bool:
        self._scope.budget.check()
        if self._scope.budget.is_over:
            self.stopped = "seconds"
        elif self._seen > self._scope.limits.scanned:
            self.stopped = "scanned"
        return bool(self.stopped)

    def _may_enter(self, entry: FolderEntry, depth: int) -> bool:
        if entry.name == ".git":
            return False
        if depth > self._scope.limits.depth:
            self.stopped = self.stopped or "depth"
            return False
        return True


def list_tree(
    scope: Scope,
    path: str = ".",
    depth: int | None = None,
    *,
    with_ignored: bool = False,
    hidden: Sequence[Pattern] | None = None,
) -> Tree:
    """The tree below a folder, grown level by level, so that the deepest entries are left out when there is no more room.

    Ignored folders are listed but not opened. If hidden is given, entries that match it and ignored entries are not in the tree.
    """
    depth = min(max(depth or _DEFAULT_DEPTH, 1), scope.limits.depth)
    room = scope.limits.entries
    folders, is_cut = dict[Parts, TreeFolder](), False
    with scope.root.folder(path) as place:
        waiting = deque([place.parts])
        while waiting:
            parts = waiting.popleft()
            scope.budget.check()
            if folders and (room <= 0 or scope.budget.is_over):
                is_cut = True
                break
            try:
                with scope.root.folder("/".join(parts)) as inner:
                    rules = () if with_ignored else ignore_files(scope.root, inner)
                    entries = entries_of(inner.folder, parts, rules, scope.limits.scanned)
                    if hidden is not None:
                        shown = (entry for entry in entries if not entry.is_ignored)
                        base = len(place.parts)
                        entries = [one for one in shown if not any(each.matches(one.parts[base:]) for each in hidden)]
                    items = tuple(map(_item, entries[:room]))
            except ToolRefused:  # deleted, not readable, or not a folder any more
                continue
            room -= len(items)
            folders[parts] = TreeFolder(items, len(entries) - len(items))
            if len(parts) - len(place.parts) < depth - 1:
                inner_folders = (item for item in items if item.kind == "folder" and not item.is_ignored)
                waiting += [item.parts for item in inner_folders if item.name != ".git"]
    return Tree(path=place.inside, base=place.parts, folders=folders, is_cut=is_cut)


def find_files(scope: Scope, pattern: str, path: str = ".", *, with_ignored: bool = False, most: int = 0) -> FoundFiles:
    """most: 0 for the number that the limits allow."""
    patterns, count = Patterns(pattern), 0

    def dated() -> Iterator[tuple[int, Parts]]:
        nonlocal count
        for entry in walk.files_below(place):
            if patterns.matches(entry.parts[len(place.parts) :]):
                try:
                    changed = os.lstat(entry.name, dir_fd=entry.folder).st_mtime_ns
                except OSError:  # deleted in the meantime
                    continue
                count += 1
                yield -changed, entry.parts

    with scope.root.folder(path) as place:
        walk = Walk(scope, with_ignored=with_ignored)
        newest = heapq.nsmallest(most or scope.limits.entries, dated())
    paths = [display_path("/".join(parts)) for _, parts in newest]
    return FoundFiles(paths=paths, count=count, stopped=walk.stopped)


def entries_of(folder: int, parts: Parts, rules: tuple[IgnoreFile, ...], most: int) -> list[FolderEntry]:
    """The entries of an open folder, sorted by name; if there are more than `most`, one more than that."""
    with os.scandir(folder) as scan:
        found = [(entry.name, _kind(entry)) for entry in islice(scan, most + 1)]
    entries = list[FolderEntry]()
    for name, kind in sorted(found):
        inner = (*parts, name)
        ignored = bool(rules) and is_ignored(rules, inner, is_folder=kind == "folder")
        entries.append(FolderEntry(folder=folder, name=name, parts=inner, kind=kind, is_ignored=ignored))
    return entries


def ignore_files(root: Root, place: Place) -> tuple[IgnoreFile, ...]:
    """The .gitignore files from the root down to a folder, never one above the root."""
    files = list[IgnoreFile]()
    for depth in range(len(place.parts)):
        with root.folder("/".join(place.parts[:depth])) as above:
            files += _ignore_file(above.folder, above.parts)
    return (*files, *_ignore_file(place.folder, place.parts))


def _ignore_file(folder: int, parts: Parts) -> tuple[IgnoreFile, ...]:
    place = Place(folder=folder, name=_IGNORE_FILE, parts=(*parts, _IGNORE_FILE))
    try:
        os.lstat(_IGNORE_FILE, dir_fd=folder)
        with open_file(place, _IGNORE_FILE) as file:
            text = read_all(file, _MAX_IGNORE_FILE, _IGNORE_FILE).decode("utf-8", "surrogateescape")
    except (OSError, ToolRefused):
        return ()
    return (IgnoreFile(text, len(parts)),)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _item(entry: FolderEntry) -> TreeItem:
    kind, size, target = entry.kind, 0, ""
    try:
        if kind == "link":
            target = os.readlink(entry.name, dir_fd=entry.folder)
        elif kind == "file":
            found = os.lstat(entry.name, dir_fd=entry.folder)
            kind, size = ("file" if stat.S_ISREG(found.st_mode) else "other"), found.st_size
    except OSError:
        kind = "gone"
    return TreeItem(
        name=entry.name, parts=entry.parts, kind=kind, is_ignored=entry.is_ignored, size=size, target=target
    )
