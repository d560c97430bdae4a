"""The tools that change a file: the whole of it, one passage, or that it is there. A file is always the old one or the new one, never
half of it."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from msgspec import Struct

from ...errors import quote
from ..base import Output
from .confinement import Place, Root, contents, opened
from .edit import encoded, replaced
from .limits import Budget, Limits
from .messages import Refused, size_of

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BETWEEN_TRIES = 0.005
_PIECE = 1 << 20


class Write(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    content: str


class Edit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    old_text: str
    new_text: str
    replace_all: bool | None = None


def write(root: Root, limits: Limits, budget: Budget, asked: Write) -> Output:
    data = encoded(asked.content, "content")
    if len(data) > limits.file_bytes:
        raise Refused(f"content has {len(data):,} bytes, expected at most {limits.file_bytes:,}; write several files.")
    with root.place(asked.path, for_writing=True, create=True) as place, _alone_in(place.folder, budget):
        before = _replaceable(place, asked.path)
        _replace(place, data, before, budget)
        done = f"replaced, before {size_of(before.st_size)}" if before else "new"
        return Output.of_text(f"wrote {place.inside} ({size_of(len(data))}, {done}).")


def edit(root: Root, limits: Limits, budget: Budget, asked: Edit) -> Output:
    with root.place(asked.path, for_writing=True) as place, _alone_in(place.folder, budget):
        with opened(place, asked.path) as file:
            before = os.fstat(file)
            data = contents(file, limits.file_bytes, asked.path)
        everywhere = bool(asked.replace_all)
        edited = replaced(data, asked.old_text, asked.new_text, everywhere=everywhere, most=limits.file_bytes)
        now = _replaceable(place, asked.path)
        if now is None or _version(now) != _version(before):
            raise Refused(f"{quote(asked.path)} was changed by another program in the meantime; read it again.")
        _replace(place, edited.data, before, budget)
    if edited.count == 1:
        return Output.of_text(f"edited {place.inside}: 1 passage, in line {edited.line:,}.")
    return Output.of_text(f"edited {place.inside}: {edited.count:,} passages, the first in line {edited.line:,}.")


def delete(root: Root, budget: Budget, path: str) -> int:
    """The size of the file that was deleted. Of a link the link itself goes; folders stay."""
    with root.place(path, for_writing=True, follow=False) as place, _alone_in(place.folder, budget):
        if not place.name:
            raise Refused(f"{quote(path)} is a folder, expected a file; only files are deleted.")
        found = os.lstat(place.name, dir_fd=place.folder)
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
            raise Refused(f"{quote(path)} is no regular file; only files are deleted.")
        budget.check()
        os.unlink(place.name, dir_fd=place.folder)
        return found.st_size


def _replaceable(place: Place, path: str) -> os.stat_result | None:
    """The file that is there now; None if there is none yet."""
    if not place.name:
        raise Refused(f"{quote(path)} is a folder, expected a file; add a file name.")
    try:
        found = os.lstat(place.name, dir_fd=place.folder)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{quote(path)} is no regular file, so it is not replaced; choose another name.")
    if not found.st_mode & 0o222:
        raise Refused(f"{quote(path)} is set read-only; ask the person to change its mode first.")
    return found


def _version(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _replace(place: Place, data: bytes, before: os.stat_result | None, budget: Budget) -> None:
    """By a file beside it that takes its name when it is whole."""
    beside = f".toolwire-{secrets.token_hex(8)}.tmp"
    file = os.open(beside, _NEW_FILE, 0o600 if before else 0o666, dir_fd=place.folder)
    try:
        try:
            _fill(file, data, budget)
            if before is not None:
                _take_after(file, before)
            os.fsync(file)
        finally:
            os.close(file)
        budget.check()
        os.replace(beside, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=place.folder)
        raise


def _fill(file: int, data: bytes, budget: Budget) -> None:
    rest = memoryview(data)
    while rest:
        budget.check()
        rest = rest[os.write(file, rest[:_PIECE]) :]


def _take_after(file: int, before: os.stat_result) -> None:
    with suppress(PermissionError):
        os.fchown(file, before.st_uid, before.st_gid)
    os.fchmod(file, before.st_mode & 0o777)


@contextmanager
def _alone_in(folder: int, budget: Budget) -> Iterator[None]:
    """Nobody else of us, in any thread or process, changes a file of this folder meanwhile; closing the folder lets go."""
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            budget.check()
            if budget.is_over:
                raise Refused(
                    "another program has been changing files in this folder all the time; try again."
                ) from None
            time.sleep(_BETWEEN_TRIES)
        except OSError as fault:
            if fault.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL):
                break  # some network file systems lock no folders; the check of the version is left
            raise
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)
