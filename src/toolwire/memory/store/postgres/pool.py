"""Connections to PostgreSQL: a few for each process, opened when needed, replaced when lost, and a circuit for an outage.

States: *up*, and *down* since a time. A failed connect, a lost connection that cannot be replaced, or a query without a reply within
`patience` seconds makes it down. While down, one task tries to connect again and again, and the first success makes it up. A call waits
for that only in the first `patience` seconds of an outage, so that a restart of the server is not noticed; after that every call fails at
once. So no call waits longer than about twice `patience`, and an outage does not delay those that come later.

This replaces asyncpg's own pool, which resets a connection after each use: a second round trip for every query.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import asyncpg

from ....errors import ConfigError, GatewayError
from .. import errors as failures
from .schema import set_up

PATIENCE = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0  # seconds between two attempts to connect during an outage
_ATTEMPTS = 3

_log = logging.getLogger("toolwire.memory.store")

Row: TypeAlias = Any  # asyncpg.Record: by index and by name

# The server, or the way to it, is the reason; the next attempt may succeed.
_LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, after a failover
)
# Two gateways changed the same rows at the same moment.
_CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
# What the owner of the gateway must change.
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidSchemaNameError,
)


class ConnectionPool:
    """Belongs to one event loop. url: with its password, which appears in no message. size: the most connections."""

    def __init__(self, url: str, *, size: int, patience: float = PATIENCE) -> None:
        self._url = url
        self._size = size
        self._patience = patience
        self._free: deque[asyncpg.Connection] = deque()
        self._count = 0  # connections that exist or are being opened
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._down_since: float | None = None
        self._why: GatewayError = failures.no_reply()
        self._refusal: ConfigError | None = None
        self._recovery: asyncio.Task[None] | None = None
        self._writes: set[asyncio.Task[list[Row]]] = set()
        self._is_set_up = False
        self._is_closed = False

    async def read(self, statement: str, *values: Any) -> list[Row]:
        """Raises GatewayError. A caller that is cancelled costs the connection."""
        return await self._run(statement, values)

    async def write(self, statement: str, *values: Any, is_repeatable: bool = True) -> list[Row]:
        """The same, but it runs to its end also if the caller is cancelled.

        A lost connection hides the outcome: then a repeatable statement is sent again, and for another one this raises.
        """
        task = asyncio.get_running_loop().create_task(self._run(statement, values, is_repeatable=is_repeatable))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return await asyncio.shield(task)

    async def open(self) -> str:
        """Connects, and returns why that is not possible now, or "". Raises ConfigError for what only the owner can change."""
        try:
            await self._run("SELECT 1", ())
        except GatewayError as error:
            if self._refusal is not None:
                raise self._refusal.fresh() from None
            return error.message
        return ""

    async def is_up(self) -> bool:
        if self._is_closed:
            return False
        with contextlib.suppress(GatewayError):
            if self._down_since is None:
                await self._run("SELECT 1", ())
        return self._down_since is None

    async def close(self) -> None:
        """Waits for writes, at most for their timeouts. Safe to call twice."""
        if self._writes:
            await asyncio.wait(self._writes, timeout=2 * self._patience)
        self._is_closed = True
        self._wake_all()
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.wait({self._recovery})
        while self._free:
            await self._close(self._free.popleft())

    async def _run(self, statement: str, values: tuple[Any, ...], *, is_repeatable: bool = True) -> list[Row]:
        for attempt in range(_ATTEMPTS):
            connection = await self._acquire()
            begun = _now()
            is_good = False
            try:
                async with asyncio.timeout(self._patience):
                    rows: list[Row] = await connection.fetch(statement, *values)
                is_good = True
            except _CONFLICTS as error:
                is_good = True
                if attempt + 1 == _ATTEMPTS:
                    raise failures.while_running(error) from None
                continue
            except TimeoutError:
                self._go_down(failures.no_reply(), begun)
                raise failures.no_reply() from None
            except _LOST as error:
                if not is_repeatable or attempt + 1 == _ATTEMPTS:
                    raise failures.while_running(error) from None
                continue
            except asyncpg.PostgresError as error:
                is_good = True
                raise failures.while_running(error) from None
            finally:
                self._release(connection, is_good=is_good)
            return rows
        raise AssertionError("the loop returns or raises")

    async def _acquire(self) -> asyncpg.Connection:
        deadline = _now() + self._patience
        while True:
            if self._is_closed:
                raise failures.closed()
            if self._down_since is not None:
                if self._refusal is not None or _now() >= self._down_since + self._patience:
                    raise self._why.fresh()
                await self._wait(self._down_since + self._patience)
                continue
            while self._free:
                connection = self._free.pop()
                if not connection.is_closed():
                    return connection
                self._count -= 1
            if self._count < self._size:
                self._count += 1
                try:
                    return await self._connect()
                except BaseException as error:
                    self._count -= 1
                    self._wake_one()
                    if not isinstance(error, GatewayError):
                        raise
                    self._go_down(error, _now())
                    continue
            if _now() >= deadline:
                raise failures.all_busy()
            await self._wait(deadline)

    async def _wait(self, until: float) -> None:
        """Until a connection is free, the state changes, or this time."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            async with asyncio.timeout(max(0.0, until - _now())):
                await future
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._wake_one()  # what this caller was woken for is for the next one
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(future)

    async def _connect(self) -> asyncpg.Connection:
        """Raises GatewayError: a ConfigError if the server refuses this user or has no such database."""
        connection: asyncpg.Connection | None = None
        try:
            async with asyncio.timeout(self._patience):
                connection = await asyncpg.connect(
                    self._url, timeout=self._patience, server_settings={"application_name": "toolwire"}
                )
                if not self._is_set_up:
                    await set_up(connection)
                    self._is_set_up = True
        except BaseException as error:
            if connection is not None:
                connection.terminate()
            if isinstance(error, _REFUSED):
                raise failures.refused(shown_url(self._url), str(error)) from None
            if isinstance(error, TimeoutError):
                raise failures.no_reply() from None
            if isinstance(error, asyncpg.PostgresError | OSError | asyncpg.InterfaceError | ValueError):
                raise failures.while_running(error) from None
            raise
        return connection

    def _release(self, connection: asyncpg.Connection, *, is_good: bool) -> None:
        if is_good and not connection.is_closed() and not self._is_closed:
            self._free.append(connection)
        else:
            self._count -= 1
            connection.terminate()
        self._wake_one()

    def _go_down(self, why: GatewayError, since: float) -> None:
        if self._down_since is None and not self._is_closed:
            self._down_since = since
            self._note(why)
            _log.warning("the store is unavailable: %s Requests without stored state still work.", why.message)
            while self._free:
                self._free.popleft().terminate()
                self._count -= 1
            self._recovery = asyncio.get_running_loop().create_task(self._recover())

    async def _recover(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                connection = await self._connect()
            except GatewayError as error:
                self._note(error)
                continue
            self._count += 1
            self._free.append(connection)
            self._down_since = self._refusal = None
            _log.warning("the store is available again")
            self._wake_all()
            return

    def _note(self, why: GatewayError) -> None:
        """Clients do not read what the owner must change, which names user and host."""
        self._refusal = why if isinstance(why, ConfigError) else None
        self._why = failures.refused_now() if isinstance(why, ConfigError) else why

    def _wake_one(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return

    def _wake_all(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def _close(self, connection: asyncpg.Connection) -> None:
        try:
            async with asyncio.timeout(1.0):
                await connection.close()
        except Exception:  # the process ends; the server notices the closed socket
            connection.terminate()


def shown_url(url: str) -> str:
    """Without password and parameters, for messages."""
    try:
        parts = urlsplit(url)
        user = f"{parts.username}@" if parts.username else ""
        hosts = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "postgresql://..."
    return f"{parts.scheme}://{user}{hosts}{parts.path}"


def _now() -> float:
    return asyncio.get_running_loop().time()
