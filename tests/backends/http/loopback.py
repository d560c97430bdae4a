"""Servers on 127.0.0.1 for tests of connections, and a run on either event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

import pytest

Handler: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Loopback:
    """A server on 127.0.0.1 that hands each connection to a handler, and remembers how each one ended."""

    def __init__(self, handler: Handler) -> None:
        self.connections = 0
        self.closed = asyncio.Event()
        self.failures: list[BaseException] = []
        self._handler = handler
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception as error:
            self.failures.append(error)
        finally:
            self.closed.set()
            writer.transport.abort()
            self._tasks.discard(task)

    async def __aenter__(self) -> Loopback:
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=512)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)
        assert self.failures == []


def run_each(loop_name: str) -> Run:
    def run(main: Coroutine[Any, Any, None]) -> None:
        if loop_name == "asyncio":
            asyncio.run(main)
        else:
            pytest.importorskip("uvloop").run(main)

    return run
