"""Opens the configured store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ...config.file import StoreConfig, default_store_path
from ...errors import ConfigError
from . import errors as failures
from .base import Store
from .memory import MemoryStore
from .pruning import bounds_of
from .session import StoreSession
from .sqlite import PATIENCE, SqliteStore

_DAY = 86400.0


class OpenedStore(Struct, frozen=True):
    """warning: a message for the owner, or ""."""

    store: Store
    warning: str = ""


def store_for(config: StoreConfig, *, connections: int | None = None) -> OpenedStore:
    """The store of a configuration. connections: instead of the configured ones. Raises ConfigError."""
    return open_store(
        kind=config.kind,
        path=config.path,
        default_path=default_store_path(),
        max_age_days=config.max_age_days,
        max_mb=config.max_mb,
        url=config.url.reveal(),
        connections=connections or config.connections,
    )


def opened_store(config: StoreConfig, say: Callable[..., None]) -> Store:
    """The same for a server. say: writes a warning for the owner, as level and text, to the log."""
    opened = store_for(config)
    if opened.warning:
        say("warning", opened.warning)
    return opened.store


async def report_outage(store: Store, say: Callable[..., None]) -> None:
    """A store that is down now is no reason not to start. Raises ConfigError for one that cannot be used."""
    if why := await store.open():
        say("warning", f"the store cannot be used yet: {why} Requests without stored state work.")


def open_store(
    *,
    kind: Literal["sqlite", "memory", "postgres"],
    path: str,
    default_path: Path,
    max_age_days: int,
    max_mb: int,
    url: str = "",
    connections: int = 8,
) -> OpenedStore:
    """url and connections: for PostgreSQL. The file is path, or default_path if that is "". It is created and checked now, but opened with the first query, so that workers can
    be forked in between. Raises ConfigError; only if no path is configured and the default is not writable, answers are stored in memory.
    """
    max_bytes, max_age = max_mb << 20, max_age_days * _DAY
    if kind == "memory":
        return OpenedStore(MemoryStore(max_bytes=max_bytes, max_age=max_age))
    if kind == "postgres":
        return OpenedStore(_postgres(url, max_bytes, max_age, connections))
    file = Path(path) if path else default_path
    try:
        _check_file(file, max_bytes, max_age)
    except ConfigError as error:
        if path or error.code != failures.UNWRITABLE:
            raise
        warning = f"{error.sentence()} Until then answers are stored in memory and lost when the gateway stops."
        return OpenedStore(MemoryStore(max_bytes=max_bytes, max_age=max_age), warning)
    return OpenedStore(SqliteStore(file, max_bytes=max_bytes, max_age=max_age))


def _postgres(url: str, max_bytes: int, max_age: float, connections: int) -> Store:
    """Its driver is an extra, and is imported only here."""
    try:
        from .postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise failures.no_driver() from None
    return PostgresStore(url, max_bytes=max_bytes, max_age=max_age, connections=connections)


def _check_file(path: Path, max_bytes: int, max_age: float) -> None:
    session = StoreSession(path, bounds_of(max_bytes), max_age, PATIENCE)
    try:
        session.fit()
    except sqlite3.Error as error:
        raise failures.at_start(path, error) from None
    finally:
        session.close()
