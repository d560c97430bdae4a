"""The open connections of a process: which have waited for too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from uvicorn.server import ServerState

_INTERVAL = 0.5  # seconds between two looks at the deadlines


class Watched(Protocol):
    transport: asyncio.Transport
    deadline: float  # on the clock of Connections; infinite while the connection may stay as it is

    def expire(self, now: float) -> None:
        """The deadline has passed."""


class Connections(ServerState):
    """One timer for all of them: a timer for each connection would cost two calls a request."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.connections: set[Watched] = set()  # type: ignore[assignment] # uvicorn knows only its own protocols
        self.now = clock

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sweep()
        loop.call_later(_INTERVAL, self.watch, loop)

    def sweep(self) -> None:
        now = self.now()
        for connection in [one for one in self.connections if one.deadline <= now]:
            connection.expire(now)
