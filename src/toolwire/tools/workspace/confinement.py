"""Confinement of paths to one folder, the root.

A path is resolved from the root, one component at a time. Each component is opened relative to the folder before it (openat) and
never through a link (O_NOFOLLOW). Links are read and their targets resolved in the same way: an absolute target starts at the root
again, if it is inside the root at all, and ".." goes back along the open folders, never above the first. So there is no moment
between check and use: if another program swaps a folder for a link in between, the next open fails. The result is the open folder
of the last component, and every operation on the file is relative to that folder, again without following links.

Not covered: a hard link is a file of the root like any other; a mount inside the root belongs to it; and a folder that another
program moves away while it is open is still that folder.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
import unicodedata
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path

from msgspec import Struct

from ...errors import ConfigError, quote
from .limits import Budget, Limits
from .messages import ToolRefused, display_path, os_errors_refused, parse_name


def open_flags(*names: str) -> int:
    """Flags of os.open by name. Windows lacks some; modules are imported there, but `Root` refuses to open a workspace."""
    return reduce(or_, (getattr(os, name, 0) for name in names))


FOLDER = open_flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_FILE = open_flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC")

_MAX_PATH = 4096
_MAX_LINKS = 40
_MAX_FOLDERS = 128
_PROTECTED = ".git"
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Place(Struct, frozen=True, kw_only=True):
    """A resolved path: a name in an open folder, or "" for that folder itself; parts are the components from the root."""

    folder: int
    name: str
    parts: tuple[str, ...]

    @property
    def inside(self) -> str:
        return display_path("/".join(self.parts)) or "."


class Root:
    def __init__(self, path: Path) -> None:
        try:
            self.path, spelled = os.path.realpath(path), os.path.abspath(path)
        except OSError:
            message = f"the workspace {quote(str(path))} is named from the folder this was started in, which is gone."
            raise ConfigError(message, hint="Go to a folder that is there, or give the whole path.") from None
        if os.open not in os.supports_dir_fd:
            raise ConfigError("workspace tools need a system that opens files relative to a folder: Linux or macOS.")
        if not os.path.isdir(self.path):
            raise ConfigError(f"the workspace {quote(str(path))} is no folder; make it, or name another.")
        if self.path == os.path.dirname(self.path):
            raise ConfigError("the workspace is the whole file system; name a folder in it.")
        self._spellings = [_components(self.path)]
        if spelled != self.path and os.path.realpath(spelled) == self.path:
            self._spellings.append(_components(spelled))

    @contextmanager
    def place(
        self, path: str, *, for_writing: bool = False, create: bool = False, follow: bool = True
    ) -> Iterator[Place]:
        """Resolve path through all links; follow=False leaves out the last component, create makes missing folders. An OSError
        inside the block becomes a ToolRefused."""
        with os_errors_refused(path):
            resolver = _Resolver(self, path, for_writing, create, follow)
            try:
                yield resolver.resolve()
            finally:
                resolver.close()

    @contextmanager
    def folder(self, path: str) -> Iterator[Place]:
        """The folder at path, opened."""
        with self.place(path) as place:
            if not place.name:
                yield place
                return
            folder = os.open(place.name, FOLDER, dir_fd=place.folder)
            try:
                yield Place(folder=folder, name="", parts=place.parts)
            finally:
                os.close(folder)

    @contextmanager
    def file(self, path: str) -> Iterator[tuple[Place, int]]:
        """The file at path, opened for reading."""
        with self.place(path) as place, open_file(place, path) as file:
            yield place, file

    def components_below(self, path: str) -> list[str]:
        """The components of an absolute path below the root."""
        components = _components(path)
        for spelling in self._spellings:
            if components[: len(spelling)] == spelling:
                return components[len(spelling) :]
        raise ToolRefused(f"{quote(path)} lies outside of the workspace; name a path in it, relative to its root.")


class Scope(Struct, frozen=True):
    """What one call may work on, and within which limits."""

    root: Root
    limits: Limits
    budget: Budget


@contextmanager
def open_file(place: Place, path: str) -> Iterator[int]:
    """Opens a regular file for reading; anything else is refused, mostly before it is opened."""
    if not place.name:
        raise ToolRefused(f"{quote(path)} is a folder, expected a file; look with list what is in it.")
    try:
        _require_file(os.lstat(place.name, dir_fd=place.folder), path)
    except FileNotFoundError:
        raise ToolRefused(_missing_message(place, path), is_missing=True) from None
    file = os.open(place.name, _FILE, dir_fd=place.folder)
    try:
        _require_file(os.fstat(file), path)
        yield file
    finally:
        os.close(file)


def read_all(file: int, most: int, path: str) -> bytes:
    """The whole of an open file; ToolRefused if it has more than `most` bytes, or grows beyond that while it is read."""
    pieces, size = list[bytes](), 0
    while piece := os.read(file, min(1 << 20, most + 1 - size)):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            found = max(size, os.fstat(file).st_size)
            raise ToolRefused(f"{quote(path)} has {found:,} bytes, expected at most {most:,}; choose a smaller file.")
    return b"".join(pieces)


def _require_file(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        hint = "; look with list what is in it" if stat.S_ISDIR(found.st_mode) else ""
        raise ToolRefused(f"{quote(path)} is {kind}, expected a file{hint}.")


def _missing_message(place: Place, path: str) -> str:
    with os.scandir(place.folder) as entries:
        names = [display_path(entry.name) for entry in islice(entries, 2000)]
    near = difflib.get_close_matches(display_path(place.name)[:100], names, n=3)
    hint = f"beside it are {', '.join(map(quote, near))}." if near else "look with list or glob what there is."
    home = ' "~" is not expanded: paths begin at the workspace.' if path.startswith("~") else ""
    return f"there is nothing at {quote(path)}; {hint}{home}"


class _Resolver:
    """Resolves one path and holds the folders open that lead to it, the root first."""

    def __init__(self, root: Root, path: str, for_writing: bool, create: bool, follow: bool) -> None:
        self._root = root
        self._path = path
        self._for_writing = for_writing
        self._create = create
        self._follow_last = follow
        self._parts = list[str]()
        self._links = 0
        self._pending = deque(self._split(path))
        self._folders = [os.open(root.path, FOLDER)]

    def resolve(self) -> Place:
        name = self._last_name()
        if name:
            self._parts.append(name)
        return Place(folder=self._folders[-1], name=name, parts=tuple(self._parts))

    def close(self) -> None:
        while self._folders:
            os.close(self._folders.pop())

    def _split(self, path: str) -> list[str]:
        if "\0" in path:
            raise ToolRefused("a path holds a NUL character, which no file name can; leave it out.")
        try:
            size = len(os.fsencode(path))
        except UnicodeEncodeError:
            raise ToolRefused(
                f"{quote(path)} holds half a character (a lone surrogate); write the name in full."
            ) from None
        if size > _MAX_PATH:
            raise ToolRefused(f"{quote(path)} has {size:,} bytes, expected at most {_MAX_PATH}; use a shorter path.")
        return self._root.components_below(path) if path.startswith("/") else _components(path)

    def _last_name(self) -> str:
        """Opens the folders up to the last component and returns its name, "" if the path ends at a folder that is open already."""
        while self._pending:
            name = self._pending.popleft()
            if name == "..":
                self._up()
                continue
            name = self._unescaped(name)
            if (self._pending or self._follow_last) and (target := self._link_target(name)) is not None:
                self._follow(target)
                continue
            if self._for_writing and _is_protected(name):
                raise ToolRefused(
                    f"{quote(self._path)} is in a .git folder, which is not written to; leave that to git."
                )
            if not self._pending:
                return name
            self._down(name)
        return ""

    def _up(self) -> None:
        if len(self._folders) == 1:
            raise ToolRefused(
                f"{quote(self._path)} leads out of the workspace; name a path in it, relative to its root."
            )
        os.close(self._folders.pop())
        self._parts.pop()

    def _down(self, name: str) -> None:
        if len(self._folders) >= _MAX_FOLDERS:
            raise ToolRefused(
                f"{quote(self._path)} has more than {_MAX_FOLDERS} folders in folders; use a shorter path."
            )
        if self._create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._folders[-1])
        self._folders.append(os.open(name, FOLDER, dir_fd=self._folders[-1]))
        self._parts.append(name)

    def _link_target(self, name: str) -> str | None:
        try:
            return os.readlink(name, dir_fd=self._folders[-1])
        except OSError as fault:
            if fault.errno in (errno.EINVAL, errno.ENOENT):
                return None
            raise

    def _follow(self, target: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise ToolRefused(
                f"{quote(self._path)} goes through more than {_MAX_LINKS} links; they may go in a circle."
            )
        if target.startswith("/"):
            try:
                steps = self._root.components_below(target)
            except ToolRefused:
                raise ToolRefused(
                    f"{quote(self._path)} is a link that leads out of the workspace; it is not followed."
                ) from None
            while len(self._folders) > 1:
                self._up()
        else:
            steps = _components(target)
        self._pending.extendleft(reversed(steps))

    def _unescaped(self, name: str) -> str:
        """A name with \\xNN means the file that has those bytes, unless a file has that literal name."""
        other = parse_name(name) if "\\x" in name else name
        if other != name:
            try:
                os.lstat(name, dir_fd=self._folders[-1])
            except OSError:
                return other
        return name


def _components(path: str) -> list[str]:
    return [component for component in path.split("/") if component not in ("", ".")]


def _is_protected(name: str) -> bool:
    """Whether a file system may take the name for .git: other case, characters without width."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKC", name) if unicodedata.category(letter) != "Cf")
    return plain.casefold() == _PROTECTED
