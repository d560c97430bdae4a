"""A random secret in a file that only the user of this machine can read, created when it is first needed."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

from ..errors import ConfigError
from .secret import Secret
from .values import Config

FILE_NAME = "gateway-secret"
MIN_LENGTH = 16  # of a secret that the user chose
_BYTES = 32
_MAX_LENGTH = 4096
_SECRET = re.compile(rf"[\x21-\x7e]{{{MIN_LENGTH},{_MAX_LENGTH}}}")


def is_strong(text: str) -> bool:
    """Whether it is long enough, printable ASCII and without blanks."""
    return _SECRET.fullmatch(text) is not None


def stored_secret(path: Path) -> str:
    """The secret in this file, created if there is none. Raises OSError if it can be neither read nor created."""
    return _read(path) or _create(path)


def sealing_secrets(config: Config) -> Sequence[Secret]:
    """Those of the owner; without any, gateways of a cluster use one that they all can derive."""
    cluster = config.cluster
    if config.server.secrets or cluster is None or cluster.is_own:
        return config.server.secrets
    return (Secret(blake2b(cluster.secret.reveal().encode(), digest_size=32, person=b"toolwire-seal").hexdigest()),)


def seal_secrets(given: Sequence[Secret], folder: Path | None) -> Callable[[], tuple[bytes, ...]]:
    """The secrets that the owner has set, else one in a file of this folder; without a folder one that ends with the process.

    They are read at the first call, which raises ConfigError if the file can be neither read nor created."""

    @cache
    def secrets() -> tuple[bytes, ...]:
        if given:
            return tuple([secret.reveal().encode() for secret in given])
        if folder is None:
            return (os.urandom(_BYTES),)
        path = folder / FILE_NAME
        try:
            return (stored_secret(path).encode(),)
        except OSError as error:
            raise ConfigError(
                f"the secret of the gateway cannot be stored: {error.strerror or 'unknown reason'}.",
                where=str(path),
                hint="Let this user write there, or set [server] secrets.",
            ) from None

    return secrets


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
    return text if _SECRET.fullmatch(text) else ""


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
