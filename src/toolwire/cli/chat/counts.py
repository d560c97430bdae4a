"""Counts of a chat in the store of its configuration, where `toolwire stats` finds them beside those of the gateway."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from ...config.file import Config, default_store_path
from ...errors import ConfigError, InternalError
from ...memory.store import Store, open_store
from ...memory.store.memory import MemoryStore
from ...telemetry.hourly import HourlyCounts

if TYPE_CHECKING:
    from ...server.stats_writer import Recorder


class ChatCounts:
    """history is the telemetry of the agent. The store is opened meanwhile: nothing waits for it before the end.

    problem: why nothing is recorded, "" where it is or need not be.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._recording: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()
        self.history = HourlyCounts()
        self.problem = ""

    async def __aenter__(self) -> ChatCounts:
        if self._config.store.kind == "sqlite":
            self._recording = asyncio.create_task(self._record())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._recording is not None:
            await self._recording

    async def _record(self) -> None:
        try:
            store = await asyncio.to_thread(_opened, self._config)
        except ConfigError as error:
            self.problem = f"this chat is not counted: {error.sentence()}"
            return
        if store is None:
            return
        # In a thread: the server's modules take a while to import.
        recorder = (await asyncio.to_thread(_recorder_class))(store, self.history, self._note)
        recorder.start()
        try:
            await self._is_over.wait()
        finally:
            await recorder.stop()
            await store.close()

    def _note(self, error: InternalError, request_id: str) -> None:
        self.problem = f"{error.sentence()} {error.__cause__!r}"


def _opened(config: Config) -> Store | None:
    """None where the default file cannot be written; ConfigError where a file that was asked for cannot be used."""
    given = config.store
    opened = open_store(
        kind=given.kind,
        path=given.path,
        default_path=default_store_path(),
        max_age_days=given.max_age_days,
        max_mb=given.max_mb,
    )
    return None if isinstance(opened.store, MemoryStore) else opened.store


def _recorder_class() -> type[Recorder]:
    from ...server.stats_writer import Recorder

    return Recorder
