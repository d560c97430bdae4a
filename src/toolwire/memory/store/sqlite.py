"""The store in one SQLite file that several processes may share."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from . import errors as failures
from . import schema, statements
from .base import Entry, Item, Status, parent_of
from .pruning import bounds_of
from .session import StoreSession, Task, Work
from .writer_thread import StoreThread

PATIENCE = 5.0  # seconds to wait while another process writes
_TICK = 1e-6  # seconds; a double holds no finer ones since 1970


class SqliteStore:
    """Opens its file with the first question, in a thread of its own; a process may fork before that, not after."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        max_age: float,
        clock: Callable[[], float] = time.time,
        patience: float = PATIENCE,
    ) -> None:
        self._clock = clock
        self._last = 0.0
        self._bounds = bounds_of(max_bytes)
        self._worker = StoreThread(lambda: StoreSession(path, self._bounds, max_age, patience), clock)

    async def put(self, entry: Entry) -> None:
        sizes = [len(entry.head), len(entry.input), len(entry.body), *(len(item.value) for item in entry.output)]
        pages = self._checked(sizes, len(entry.output))
        now = self._now()
        task = Task(lambda connection: statements.put(connection, entry, now), pages)
        await self._use(task, entry.owner, entry.id, parent_of(entry) or entry.id)

    async def get(self, owner: str, id: str) -> Entry | None:
        found: Entry | None = await self._use(Task(lambda connection: statements.get(connection, owner, id)), owner, id)
        return found

    async def kind_of(self, owner: str, id: str) -> str:
        kind: str = await self._use(Task(lambda connection: statements.kind_of(connection, owner, id)), owner, id)
        return kind

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        task = Task(lambda connection: statements.chain(connection, owner, id))
        found: list[Entry] | None = await self._use(task, owner, id)
        return found

    async def delete(self, owner: str, id: str) -> bool:
        count: int = await self._ask(lambda connection: statements.count_items(connection, owner, id))
        pages = min(statements.pages_of((), 3 * count + 1), self._bounds.largest)
        task = Task(lambda connection: statements.delete(connection, owner, id), pages, is_deletion=True)
        was_there: bool = await self._worker.do(task)
        return was_there

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        task = Task(lambda connection: statements.find_items(connection, owner, ids))
        found: dict[str, bytes] = await self._use(task, owner, *ids)
        return found

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        # Three trees know each item: the items by sequence, by conversation and by id.
        pages = self._checked([len(item.value) for item in items], 3 * len(items))
        now = self._now()
        task = Task(lambda connection: statements.append(connection, owner, conversation, items, now), pages)
        was_there: bool = await self._use(task, owner, conversation)
        return was_there

    async def items(self, owner: str, conversation: str) -> list[Item]:
        found: list[Item] = await self._ask(lambda connection: statements.items(connection, owner, conversation))
        return found

    async def delete_item(self, owner: str, conversation: str, id: str) -> bool:
        was_there: bool = await self._ask(
            lambda connection: statements.delete_item(connection, owner, conversation, id), statements.pages_of((), 3)
        )
        return was_there

    async def touch(self, owner: str, id: str, alive: float) -> Status | None:
        status: Status | None = await self._ask(
            lambda connection: statements.touch(connection, owner, id, alive), statements.pages_of((), 0)
        )
        return status

    async def close(self) -> None:
        await self._worker.close()

    def _ask(self, work: Work, pages: int = 0) -> Coroutine[Any, Any, Any]:
        return self._worker.do(Task(work, pages))

    def _use(self, task: Task, owner: str, *ids: str) -> Coroutine[Any, Any, Any]:
        """The same for a task that counts as a use of these entries."""
        return self._worker.do(replace(task, uses=tuple((owner, id) for id in ids), now=self._now()))

    def _now(self) -> float:
        """Later than before, also while the clock stands still or goes back: the order of uses is the order of these."""
        self._last = max(self._clock(), self._last + _TICK)
        return self._last

    def _checked(self, sizes: Sequence[int], ids: int) -> int:
        """The pages a write may touch; a GatewayError where the bound leaves no place for it at all."""
        pages = statements.pages_of(sizes, ids)
        if pages > self._bounds.largest:
            raise failures.too_large(pages * schema.PAGE, self._bounds.largest * schema.PAGE)
        return pages
