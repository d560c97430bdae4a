"""The simulator: one port for HTTP/1.1 and HTTP/2, distinguished by the first bytes of a connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from .http1 import serve_http1
from .http2 import serve_http2
from .journal import Journal
from .model import DefaultModel
from .routes import Routes
from .run import SimulatorState
from .script import SimulatedModel
from .settings import Settings, SimulatorFaults

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HOST = "127.0.0.1"


class Simulator:
    """`async with Simulator(model=...) as simulator:` and then simulator.url; simulator.journal records what happened.

    A list of faults has one entry per run; later runs have none.
    """

    def __init__(
        self,
        *,
        model: SimulatedModel | None = None,
        faults: SimulatorFaults | Sequence[SimulatorFaults] = (),
        settings: Settings | None = None,
        port: int = 0,
        journal: Path | None = None,
    ) -> None:
        self.journal = Journal(journal)
        self.port = port
        state = SimulatorState(settings=settings or Settings(), model=model or DefaultModel(), journal=self.journal)
        self._routes = Routes(state, faults)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.port}"

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    def revoke(self, token: str) -> None:
        """Refuse this token from now on."""
        self._routes.tokens.revoked.add(token)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, _HOST, self.port, limit=1024 * 1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop all tasks and close all sockets."""
        if self._server is not None:
            self._server.close()
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ahead = await reader.read(1)
        while len(ahead) < len(_PREFACE) and _PREFACE.startswith(ahead):
            more = await reader.read(len(_PREFACE) - len(ahead))
            if not more:
                return
            ahead += more
        serve = serve_http2 if ahead == _PREFACE else serve_http1
        await serve(reader, writer, self._routes.handle, ahead)
