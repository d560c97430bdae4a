"""Read, write, edit and delete one file. Each function returns data; `render` turns it into text.

Writes are atomic: the new content goes to a temporary file in the same folder, which is then renamed.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal, TypeAlias

from msgspec import Struct

from ...dialects.shared.media.types import UTF16, looks_like_text, sniff, type_of
from ...errors import quote
from .confinement import Place, Scope, open_file, open_flags, read_all
from .limits import Budget
from .messages import ToolRefused

if sys.platform != "win32":
    import fcntl

Trait: TypeAlias = Literal["utf-16", "bom", "invalid", "crlf"]

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_HEAD = 3000
_NEW_FILE = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")
_LOCK_RETRY = 0.005
_WRITE_SIZE = 1 << 20
_LISTED = 10
_COUNTED = 10_000


class File(Struct, frozen=True, kw_only=True):
    """The bytes of a file. mime is empty for text."""

    path: str
    kind: Literal["text", "image", "binary"]
    mime: str
    data: bytes


class TextPage(Struct, frozen=True, kw_only=True):
    """Some lines of a text file, without their line ends; first is the number of the first one, counted from 1.

    Trait "invalid": bytes that are not UTF-8 are replaced by U+FFFD.
    """

    lines: list[str]
    first: int
    total: int
    traits: tuple[Trait, ...]


class WrittenFile(Struct, frozen=True, kw_only=True):
    """replaced_bytes is None for a new file."""

    path: str
    size: int
    replaced_bytes: int | None


class EditedFile(Struct, frozen=True, kw_only=True):
    """line: where the first replaced passage begins."""

    path: str
    count: int
    line: int


class Replacement(Struct, frozen=True, kw_only=True):
    data: bytes
    count: int
    line: int


class FilePreview(Struct, frozen=True, kw_only=True):
    """What a call would do to a file; before is None for a new one."""

    path: str
    before: bytes | None
    after: bytes


def preview_write(scope: Scope, path: str, content: str) -> FilePreview:
    """What write() would do. Raises ToolRefused if it would fail."""
    before: bytes | None = None
    try:
        with scope.root.place(path, for_writing=True) as place:
            if _replaceable(place, path) is not None:
                before = load(scope, path).data
    except ToolRefused as refusal:
        if not refusal.is_missing:  # else its folder does not exist yet, and write() creates it
            raise
    return FilePreview(path=path, before=before, after=_encode(content, "content"))


def preview_edit(scope: Scope, path: str, change: tuple[str, str], *, everywhere: bool) -> FilePreview:
    """What edit() would do. Raises ToolRefused if it would fail."""
    before = load(scope, path).data
    done = replace_text(before, *change, everywhere=everywhere, most=scope.limits.file_bytes)
    return FilePreview(path=path, before=before, after=done.data)


def load(scope: Scope, path: str) -> File:
    with scope.root.file(path) as (place, file):
        data = read_all(file, scope.limits.file_bytes, path)
    head = data[:_HEAD]
    mime = "" if looks_like_text(head) else sniff(head)
    if mime in _IMAGES:
        return File(path=place.inside, kind="image", mime=mime, data=data)
    if not head.startswith(UTF16) and (b"\0" in data or mime):
        return File(path=place.inside, kind="binary", mime=type_of("", place.name, head), data=data)
    return File(path=place.inside, kind="text", mime="", data=data)


def read(scope: Scope, path: str, offset: int | None = None, limit: int | None = None) -> TextPage | File:
    """A page of a text file; any other file as it is."""
    file = load(scope, path)
    if file.kind != "text":
        return file
    text, traits = _decode(file.data)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    first = max(offset or 1, 1)
    if lines and first > len(lines):
        raise ToolRefused(f"{quote(path)} has {len(lines):,} lines, found offset {first:,}; begin at an earlier line.")
    most = min(max(limit or scope.limits.lines, 1), scope.limits.lines)
    page = lines[first - 1 : first - 1 + most]
    return TextPage(lines=page, first=first, total=len(lines), traits=traits)


def write(scope: Scope, path: str, content: str) -> WrittenFile:
    """Creates the file, with its folders, or replaces it."""
    data, most = _encode(content, "content"), scope.limits.file_bytes
    if len(data) > most:
        raise ToolRefused(f"content has {len(data):,} bytes, expected at most {most:,}; write several files.")
    with (
        scope.root.place(path, for_writing=True, create=True) as place,
        _folder_locked(place.folder, scope.budget),
    ):
        before = _replaceable(place, path)
        _replace(place, data, before, scope.budget)
    return WrittenFile(path=place.inside, size=len(data), replaced_bytes=before.st_size if before else None)


def edit(scope: Scope, path: str, changes: list[tuple[str, str]], *, everywhere: bool = False) -> EditedFile:
    """Applies (old text, new text) pairs in order, all of them or none."""
    with scope.root.place(path, for_writing=True) as place, _folder_locked(place.folder, scope.budget):
        with open_file(place, path) as file:
            before = os.fstat(file)
            data = read_all(file, scope.limits.file_bytes, path)
        count = line = 0
        for old_text, new_text in changes:
            done = replace_text(data, old_text, new_text, everywhere=everywhere, most=scope.limits.file_bytes)
            data, count, line = done.data, count + done.count, line or done.line
        now = _replaceable(place, path)
        if now is None or _version(now) != _version(before):
            raise ToolRefused(f"{quote(path)} was changed by another program in the meantime; read it again.")
        _replace(place, data, before, scope.budget)
    return EditedFile(path=place.inside, count=count, line=line)


def delete(scope: Scope, path: str) -> int:
    """Deletes a file, or a link itself, and returns its size. Folders are refused."""
    with (
        scope.root.place(path, for_writing=True, follow=False) as place,
        _folder_locked(place.folder, scope.budget),
    ):
        if not place.name:
            raise ToolRefused(f"{quote(path)} is a folder, expected a file; only files are deleted.")
        found = os.lstat(place.name, dir_fd=place.folder)
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
            raise ToolRefused(f"{quote(path)} is no regular file; only files are deleted.")
        scope.budget.check()
        os.unlink(place.name, dir_fd=place.folder)
        return found.st_size


def replace_text(data: bytes, old_text: str, new_text: str, *, everywhere: bool, most: int) -> Replacement:
    """Replaces the only occurrence of old_text, or all of them. It works on bytes, so the rest of the file stays as it is."""
    old, new = _with_line_ends_of(data, _encode(old_text, "old_text"), _encode(new_text, "new_text"))
    if data.startswith(UTF16):
        raise ToolRefused("the file is UTF-16, expected UTF-8; write it anew with write, or leave it.")
    if not old:
        raise ToolRefused("old_text is empty, expected the passage to replace; to make a new file use write.")
    if old == new:
        raise ToolRefused("old_text and new_text are the same, so nothing would change.")
    offsets = _offsets(data, old)
    if not offsets:
        raise ToolRefused(f"old_text is not in the file: found 0 matches, expected 1.{_hint(data, old)}")
    if len(offsets) > 1 and not everywhere:
        lines = ", ".join(str(_line(data, offset)) for offset in offsets[:_LISTED])
        more = " and more" if len(offsets) > _LISTED else ""
        raise ToolRefused(
            f"old_text is ambiguous: found {len(offsets):,} matches, in lines {lines}{more}; expected 1. "
            "Add lines around the passage that is meant, or set replace_all."
        )
    count = data.count(old)
    if len(data) + count * (len(new) - len(old)) > most:
        raise ToolRefused(f"the file would have more than {most:,} bytes; make smaller changes.")
    return Replacement(data=data.replace(old, new), count=count, line=_line(data, offsets[0]))


def _decode(data: bytes) -> tuple[str, tuple[Trait, ...]]:
    if data.startswith(UTF16):
        return data.decode("utf-16", "replace"), ("utf-16",)
    traits = list[Trait]()
    if data.startswith(BOM_UTF8):
        data = data[len(BOM_UTF8) :]
        traits.append("bom")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        traits.append("invalid")
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        traits.append("crlf")
    return text, tuple(traits)


def _encode(text: str, name: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolRefused(
            f"{name} holds half a character (a lone surrogate), which UTF-8 cannot; write it in full."
        ) from None


def _with_line_ends_of(data: bytes, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Models write LF. In a CRLF file both get CRLF; in a mixed one only if old is not there as it is."""
    crlf = data.count(b"\r\n")
    if not crlf or (crlf < data.count(b"\n") and old in data):
        return old, new
    return _crlf(old), _crlf(new)


def _crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _offsets(data: bytes, old: bytes) -> list[int]:
    """Overlaps included: "aa" in "aaa" is ambiguous."""
    offsets, at = list[int](), data.find(old)
    while at >= 0 and len(offsets) < _COUNTED:
        offsets.append(at)
        at = data.find(old, at + 1)
    return offsets


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _hint(data: bytes, old: bytes) -> str:
    """Names the place where the lines differ only in white space, the most frequent mistake."""
    wanted = _strip_lines(old).strip(b"\n")
    present = _strip_lines(data)
    at = (b"\n" + present + b"\n").find(b"\n" + wanted + b"\n") if wanted else -1
    if at < 0:
        return " Read the file again and copy the passage exactly, without line numbers."
    line = _line(present, at)
    return f" The same with other white space begins in line {line}: copy it exactly, with its indentation."


def _strip_lines(text: bytes) -> bytes:
    return b"\n".join(line.strip() for line in text.split(b"\n"))


def _replaceable(place: Place, path: str) -> os.stat_result | None:
    """The existing file; None if there is none."""
    if not place.name:
        raise ToolRefused(f"{quote(path)} is a folder, expected a file; add a file name.")
    try:
        found = os.lstat(place.name, dir_fd=place.folder)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ToolRefused(f"{quote(path)} is no regular file, so it is not replaced; choose another name.")
    if not found.st_mode & 0o222:
        raise ToolRefused(f"{quote(path)} is set read-only; ask the person to change its mode first.")
    return found


def _version(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _replace(place: Place, data: bytes, before: os.stat_result | None, budget: Budget) -> None:
    temporary = f".toolwire-{secrets.token_hex(8)}.tmp"
    file = os.open(temporary, _NEW_FILE, 0o600 if before else 0o666, dir_fd=place.folder)
    try:
        try:
            rest = memoryview(data)
            while rest:
                budget.check()
                rest = rest[os.write(file, rest[:_WRITE_SIZE]) :]
            if before is not None:
                with suppress(PermissionError):
                    os.fchown(file, before.st_uid, before.st_gid)
                os.fchmod(file, before.st_mode & 0o777)
            os.fsync(file)
        finally:
            os.close(file)
        budget.check()
        os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place.folder)
        raise


@contextmanager
def _folder_locked(folder: int, budget: Budget) -> Iterator[None]:
    """Excludes other writes of these tools to the folder, from any thread or process."""
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            budget.check()
            if budget.is_over:
                raise ToolRefused(
                    "another program has been changing files in this folder all the time; try again."
                ) from None
            time.sleep(_LOCK_RETRY)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL):
                break  # some network file systems cannot lock folders; the check of the version remains
            raise
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_UN)
