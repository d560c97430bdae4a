"""A private folder for Codex: our settings and the user's login, removed at the end.

It has two parts: home is CODEX_HOME, work is the empty working directory. It is not in the temporary folder if possible: Codex does not
link its own helpers there.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from platformdirs import user_cache_path

from ...config.file import is_loopback
from ...errors import UpstreamError

if sys.platform != "win32":
    import fcntl

_PREFIX = "home-"
_LOCK = "lock"
_ARCHIVE = "archived_sessions"
_LOGIN = ("auth.json", "auth.lock")
# Replaced by our own folder.
_DROPPED = frozenset({"CODEX_HOME", "CODEX_SQLITE_HOME"})
_BASE_URL = "OPENAI_BASE_URL"
_HEAD = 1000  # bytes; the session id is at the begin of the file of a thread
_ID = re.compile(r"[\w-]{1,100}")
_LOG = "RUST_LOG"
_LOGGED = "codex_core::tools=warn"  # only the log of Codex reports which tools of a client it skips


def user_home(environ: Mapping[str, str]) -> Path:
    """CODEX_HOME of the user's own Codex."""
    given = environ.get("CODEX_HOME")
    return Path(given) if given else Path(environ.get("HOME") or Path.home()) / ".codex"


class Home:
    """Several processes may use it at a time."""

    def __init__(self, settings: str, environ: Mapping[str, str], parent: Path | None = None) -> None:
        """Raises UpstreamError if it cannot be created, and then leaves nothing behind."""
        self._environ = environ
        self._login: tuple[int, ...] = ()
        try:
            self.folder, self._lock = _new_folder(parent or user_cache_path("toolwire", appauthor=False) / "codex")
        except OSError as error:
            raise no_room(error) from None
        self.home = self.folder / "home"
        self.work = self.folder / "work"
        try:
            self.home.mkdir(mode=0o700)
            self.work.mkdir(mode=0o700)
            self.write("config.toml", settings.encode())
            self.link_login()
            self._login = self._stamp()
        except OSError as error:
            self.remove()
            raise no_room(error) from None

    @property
    def is_there(self) -> bool:
        """False if something has cleaned the cache folder."""
        return self.home.is_dir() and self.work.is_dir()

    def environment(self) -> dict[str, str]:
        """The user's own, because providers take their keys from there, with our folder in place of theirs."""
        passed = {name: value for name, value in self._environ.items() if name not in _DROPPED}
        if _is_local(passed.get(_BASE_URL, "")):  # clients use it to reach a gateway; this one must not call itself
            del passed[_BASE_URL]
        return passed | {"CODEX_HOME": str(self.home), _LOG: f"{passed.get(_LOG) or 'error'},{_LOGGED}"}

    def write(self, name: str, data: bytes) -> None:
        """Only the user may read it: settings may hold a key."""
        descriptor = os.open(self.home / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)

    def delete(self, path: str) -> None:
        """Deletes the file of a conversation, also if it was archived. Paths outside of the home are ignored."""
        for place in (Path(path), self.home / _ARCHIVE / Path(path).name):
            with suppress(OSError, ValueError):
                file = place.resolve()
                if file.is_relative_to(self.home.resolve()):
                    file.unlink()

    def delete_thread(self, thread_id: str) -> None:
        """Deletes all files of a thread; after a revert there are several."""
        if _ID.fullmatch(thread_id):
            for file in self.home.glob(f"sessions/*/*/*/*{thread_id}*"):
                with suppress(OSError):
                    file.unlink()

    def set_session(self, path: str, thread_id: str, session_id: str) -> bool:
        """Replaces the session id of a new thread in its file, which Codex may have open. False if it is not where 0.166 writes it."""
        old, new = (b'"session_id":"%s"' % id.encode() for id in (thread_id, session_id))
        try:
            file = Path(path).resolve()
            if len(old) != len(new) or not file.is_relative_to(self.home.resolve()):
                return False
            with file.open("r+b") as opened:
                place = opened.readline(_HEAD).find(old)
                if place >= 0:
                    opened.seek(place)
                    opened.write(new)
                return place >= 0
        except (OSError, ValueError):
            return False

    def link_login(self) -> None:
        """Links the login before each start, and never copies it: a refresh token is valid once, and Codex writes the next one through
        the link, so the user's own Codex stays logged in (seen with 0.89 and 0.166)."""
        own = user_home(self._environ)
        for name in _LOGIN:
            if (own / name).is_file() and not os.path.lexists(self.home / name):
                (self.home / name).symlink_to((own / name).resolve())

    def has_new_login(self) -> bool:
        """Since the last call. An app-server reads the login only when it starts."""
        before, self._login = self._login, self._stamp()
        return bool(self._login) and self._login != before

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = (user_home(self._environ) / _LOGIN[0]).stat()
        except OSError:
            return ()
        return (found.st_ino, found.st_mtime_ns, found.st_size)


def no_room(error: OSError) -> UpstreamError:
    return UpstreamError(
        f"no folder for Codex could be made: {error.strerror or 'unknown reason'}.",
        code="codex_not_started",
        hint="Make room on the disk, or set XDG_CACHE_HOME to a folder that can be written to.",
    )


def _is_local(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def _new_folder(parent: Path) -> tuple[Path, int]:
    """Gets the prefix that makes it removable only once its lock is held."""
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(parent)
        new = Path(tempfile.mkdtemp(prefix="new-", dir=parent))
    except OSError:
        new = Path(tempfile.mkdtemp(prefix="toolwire-codex-"))
    lock = -1
    try:
        lock = _locked(new / _LOCK)
        return new.rename(new.with_name(_PREFIX + new.name)), lock
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        if lock >= 0:
            os.close(lock)
        raise


def _sweep(parent: Path) -> None:
    """Removes folders of gateways that were killed: their locks are free."""
    for folder in parent.glob(f"{_PREFIX}*"):
        if (folder / _LOCK).is_file() and (lock := _locked(folder / _LOCK)) >= 0:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _locked(path: Path) -> int:
    """A descriptor that holds the lock as long as it is open; -1 where another process has it or there are no locks."""
    if sys.platform == "win32":
        return -1
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return -1
    return descriptor
