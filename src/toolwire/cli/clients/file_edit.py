"""A change to a file that belongs to somebody else: shown first, backed up, then put in place in one step."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from ...config.secret import Secret
from ...errors import ConfigError
from . import json_text, toml_text, yaml_text
from .client import NAME, Format
from .settings import Setting

NO_SECRET = Secret("")
_LONGEST = 4 * 1024 * 1024
_SECRET = re.compile(r"""((?:key|token|secret|password|authorization)[\w-]*["']?\s*[:=]\s*)(.*)""", re.IGNORECASE)

FORMATS: dict[Format, Callable[[str, Sequence[Setting]], str]] = {
    "json": json_text.changed,
    "toml": toml_text.changed,
    "yaml": yaml_text.changed,
}


class Change(Struct, frozen=True, kw_only=True):
    """path is where the client looks, target the file itself when that is a link; before is None for a new file."""

    path: Path
    target: Path
    before: str | None
    after: str
    secret: Secret = NO_SECRET  # what is in it that nobody else may read

    @property
    def is_needed(self) -> bool:
        return self.before != self.after


def plan(path: Path, kind: Format, settings: Sequence[Setting], secret: Secret = NO_SECRET) -> Change:
    """Raises ConfigError when the file cannot be read, understood or changed; nothing is written."""
    target = Path(os.path.realpath(path))
    try:
        before = _read(target)
        after = FORMATS[kind](before or "", settings)
        return Change(path=path, target=target, before=before, after=after, secret=secret)
    except ConfigError as error:
        raise ConfigError(error.message, where=str(path), hint=error.hint) from None


def difference(change: Change) -> Iterator[str]:
    """A unified diff, line by line; what looks like somebody's key is hidden."""
    names = (str(change.path), str(change.path))
    before, after = (change.before or "").splitlines(), change.after.splitlines()
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        if change.secret and change.secret.reveal() in line:
            line = line.replace(change.secret.reveal(), "(hidden)")
        yield line if line.startswith(("---", "+++", "@@")) else _SECRET.sub(_hidden, line)


def write(change: Change) -> Path | None:
    """The backup that was made beside the file, None where there was no file. Raises ConfigError."""
    try:
        change.target.parent.mkdir(parents=True, exist_ok=True)
        backup = _back_up(change.target) if change.before is not None else None
        _replace(change.target, change.after, is_private=bool(change.secret))
    except OSError as error:
        raise ConfigError(f"this file cannot be written: {_reason(error)}.", where=str(change.path)) from None
    return backup


def _read(target: Path) -> str | None:
    try:
        with target.open("rb") as file:
            data = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"this file cannot be read: {_reason(error)}.") from None
    if len(data) > _LONGEST:
        raise ConfigError(f"this file has more than {_LONGEST} bytes; expected settings.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError("this file is not UTF-8.", hint="Save it as UTF-8, or change it by hand.") from None


def _back_up(target: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 1
    while True:
        backup = target.with_name(f"{target.name}.{stamp}{f'-{number}' if number > 1 else ''}.bak")
        try:
            os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
            continue
        shutil.copy2(target, backup)
        return backup


def _replace(target: Path, text: str, *, is_private: bool) -> None:
    """Owner and mode stay; a new file, and one with a secret in it, is the user's alone."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            status = target.stat()
            os.chmod(name, stat.S_IMODE(status.st_mode) & (0o700 if is_private else 0o7777))
            with contextlib.suppress(OSError, AttributeError):
                os.chown(name, status.st_uid, status.st_gid)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _hidden(match: re.Match[str]) -> str:
    return match[0] if NAME in match[2].lower() or not match[2].strip('"{[ ') else f"{match[1]}(hidden)"


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
