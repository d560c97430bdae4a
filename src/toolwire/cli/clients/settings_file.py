"""Changes to the settings file of a client: locate it, show the difference, back it up, replace it atomically."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from ...config.secret import Secret
from ...errors import ConfigError, quote
from . import json_text, toml_text, yaml_text
from .client import NAME, FilePlace, Format, Setting

NO_SECRET = Secret("")
_BASES = {"config": ".config", "data": ".local/share", "state": ".local/state", "cache": ".cache"}
_LONGEST = 4 * 1024 * 1024
_SECRET = re.compile(r"""((?:key|token|secret|password|authorization)[\w-]*["']?\s*[:=]\s*)(.*)""", re.IGNORECASE)
_NUMBER = re.compile(r"(\d{1,9}|true|false|null)\s*[,}\]]*\s*$")

FORMATS: dict[Format, Callable[[str, Sequence[Setting]], str]] = {
    "json": json_text.apply_settings,
    "toml": toml_text.apply_settings,
    "yaml": yaml_text.apply_settings,
}


class FileChange(Struct, frozen=True, kw_only=True):
    """path is what the client opens, target the file behind a link; before is None for a new file."""

    path: Path
    target: Path
    before: str | None
    after: str
    secret: Secret = NO_SECRET  # the key that the file will contain

    @property
    def is_needed(self) -> bool:
        return self.before != self.after


def plan(path: Path, kind: Format, settings: Sequence[Setting], secret: Secret = NO_SECRET) -> FileChange:
    """Writes nothing. Raises ConfigError if the file cannot be read, parsed or changed."""
    target = Path(os.path.realpath(path))
    try:
        before = read_settings(target)
        after = FORMATS[kind](before or "", settings)
        return FileChange(path=path, target=target, before=before, after=after, secret=secret)
    except ConfigError as error:
        raise ConfigError(error.message, where=str(path), hint=error.hint) from None


def difference(change: FileChange, *, has_unknown_key: bool = False) -> Iterator[str]:
    """A unified diff, line by line, with keys hidden. has_unknown_key: the file may contain a gateway's key that is not change.secret."""
    names = (str(change.path), str(change.path))
    before, after = (change.before or "").splitlines(), change.after.splitlines()
    hide = partial(_hide, placeholder="" if has_unknown_key else NAME)
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        if change.secret and change.secret.reveal() in line:
            line = line.replace(change.secret.reveal(), "(hidden)")
        yield line if line.startswith(("---", "+++", "@@")) else _SECRET.sub(hide, line)


def write(change: FileChange) -> Path | None:
    """Returns the backup, None for a new file. Raises ConfigError."""
    try:
        change.target.parent.mkdir(parents=True, exist_ok=True)
        backup = _back_up(change.target) if change.before is not None else None
        _replace(change.target, change.after, is_private=bool(change.secret))
    except OSError as error:
        raise ConfigError(f"this file cannot be written: {_reason(error)}.", where=str(change.path)) from None
    return backup


def replace_file(change: FileChange) -> None:
    """Without a backup, for a file that is itself a copy. Raises ConfigError."""
    try:
        change.target.parent.mkdir(parents=True, exist_ok=True)
        _replace(change.target, change.after, is_private=True)
    except OSError as error:
        raise ConfigError(f"this file cannot be written: {_reason(error)}.", where=str(change.path)) from None


def read_settings(target: Path) -> str | None:
    """None if there is no such file. Raises ConfigError."""
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
    """Preserves owner and mode; a new file, and one with a secret in it, is private."""
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


def _hide(match: re.Match[str], placeholder: str) -> str:
    """Hides values that may be secret. Our own placeholder, an opening bracket, a number (maxInputTokens) or a constant is none."""
    value = match[2]
    is_placeholder = bool(placeholder) and placeholder in value.lower()
    is_plain = is_placeholder or not value.strip('"{[ ') or _NUMBER.match(value)
    return match[0] if is_plain else f"{match[1]}(hidden)"


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def locate(place: FilePlace, given: Path | None, environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """given: the file or its folder, as passed with --file."""
    if given is not None:
        return _given_path(place, Path(os.path.expanduser(given)))
    if not place.folder:
        raise ConfigError(
            "this client has no standard place for its settings.", hint=f"Pass it with --file: PATH/{place.names[-1]}."
        )
    folder = folder_of(place.folder, place.variable, environ, platform)
    paths = [folder / name for name in place.names]
    return next((path for path in paths if path.exists()), paths[-1])


def _given_path(place: FilePlace, given: Path) -> Path:
    """A new file must have a name like the client's own, so that a missing folder does not become a file."""
    names = [Path(name).name for name in place.names]
    if os.path.isdir(given):
        return given / names[-1]
    if os.path.exists(given):
        return given
    if given.name not in names and given.suffix not in {Path(name).suffix or None for name in names}:
        expected = f"expected an existing folder, or a file in one, such as {names[-1]}."
        raise ConfigError(f"found nothing at {quote(str(given))}; {expected}", where="--file")
    if not os.path.isdir(given.parent):
        message = f"found no folder {quote(str(given.parent))}; expected an existing one."
        raise ConfigError(message, where="--file", hint="Create it first, if this is where the client looks.")
    return given


def folder_of(folder: str, variable: str, environ: Mapping[str, str], platform: str) -> Path:
    """folder: begins with ~, $config, $data, $state, $cache or $code, the user's folders for these. The variable, if it is set, takes precedence."""
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    if own := environ.get(variable) if variable else None:
        return home / own.removeprefix("~/") if own.startswith("~/") else Path(own)
    first, _, rest = folder.partition("/")
    base = {"~": home, "$code": _code(home, environ, platform)}.get(first) or _base(first[1:], home, environ)
    return base / rest if rest else base


def _base(name: str, home: Path, environ: Mapping[str, str]) -> Path:
    """The XDG specification says to ignore a relative folder."""
    given = Path(environ.get(f"XDG_{name.upper()}_HOME", ""))
    return given if given.is_absolute() else home / _BASES[name]


def _code(home: Path, environ: Mapping[str, str], platform: str) -> Path:
    if platform == "darwin":
        return home / "Library/Application Support/Code/User"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData/Roaming") / "Code/User"
    return _base("config", home, environ) / "Code/User"
