"""The store in SQLite: one file that several processes may share, or the memory of one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import TypeVar

from ...errors import GatewayError
from . import errors as failures
from . import schema, shared_values, statements
from .base import CounterChange, Entry, Item, SharedRecord, Status, parent_of
from .eviction import Name
from .pruning import bounds_of
from .session import StoreSession, Task
from .writer_thread import StoreThread

Result = TypeVar("Result")

PATIENCE = 5.0  # seconds to wait while another process writes
_TICK = 1e-6  # seconds; a double holds no finer ones since 1970


class SqliteStore:
    """Opens its file with the first call, in its own thread; a process may fork before that, not after. path: None for memory."""

    def __init__(
        self,
        path: Path | None,
        *,
        max_bytes: int,
        max_age: float,
        clock: Callable[[], float] = time.time,
        patience: float = PATIENCE,
    ) -> None:
        self._clock = clock
        self._last = 0.0
        self._bounds = bounds_of(max_bytes, has_journal=path is not None)
        self._worker = StoreThread(lambda: StoreSession(path, self._bounds, max_age, patience), clock)

    async def put(self, entry: Entry) -> None:
        await self._put(statements.put, entry)

    async def replace_running(self, entry: Entry) -> bool:
        return bool(await self._put(statements.replace_running, entry))

    async def _put(self, work: Callable[[Connection, Entry, float], Result], entry: Entry) -> Result:
        sizes = [len(entry.head), len(entry.input), len(entry.body), *(len(item.value) for item in entry.output)]
        pages = self._checked(sizes, len(entry.output))
        uses = ((entry.owner, entry.id), (entry.owner, parent_of(entry) or entry.id))
        now = self._now()
        return await self._run(lambda connection: work(connection, entry, now), pages, uses)

    async def get(self, owner: str, id: str) -> Entry | None:
        return await self._run(partial(statements.get, owner=owner, id=id), uses=((owner, id),))

    async def kind_of(self, owner: str, id: str) -> str:
        return await self._run(partial(statements.kind_of, owner=owner, id=id), uses=((owner, id),))

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        return await self._run(partial(statements.chain, owner=owner, id=id), uses=((owner, id),))

    async def delete(self, owner: str, id: str) -> bool:
        count = await self._run(partial(statements.count_items, owner=owner, conversation=id))
        pages = min(statements.pages_of((), 3 * count + 1), self._bounds.largest)
        return await self._run(partial(statements.delete, owner=owner, id=id), pages, is_deletion=True)

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        uses = tuple((owner, id) for id in ids)
        return await self._run(partial(statements.find_items, owner=owner, ids=ids), uses=uses)

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        # Three indexes have each item: by sequence, by conversation and by id.
        pages = self._checked([len(item.value) for item in items], 3 * len(items))
        work = partial(statements.append, owner=owner, conversation=conversation, items=items, now=self._now())
        return await self._run(work, pages, ((owner, conversation),))

    async def items(self, owner: str, conversation: str) -> list[Item]:
        return await self._run(partial(statements.items, owner=owner, conversation=conversation))

    async def delete_item(self, owner: str, conversation: str, id: str) -> bool:
        work = partial(statements.delete_item, owner=owner, conversation=conversation, id=id)
        return await self._run(work, statements.pages_of((), 3))

    async def touch(self, owner: str, id: str, alive: float) -> Status | None:
        return await self._run(partial(statements.touch, owner=owner, id=id, alive=alive), statements.pages_of((), 0))

    async def apply(
        self,
        changes: Sequence[CounterChange] = (),
        *,
        put: Sequence[SharedRecord] = (),
        drop: Sequence[tuple[str, str]] = (),
    ) -> str:
        pages = self._checked([len(record.value) for record in put], len(put) + len(changes) + len(drop))
        work = partial(shared_values.apply, changes=changes, put=put, drop=drop, now=self._clock())
        try:
            await self._run(work, pages)
        except shared_values.Prevented as refusal:
            return refusal.code
        return ""

    async def counters(self, names: Sequence[str]) -> dict[str, int]:
        return await self._run(partial(shared_values.counters, names=names, now=self._clock()))

    async def records(self, space: str, name: str | None = None) -> list[SharedRecord]:
        return await self._run(partial(shared_values.records, space=space, name=name, now=self._clock()))

    async def open(self) -> str:
        return ""  # the factory has checked the file

    async def is_available(self) -> bool:
        try:
            await self._run(partial(statements.kind_of, owner="", id=""))
        except GatewayError:
            return False
        return True

    async def close(self) -> None:
        await self._worker.close()

    async def _run(
        self,
        work: Callable[[Connection], Result],
        pages: int = 0,
        uses: tuple[Name, ...] = (),
        *,
        is_deletion: bool = False,
    ) -> Result:
        """uses: entries, or items of them, that count as used."""
        now = self._now() if uses else 0.0
        result: Result = await self._worker.do(Task(work, pages, uses, now, is_deletion))
        return result

    def _now(self) -> float:
        """Strictly increasing, also if the clock is not: uses are ordered by it."""
        self._last = max(self._clock(), self._last + _TICK)
        return self._last

    def _checked(self, sizes: Sequence[int], ids: int) -> int:
        """The pages that a write may touch. Raises GatewayError if it exceeds the limit."""
        pages = statements.pages_of(sizes, ids)
        if pages > self._bounds.largest:
            raise failures.too_large(pages * schema.PAGE, self._bounds.largest * schema.PAGE)
        return pages
