"""Errors of the store: for the owner at start, for clients later."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ...errors import BadRequest, ConfigError, GatewayError, InternalError
from ...installation import install_command

UNWRITABLE = "store_unwritable"
DAMAGED = "store_damaged"
UNAVAILABLE = "store_unavailable"

_MOVE_AWAY = "Move it away to start with an empty store, or set path under [store] to another file."

# By SQLite's primary result code: what is wrong with the file, and what its owner can do.
_MEANING: dict[int, tuple[str, str, str]] = {
    sqlite3.SQLITE_FULL: (UNAVAILABLE, "the disk has no room left.", "Free some space."),
    sqlite3.SQLITE_BUSY: (UNAVAILABLE, "another program has locked it.", "Stop that program, or try again."),
    sqlite3.SQLITE_LOCKED: (UNAVAILABLE, "another program has locked it.", "Stop that program, or try again."),
    sqlite3.SQLITE_IOERR: (UNAVAILABLE, "the disk refuses to read or write it.", "Check the disk and its quota."),
    sqlite3.SQLITE_READONLY: (UNWRITABLE, "it cannot be written.", "Give this user the right to write it."),
    sqlite3.SQLITE_CANTOPEN: (
        UNWRITABLE,
        "it cannot be opened.",
        "Give this user the right to write it and its folder.",
    ),
    sqlite3.SQLITE_PERM: (UNWRITABLE, "it cannot be written.", "Give this user the right to write it."),
    sqlite3.SQLITE_CORRUPT: (DAMAGED, "it is damaged.", _MOVE_AWAY),
    sqlite3.SQLITE_NOTADB: (DAMAGED, "it is not a database.", _MOVE_AWAY),
}


def at_start(path: Path, error: Exception) -> ConfigError:
    """Why the file cannot be used, with its path, for the owner."""
    if isinstance(error, sqlite3.Error):
        code, found, hint = _MEANING.get(_primary(error), (DAMAGED, f"SQLite reports: {error}.", _MOVE_AWAY))
    else:
        reason = (isinstance(error, OSError) and error.strerror) or "unknown reason"
        code, found, hint = UNWRITABLE, f"it cannot be made: {reason}.", "Set path under [store] to another file."
    return ConfigError(f"this is where the store should be, but {found}", code=code, where=str(path), hint=hint)


def foreign(path: Path) -> ConfigError:
    message = "found a database of another program; expected a store of toolwire."
    return ConfigError(message, code=DAMAGED, where=str(path), hint=_MOVE_AWAY)


def newer(path: Path, found: int, known: int) -> ConfigError:
    message = f"found a store of version {found}, made by a newer toolwire; expected at most version {known}."
    return ConfigError(message, code=DAMAGED, where=str(path), hint=f"Upgrade toolwire. {_MOVE_AWAY}")


def no_journal(path: Path) -> ConfigError:
    message = "this file system cannot hold the store's journal, as is common for network drives."
    hint = "Set path under [store] to a file on a local disk."
    return ConfigError(message, code=UNWRITABLE, where=str(path), hint=hint)


def newer_tables(found: int, known: int) -> ConfigError:
    message = f"found tables of version {found}, made by a newer toolwire; expected at most version {known}."
    return ConfigError(message, code=DAMAGED, where="[store] url", hint="Upgrade toolwire, or use another database.")


def refused(url: str, why: str) -> ConfigError:
    """url: without its password."""
    message = f"PostgreSQL at {url} refuses: {why}."
    return ConfigError(message, code=UNWRITABLE, where="[store] url", hint="Check user, password and database.")


def while_running(error: Exception) -> GatewayError:
    """The same for a client, without the path."""
    if isinstance(error, ConfigError):
        return _unavailable(error.code, error.message)
    if isinstance(error, GatewayError):
        return error
    if isinstance(error, UnicodeEncodeError):
        return BadRequest("found an id with half of a surrogate pair in it; expected Unicode text.")
    if isinstance(error, sqlite3.Error):
        code, found, _ = _MEANING.get(_primary(error), (UNAVAILABLE, "SQLite refuses.", ""))
        return _unavailable(code, f"the store cannot be used now: {found}")
    if type(error).__module__.startswith("asyncpg") or isinstance(error, OSError):
        return _of_postgres(error)
    return InternalError(f"the store failed with {type(error).__name__}.")


def no_reply() -> InternalError:
    return _unavailable(UNAVAILABLE, "PostgreSQL does not reply.")


def refused_now() -> InternalError:
    return _unavailable(UNAVAILABLE, "PostgreSQL refuses the connection.")


def no_driver() -> ConfigError:
    message = "PostgreSQL needs the package asyncpg, which is not installed."
    return ConfigError(message, where="[store] url", hint=f"Install it: {install_command('postgres')}")


def all_busy() -> InternalError:
    return _unavailable(UNAVAILABLE, "all connections to PostgreSQL are busy.")


def _of_postgres(error: Exception) -> InternalError:
    """By SQLSTATE; errors without one come from the connection."""
    state = str(getattr(error, "sqlstate", None) or "")
    if state in ("53100", "53200"):
        return _unavailable(UNAVAILABLE, "PostgreSQL has no room left.")
    if state == "53300":
        return _unavailable(UNAVAILABLE, "PostgreSQL has too many connections.")
    if state == "25006":
        return _unavailable(UNAVAILABLE, "PostgreSQL is read-only now.")
    if state and not state.startswith(("08", "57")):
        return _unavailable(UNAVAILABLE, f"PostgreSQL reports SQLSTATE {state}.")
    return _unavailable(UNAVAILABLE, "PostgreSQL cannot be reached.")


def for_owner(path: Path | str, error: GatewayError) -> ConfigError:
    """An error of a store in use, for an owner at the command line: with the path and a hint."""
    hints = {DAMAGED: _MOVE_AWAY, UNWRITABLE: "Give this user the right to write it and its folder."}
    hint = hints.get(error.code, "Try again, or set path under [store] to another file.")
    return ConfigError(error.message, code=error.code, where=str(path), hint=hint)


def too_large(found: int, most: int) -> BadRequest:
    """For an answer, or items appended together, that would evict everything else; sizes are in bytes."""
    message = f"found {_kilobytes(found)} to store; expected at most {_kilobytes(most)}."
    hint = 'Send "store": false, or let the owner of this gateway raise max_mb under [store].'
    return BadRequest(message, status=413, code="too_large_to_store", hint=hint)


def no_room() -> InternalError:
    return _unavailable(UNAVAILABLE, "the store is full of answers that are still running or that this one continues.")


def journal_held() -> InternalError:
    return _unavailable(UNAVAILABLE, "another program prevents a checkpoint of the store's journal.")


def key_taken() -> InternalError:
    return _unavailable(UNAVAILABLE, "another id has the same key in the store by chance; a new id will work.")


def closed() -> InternalError:
    return _unavailable(UNAVAILABLE, "the store is closed, because the gateway is stopping.")


def is_full(error: Exception) -> bool:
    """Also true at the size limit of the file, which SQLite reports like a full disk."""
    return isinstance(error, sqlite3.Error) and _primary(error) == sqlite3.SQLITE_FULL


def is_locked(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error) and _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _unavailable(code: str, message: str) -> InternalError:
    hint = 'Requests that store nothing ("store": false) still work.'
    return InternalError(message, status=503, code=code, hint=hint)


def _primary(error: sqlite3.Error) -> int:
    # Errors of the module itself, such as a closed connection, have no code.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF


def _kilobytes(size: int) -> str:
    return f"{max(1, size // 1024)} KB"
