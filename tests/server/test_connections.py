"""Deadlines of connections."""

from __future__ import annotations

import asyncio
import math
from collections.abc import MutableMapping
from typing import Any

from tests.server.wire import Line, Wire
from toolwire.server.connections import Connections

GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Watched:
    def __init__(self, deadline: float) -> None:
        self.transport = Wire()
        self.deadline = deadline
        self.expired: list[float] = []

    def expire(self, now: float) -> None:
        self.expired.append(now)
        self.deadline = math.inf


def test_what_is_due_expires_and_nothing_else() -> None:
    connections = Connections(clock=lambda: 10.0)
    due, early, never = Watched(10.0), Watched(10.5), Watched(math.inf)
    connections.connections |= {due, early, never}
    connections.sweep()
    connections.sweep()
    assert (due.expired, early.expired, never.expired) == ([10.0], [], [])


def test_a_connection_is_closed_when_it_is_idle_for_too_long() -> None:
    async def main() -> None:
        line = Line(application)
        line.now = 74
        line.connections.sweep()
        await line.hear(GET)
        line.now = 74 + 74
        line.connections.sweep()
        assert not line.wire.ended
        line.now += 1
        line.connections.sweep()
        assert line.wire.ended == "closed"
        await line.hang_up()

    asyncio.run(main())


def test_the_watch_goes_on() -> None:
    async def main() -> None:
        connections = Connections()
        connections.watch(asyncio.get_running_loop())
        due = Watched(0.0)
        connections.connections.add(due)
        while not due.expired:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 20))
