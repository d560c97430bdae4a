"""The parts of the workspace's Git repository from which git takes programs to run: read-only for commands in the sandbox.

A command may commit, so `.git` stays writable, but its hooks, its configuration and its submodules are mounted read-only. `.git` itself
is a mount point as well, because a folder that only contains mount points could be renamed and replaced by another one. A file
`.git/commondir` would make git read hooks and configuration from elsewhere. It cannot be covered by a mount without leaving a file
behind that breaks git, so one that appears during a command is removed after it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .messages import Refused

_FOLDER = ".git"
_ALWAYS = ("hooks", "config")  # created where they are missing, so that a command cannot create them
_IF_PRESENT = ("config.worktree", "modules")
_REDIRECT = "commondir"


@contextmanager
def protected(root: str) -> Iterator[list[str]]:
    """Arguments of bubblewrap for one command in root. Raises Refused where a link stands in the place of a protected entry."""
    git = os.path.join(root, _FOLDER)
    kind = _kind_of(git)
    if kind != stat.S_IFDIR:
        yield [] if kind is None else ["--ro-bind", git, git]
        return
    arguments = ["--bind", git, git, *_read_only(git)]
    redirect = os.path.join(git, _REDIRECT)
    was_redirected = os.path.lexists(redirect)
    try:
        yield arguments
    finally:
        if not was_redirected:
            _remove(redirect)


def _read_only(git: str) -> Iterator[str]:
    for name in (*_ALWAYS, *_IF_PRESENT):
        path = os.path.join(git, name)
        if _kind_of(path) is None and name in _ALWAYS:
            _create(path)
        if _kind_of(path) is not None:
            yield from ("--ro-bind", path, path)


def _kind_of(path: str) -> int | None:
    """None if there is nothing at path."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode):
        raise Refused(
            f"{os.path.join(*path.split(os.sep)[-2:])} is a symbolic link, which the sandbox cannot make read-only, "
            "so no command is run; ask the person to replace it (hooks: by core.hooksPath)."
        )
    return stat.S_IFMT(mode)


def _create(path: str) -> None:
    """An empty hooks folder and an empty configuration mean the same to git as none."""
    with suppress(OSError):
        if path.endswith("hooks"):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))


def _remove(path: str) -> None:
    """Git reads only a file there; a folder makes it fail, and is harmless."""
    with suppress(OSError):
        os.unlink(path)
