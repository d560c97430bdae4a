"""The one secret that a VS Code window must know to connect: a file that only the user of this machine can read.

Both sides find it by themselves: the gateway makes the file when it first starts, the extension reads it. TOOLWIRE_BRIDGE_TOKEN in
the environment takes precedence, on either side.
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
_LEAST = 16  # letters of a token that somebody chose
_MOST = 4096
_TOKEN = re.compile(rf"[\x21-\x7e]{{{_LEAST},{_MOST}}}")


def token_path() -> Path:
    """Where the token lies when nothing else was said: on Linux ~/.local/state/toolwire/bridge-token."""
    return user_state_path("toolwire", appauthor=False) / FILE_NAME


def bridge_token(environ: Mapping[str, str], path: Path | None = None) -> str:
    """The token, made if there is none. Raises ConfigError where it can be neither read nor made."""
    if given := environ.get(VARIABLE, "").strip():
        if not _TOKEN.fullmatch(given):
            message = (
                f"found a token that is none; expected {_LEAST} printable ASCII characters or more, without blanks."
            )
            raise ConfigError(message, where=VARIABLE)
        return given
    place = path or token_path()
    try:
        return _read(place) or _made(place)
    except OSError as error:
        raise ConfigError(
            f"the token for VS Code windows cannot be kept: {error.strerror or 'unknown reason'}.",
            where=str(place),
            hint=f"Let this user write there, or set {VARIABLE} for the gateway and for VS Code.",
        ) from None


def is_token(given: str, token: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _read(path: Path) -> str:
    """ "" where there is none that can be trusted: what others could read, or have written, is no secret."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not _is_private(os.fstat(file.fileno())):
            return ""
        text = file.read(_MOST + 2).decode("utf-8", "replace").strip()
    return text if _TOKEN.fullmatch(text) else ""


def _is_private(about: os.stat_result) -> bool:
    if not stat.S_ISREG(about.st_mode):
        return False
    if not hasattr(os, "getuid"):  # Windows: the folder is the user's own
        return True
    return about.st_uid == os.getuid() and not about.st_mode & 0o077


def _made(path: Path) -> str:
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
