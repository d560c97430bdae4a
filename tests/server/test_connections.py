"""How many connections there may be, and their deadlines."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import MutableMapping
from typing import Any

import pytest

from tests.server.wire import Line, Wire, responses_by_h11
from toolwire.config.file import Config, ServerConfig
from toolwire.server.connections import Connections

GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def application(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Watched:
    def __init__(self, deadline: float) -> None:
        self.transport = Wire()
        self.deadline = deadline
        self.is_idle = False
        self.expired: list[float] = []

    def expire(self, now: float) -> None:
        self.expired.append(now)
        self.deadline = math.inf


def test_what_is_due_expires_and_nothing_else() -> None:
    connections = Connections(ServerConfig(), clock=lambda: 10.0)
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


class Crowd:
    """A process with few connections."""

    def __init__(self, application: Any = application, **limits: Any) -> None:
        self.now = 0.0
        self.config = Config(server=ServerConfig(**limits))
        self.connections = Connections(self.config.server, clock=lambda: self.now)
        self._application = application
        self.lines: list[Line] = []

    def connect(self) -> Line:
        self.lines.append(Line(self._application, self.config, self.connections))
        return self.lines[-1]

    async def disperse(self) -> None:
        for line in self.lines:
            await line.hang_up()


async def forever(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def test_an_idle_connection_makes_room_for_a_new_one(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        crowd = Crowd(max_connections=3)
        silent, slow, busy = crowd.connect(), crowd.connect(), crowd.connect()
        await slow.hear(GET[:9])
        assert caplog.text == ""
        for count in (1, 2, 3):
            await crowd.connect().hear(GET)
            assert sum(line.wire.ended == "closed" for line in (silent, slow, busy)) <= count
            assert b" 200 OK" in crowd.lines[-1].wire.written
            for line in crowd.lines:
                if line.wire.ended:
                    line.protocol.connection_lost(None)
        await crowd.disperse()

    asyncio.run(main())
    assert caplog.text.count("3 connections are open") == 1
    assert "[server] max_connections" in caplog.text


def test_where_all_are_in_use_a_new_one_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        crowd = Crowd(forever, max_connections=8)
        for _ in range(8):
            await crowd.connect().hear(GET)
        for _ in range(3):
            surplus = crowd.connect()
            (response,) = responses_by_h11(surplus.wire.written, ["GET"])
            assert (response.status, response.is_last) == (503, True)
            assert json.loads(response.body)["error"]["code"] == "too_many_connections"
            await surplus.hear(GET)
        assert crowd.connect().wire.ended == "aborted"
        assert not any(line.wire.ended for line in crowd.lines[:11])
        assert len(crowd.connections.tasks) == 8
        crowd.now += 30
        crowd.connections.sweep()
        assert [line.wire.ended for line in crowd.lines[8:11]] == ["aborted"] * 3
        await crowd.lines[0].hang_up()
        for line in crowd.lines[8:]:
            line.protocol.connection_lost(None)
        assert not crowd.connect().wire.written
        await crowd.disperse()

    asyncio.run(main())
    assert caplog.text.count("8 connections are open") == 1


def test_the_same_warning_comes_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        crowd = Crowd(forever, max_connections=1)
        await crowd.connect().hear(GET)
        for _ in range(130):
            crowd.connect()
            crowd.now += 1
        await crowd.disperse()

    asyncio.run(main())
    assert caplog.text.count("1 connections are open") == 3


@pytest.mark.parametrize(
    ("limits", "files", "most"),
    [
        ({}, None, 4000),
        ({"max_streams": 7}, None, 14),
        ({"max_connections": 5, "max_streams": 7}, 1000, 5),
        ({}, 1024, 488),
        ({}, 64, 8),
        ({}, 10, 4),
    ],
)
def test_how_many_there_may_be(
    limits: dict[str, int], files: int | None, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Half of the files that may be open are for back ends."""
    assert Connections(ServerConfig(**limits), files).most == most
    assert ("open files are allowed" in caplog.text) is (files is not None and most != 5)


def test_the_watch_continues() -> None:
    async def main() -> None:
        connections = Connections(ServerConfig())
        connections.watch(asyncio.get_running_loop())
        due = Watched(0.0)
        connections.connections.add(due)
        while not due.expired:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 20))
