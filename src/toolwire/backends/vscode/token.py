"""The token that a VS Code window needs to connect, in a file that only the user of this machine can read.

The gateway creates the file when it first starts, and the extension reads it. The environment variable TOOLWIRE_BRIDGE_TOKEN takes
precedence on both sides.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from platformdirs import user_state_path

from ...errors import ConfigError

VARIABLE = "TOOLWIRE_BRIDGE_TOKEN"
FILE_NAME = "bridge-token"
_BYTES = 32
_MIN_LENGTH = 16  # of a token that the user chose
_MAX_LENGTH = 4096
_TOKEN = re.compile(rf"[\x21-\x7e]{{{_MIN_LENGTH},{_MAX_LENGTH}}}")


def token_path() -> Path:
    """The default file: on Linux ~/.local/state/toolwire/bridge-token."""
    return user_state_path("toolwire", appauthor=False) / FILE_NAME


def bridge_token(environ: Mapping[str, str], path: Path | None = None) -> str:
    """The token, created if there is none. Raises ConfigError if it can be neither read nor created."""
    if given := environ.get(VARIABLE, "").strip():
        if not _TOKEN.fullmatch(given):
            message = (
                f"found an invalid token; expected {_MIN_LENGTH} printable ASCII characters or more, without blanks."
            )
            raise ConfigError(message, where=VARIABLE)
        return given
    place = path or token_path()
    try:
        return _read(place) or _create(place)
    except OSError as error:
        raise ConfigError(
            f"the token for VS Code windows cannot be stored: {error.strerror or 'unknown reason'}.",
            where=str(place),
            hint=f"Let this user write there, or set {VARIABLE} for the gateway and for VS Code.",
        ) from None


def is_token(given: str, token: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _read(path: Path) -> str:
    """ "" if there is none, or other users could read or write it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not _is_private(os.fstat(file.fileno())):
            return ""
        text = file.read(_MAX_LENGTH + 2).decode("utf-8", "replace").strip()
    return text if _TOKEN.fullmatch(text) else ""


def _is_private(about: os.stat_result) -> bool:
    if not stat.S_ISREG(about.st_mode):
        return False
    if not hasattr(os, "getuid"):  # Windows: the folder is the user's own
        return True
    return about.st_uid == os.getuid() and not about.st_mode & 0o077


def _create(path: Path) -> str:
    """Created atomically: of several processes that create it at once, the first wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    token = secrets.token_urlsafe(_BYTES)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{token}\n")
        with suppress(OSError):  # it is there already, or this disk has no links
            os.link(new, path)
            return token
        if found := _read(path):
            return found
        os.replace(new, path)
        return token
    finally:
        with suppress(OSError):
            new.unlink()
