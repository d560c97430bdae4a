"""The open connections of a process: their limit and their deadlines."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Callable
from typing import Protocol

from uvicorn.server import ServerState

from ..config.file import ServerConfig

_INTERVAL = 0.5  # seconds between two looks at the deadlines
_QUIET_SECONDS = 60.0  # until the same warning is logged again
_OWN_FILES = 48  # descriptors for the store, the log, the loop and child processes
_log = logging.getLogger("toolwire.server")


class Watched(Protocol):
    transport: asyncio.Transport
    deadline: float  # on the clock of Connections; infinite while the connection may stay as it is

    @property
    def is_idle(self) -> bool:
        """No request waits for its response."""

    def expire(self, now: float) -> None:
        """The deadline has passed."""


class Connections(ServerState):
    """One timer serves all of them: a timer for each connection would cost two calls a request.

    files is the limit of open descriptors, None where there is none.
    """

    def __init__(
        self, limits: ServerConfig, files: int | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self.connections: set[Watched] = set()  # type: ignore[assignment] # uvicorn knows only its own protocols
        self.limits = limits
        self.now = clock
        self.most = _most(limits, files)
        self._quiet_until: dict[str, float] = {}
        if self.most < connections_wanted(limits):
            self._warn(
                "few files",
                f"{files} open files are allowed, which is enough for {self.most} connections instead of {connections_wanted(limits)}; "
                "raise the limit (ulimit -n), or lower [server] max_connections.",
            )

    def admit(self, connection: Watched) -> bool:
        """Counts the connection, and closes an idle one if there is no room. False if it must be refused because all others are in use.

        A refused connection stays open until its client has read the refusal. If too many of those are open, it is disconnected at once.
        """
        self.connections.add(connection)
        if len(self.connections) <= self.most:
            return True
        self._warn(
            "full",
            f"{self.most} connections are open, the most this process serves: idle ones are closed early, "
            "and new ones are refused while all are in use. [server] max_connections sets the limit.",
        )
        idle = next((one for one in self.connections if one.is_idle and one is not connection), None)
        if idle is not None:
            idle.transport.close()
            return True
        if len(self.connections) > self.most + self.most // 4 + 1:
            connection.transport.abort()
        return False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sweep()
        loop.call_later(_INTERVAL, self.watch, loop)

    def sweep(self) -> None:
        """Closes the connections whose deadline has passed, and logs when no file can be opened."""
        now = self.now()
        for connection in tuple(self.connections):
            if connection.deadline <= now:
                connection.expire(now)
        self._probe_descriptors()

    def _probe_descriptors(self) -> None:
        """uvloop closes connections that it has no descriptor for, and does not report it."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as fault:
            if fault.errno in (errno.EMFILE, errno.ENFILE):
                self._warn(
                    "no files",
                    f"no more files can be opened ({fault.strerror}), with {len(self.connections)} connections open: "
                    "new connections are closed unanswered. Raise the limit (ulimit -n).",
                )

    def _warn(self, kind: str, message: str) -> None:
        """Each kind at most once a minute: what many clients cause must not fill the log."""
        now = self.now()
        if now >= self._quiet_until.get(kind, now):
            self._quiet_until[kind] = now + _QUIET_SECONDS
            _log.warning(message)


def connections_wanted(limits: ServerConfig) -> int:
    """How many the owner allows."""
    return limits.max_connections or 2 * limits.max_streams


def _most(limits: ServerConfig, files: int | None) -> int:
    """Half of the descriptors are for connections to back ends."""
    wanted = connections_wanted(limits)
    return wanted if files is None else min(wanted, max(4, (files - _OWN_FILES) // 2))
