"""Undoes what `toolwire connect --write` changed in a settings file, and keeps what was changed there later.

A journal in the state folder has one record for each write: the backup, and a hash of every line that was written. The hashes show which lines of
the file are still ours without storing its content again. Undo replaces exactly these lines by those of the backup. Lines that were
changed on both sides are a conflict, and the file stays as it is.
"""

from __future__ import annotations

import difflib
import os
import tempfile
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct
from platformdirs import user_state_path

from ...errors import ConfigError
from . import json_text
from .client import Format
from .settings_file import NO_SECRET, FileChange, read_settings

_MAX_RECORDS = 500  # the oldest are dropped
_EMPTY = ("", "{}", "[]")


class WriteRecord(Struct, frozen=True, kw_only=True):
    """path: of the file itself, not of a link to it. backup is "" for a file that did not exist. lines: hashes of what was written."""

    path: str
    backup: str
    lines: tuple[str, ...]


class WriteJournal:
    """file is created by the first write."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or user_state_path("toolwire", appauthor=False) / "connect.json"

    def add(self, change: FileChange, backup: Path | None, kind: Format) -> None:
        """Raises ConfigError if it cannot be written."""
        record = WriteRecord(
            path=str(change.target), backup=str(backup or ""), lines=tuple(_keys(_split(change.after), kind))
        )
        self._write([*self._read(), record])

    def records(self, target: Path) -> list[WriteRecord]:
        """The writes to this file, the newest first."""
        return [record for record in reversed(self._read()) if record.path == str(target)]

    def forget(self, target: Path) -> None:
        self._write([record for record in self._read() if record.path != str(target)])

    def _read(self) -> list[WriteRecord]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=list[WriteRecord])
        except FileNotFoundError:
            return []
        except (OSError, msgspec.DecodeError):
            raise ConfigError(
                "the journal of earlier writes cannot be read.", where=str(self._file), hint="Delete it."
            ) from None

    def _write(self, records: Sequence[WriteRecord]) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor, name = tempfile.mkstemp(prefix=f".{self._file.name}.", dir=self._file.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(records[-_MAX_RECORDS:]))
            os.replace(name, self._file)
        except OSError as error:
            message = f"the journal for --undo cannot be written: {error.strerror}."
            raise ConfigError(message, where=str(self._file)) from None


def plan_undo(path: Path, kind: Format, records: Sequence[WriteRecord]) -> FileChange:
    """What the file is without the writes of these records, the newest first. after is "" if toolwire created the file and nothing else is in it.

    Raises ConfigError if the file was changed in the same lines, or a backup is gone.
    """
    target = Path(os.path.realpath(path))
    now = text = read_settings(target) or ""
    for record in records:
        before = _before(record, text)
        merged = _undo(record, before, text, kind)
        if merged is None or not _is_valid(merged, kind):
            backup = f" The file before it is {record.backup}." if record.backup else ""
            raise ConfigError(
                "this file was changed after `toolwire connect --write`, in the same lines.",
                where=str(path),
                hint=f"Remove the settings of toolwire by hand.{backup}",
            )
        text = merged
    if not records[-1].backup and "".join(text.split()) in _EMPTY:
        text = ""
    return FileChange(path=path, target=target, before=now, after=text, secret=NO_SECRET)


def _before(record: WriteRecord, text: str) -> str:
    if not record.backup:
        opening = text.strip()[:1]
        return {"{": "{\n}\n", "[": "[\n]\n"}.get(opening, "")
    before = read_settings(Path(record.backup))
    if before is None:
        raise ConfigError(
            "this backup is gone, so the file cannot be restored.",
            where=record.backup,
            hint="Remove the settings of toolwire by hand.",
        )
    return before


def _undo(record: WriteRecord, before: str, now: str, kind: Format) -> str | None:
    """None if the same lines were changed later."""
    before_lines, now_lines = _split(before), _split(now)
    now_keys = _keys(now_lines, kind)
    if tuple(now_keys) == record.lines:
        return before
    places = _places(record.lines, now_keys)
    hunks = difflib.SequenceMatcher(None, record.lines, _keys(before_lines, kind), autojunk=False).get_opcodes()
    for tag, start, end, first, last in reversed(hunks):
        if tag == "equal":
            continue
        span = _span(places, start, end)
        if span is None:
            return None
        now_lines[span[0] : span[1]] = before_lines[first:last]
        if kind == "json":
            _fix_comma(now_lines, span[0] + last - first - 1)
            _fix_comma(now_lines, span[0] - 1)
    return "".join(now_lines)


def _places(written: Sequence[str], now: Sequence[str]) -> dict[int, int]:
    """The index of each written line that is still there."""
    blocks = difflib.SequenceMatcher(None, written, now, autojunk=False).get_matching_blocks()
    return {block.a + offset: block.b + offset for block in blocks for offset in range(block.size)}


def _span(places: dict[int, int], start: int, end: int) -> tuple[int, int] | None:
    """Where the written lines from start to end are now. None if they are not together, or not all there."""
    if start == end:  # lines that the write removed: after the line before them
        at = places[start - 1] + 1 if start - 1 in places else places.get(start, None if start else 0)
        return None if at is None else (at, at)
    found = [places.get(index) for index in range(start, end)]
    first = found[0]
    if first is None or found != list(range(first, first + len(found))):
        return None
    return first, first + len(found)


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _keys(lines: Sequence[str], kind: Format) -> list[str]:
    """In JSON a comma at the end of a line depends on the next one."""
    ends = " \t\r\n," if kind == "json" else "\r\n"
    return [sha256(line.rstrip(ends).encode("utf-8", "surrogatepass")).hexdigest()[:16] for line in lines]


def _fix_comma(lines: list[str], index: int) -> None:
    """A comma after this line if another element follows, and none otherwise. Lines with a comment stay."""
    while index >= 0 and not lines[index].strip():
        index -= 1
    if index < 0 or "//" in lines[index].partition('"')[0] or lines[index].rstrip().endswith("*/"):
        return
    text = lines[index].rstrip("\r\n")
    body, end = text.rstrip(" \t,"), lines[index][len(text) :]
    following = next((line.strip() for line in lines[index + 1 :] if line.strip()), "}")
    is_followed = not following.startswith(("}", "]")) and not body.endswith(("{", "["))
    lines[index] = f"{body}{',' if is_followed else ''}{end}"


def _is_valid(text: str, kind: Format) -> bool:
    with suppress(ConfigError, ValueError, RecursionError):
        if kind == "toml":
            tomllib.loads(text)
        elif kind == "json" and text.strip():
            json_text.parse(text)
        return True
    return False
