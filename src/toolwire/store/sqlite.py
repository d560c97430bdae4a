"""The store in one SQLite file that several processes may share."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from . import failures, schema, statements
from .base import Entry, Item, Status
from .pruning import bounds_of
from .session import Session, Task, Work
from .worker import Worker

PATIENCE = 5.0  # seconds to wait while another process writes


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
        self._bounds = bounds_of(max_bytes)
        self._worker = Worker(lambda: Session(path, self._bounds, max_age, patience), clock)

    async def put(self, entry: Entry) -> None:
        sizes = [len(entry.head), len(entry.input), len(entry.body), *(len(item.value) for item in entry.output)]
        pages = self._checked(sizes, len(entry.output))
        now = self._clock()
        await self._ask(lambda connection: statements.put(connection, entry, now), pages)

    async def get(self, owner: str, id: str) -> Entry | None:
        found: Entry | None = await self._ask(lambda connection: statements.get(connection, owner, id))
        return found

    async def kind_of(self, owner: str, id: str) -> str:
        kind: str = await self._ask(lambda connection: statements.kind_of(connection, owner, id))
        return kind

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        found: list[Entry] | None = await self._ask(lambda connection: statements.chain(connection, owner, id))
        return found

    async def delete(self, owner: str, id: str) -> bool:
        was_there: bool = await self._ask(
            lambda connection: statements.delete(connection, owner, id), statements.pages_of((), 1)
        )
        return was_there

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = await self._ask(lambda connection: statements.find_items(connection, owner, ids))
        return found

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        # Three trees know each item: the items by sequence, by conversation and by id.
        pages = self._checked([len(item.value) for item in items], 3 * len(items))
        now = self._clock()
        was_there: bool = await self._ask(
            lambda connection: statements.append(connection, owner, conversation, items, now), pages
        )
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

    def _checked(self, sizes: Sequence[int], ids: int) -> int:
        """The pages a write may touch; a GatewayError where the bound leaves no place for it at all."""
        pages = statements.pages_of(sizes, ids)
        if pages > self._bounds.largest:
            raise failures.too_large(pages * schema.PAGE, self._bounds.largest * schema.PAGE)
        return pages
