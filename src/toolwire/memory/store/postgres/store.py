"""The store in PostgreSQL: each method is one statement, so that several gateways can use the same entries at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence

from ....errors import GatewayError
from .. import errors as failures
from ..base import CounterChange, Entry, Item, SharedRecord, Status, parent_of
from ..statements import key_of
from . import statements
from .eviction import ITEM_BYTES, Evictor
from .pool import PATIENCE, ConnectionPool

_TICK = 1e-6  # seconds; a double holds no finer ones since 1970
_PAUSE = 60.0  # seconds between two searches for expired entries
_MOST_USES = 1000  # that are held in memory before they are written
_ENTRY_BYTES = 300  # that an entry takes beside its content


class PostgresStore:
    """Connects with the first call, so a process may fork before that. Belongs to one event loop.

    max_bytes limits what all gateways store together. Each counts what it writes and asks for the total now and then, so several gateways
    may exceed the limit for a while, by at most a sixteenth each. clock: instead of that of the server,
    by which everything is ordered and expires. The clock of this machine may be set at any time.
    """

    def __init__(
        self,
        url: str,
        *,
        max_bytes: int,
        max_age: float,
        connections: int = 8,
        clock: Callable[[], float] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._pool = ConnectionPool(url, size=connections, patience=patience)
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock or self._estimate
        self._server_time = clock or _nothing  # None is the time of the server
        self._ahead: float | None = None  # of the monotonic clock here: the time of the server, once it is known
        self._last = 0.0
        self._used: int | None = None  # estimate of the bytes in the store
        self._in_flight = 0  # bytes of writes that have not ended
        self._room = asyncio.Lock()
        self._uses: dict[int, tuple[float, float]] = {}  # the first and the last read of each, not written yet
        self._next_look = 0.0  # for expired entries
        self._tidying: asyncio.Task[None] | None = None

    async def put(self, entry: Entry) -> None:
        if not await self._put(statements.PUT, entry):
            raise failures.key_taken()

    async def replace_running(self, entry: Entry) -> bool:
        return await self._put(statements.REPLACE_RUNNING, entry)

    async def _put(self, statement: str, entry: Entry) -> bool:
        sizes = [len(entry.head), len(entry.input), len(entry.body), *(len(item.value) for item in entry.output)]
        size = sum(sizes) + _ENTRY_BYTES + ITEM_BYTES * len(entry.output)
        spared = [self._key(entry.owner, name) for name in (entry.id, parent_of(entry)) if name]
        async with self._counted(size, spared):
            rows = await self._pool.write(statement, *statements.row_of(entry, self._write_time(), size))
        return bool(rows[0][0])

    async def get(self, owner: str, id: str) -> Entry | None:
        key = self._use(owner, id)
        rows = await self._pool.read(statements.GET, key)
        found = [entry for row in rows if (entry := statements.entry_of(row)).owner == owner and entry.id == id]
        return found[0] if found else None

    async def kind_of(self, owner: str, id: str) -> str:
        rows = await self._pool.read(statements.KIND, self._use(owner, id), owner.encode(), id.encode())
        return rows[0][0] if rows else ""

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        rows = await self._pool.read(statements.CHAIN, self._use(owner, id), owner.encode())
        return statements.chain_of(rows, id)

    async def delete(self, owner: str, id: str) -> bool:
        rows = await self._pool.write(statements.DELETE, self._key(owner, id), owner.encode(), id.encode())
        return bool(rows[0][0])

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        keys = [self._use(owner, id) for id in ids]
        found: dict[str, bytes] = {}
        if keys:
            rows = await self._pool.read(statements.OUTPUTS, keys, owner.encode())
            found = {item.id: item.value for row in rows for item in statements.unpack(row[0])}
        if missing := [key for key, id in zip(keys, ids, strict=True) if id not in found]:
            rows = await self._pool.read(statements.FIND_ITEMS, missing, owner.encode())
            found |= {row[0].decode(): row[1] for row in rows}
        return {id: found[id] for id in ids if id in found}

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        key = self._key(owner, conversation)
        last = {item.id: item for item in items}  # one statement cannot change a row twice
        size = sum(len(item.value) + ITEM_BYTES for item in last.values())
        values = [
            [key_of(owner, item.id) for item in last.values()],
            [item.id.encode() for item in last.values()],
            [item.value for item in last.values()],
        ]
        async with self._counted(size, [key]):
            rows = await self._pool.write(
                statements.APPEND, key, owner.encode(), conversation.encode(), self._write_time(), *values
            )
        return bool(rows[0][0])

    async def items(self, owner: str, conversation: str) -> list[Item]:
        rows = await self._pool.read(
            statements.ITEMS, self._key(owner, conversation), owner.encode(), conversation.encode()
        )
        return [Item(row[0].decode(), row[1]) for row in rows]

    async def delete_item(self, owner: str, conversation: str, id: str) -> bool:
        key = self._key(owner, conversation)
        values = owner.encode(), conversation.encode(), key_of(owner, id), id.encode()
        return bool((await self._pool.write(statements.DELETE_ITEM, key, *values))[0][0])

    async def touch(self, owner: str, id: str, alive: float) -> Status | None:
        rows = await self._pool.write(statements.TOUCH, self._key(owner, id), owner.encode(), id.encode(), alive)
        return rows[0][0] if rows else None

    async def apply(
        self,
        changes: Sequence[CounterChange] = (),
        *,
        put: Sequence[SharedRecord] = (),
        drop: Sequence[tuple[str, str]] = (),
    ) -> str:
        values = statements.apply_values(changes, put, drop)
        rows = await self._pool.write(statements.APPLY, self._server_time(), *values, is_repeatable=not changes)
        return str(rows[0][0])

    async def counters(self, names: Sequence[str]) -> dict[str, int]:
        rows = await self._pool.read(statements.COUNTERS, list(names), self._server_time())
        return {row[0]: row[1] for row in rows}

    async def records(self, space: str, name: str | None = None) -> list[SharedRecord]:
        rows = await self._pool.read(statements.RECORDS, space, name, self._server_time())
        return [SharedRecord(space, *row) for row in rows]

    async def open(self) -> str:
        return await self._pool.open()

    async def is_available(self) -> bool:
        return await self._pool.is_up()

    async def close(self) -> None:
        """Recent uses are written if that is possible."""
        if self._tidying is not None:
            await asyncio.wait({self._tidying})
        with contextlib.suppress(GatewayError):
            await self._write_uses()
        await self._pool.close()

    @contextlib.asynccontextmanager
    async def _counted(self, size: int, spared: list[int]) -> AsyncIterator[None]:
        """A write of so many bytes, for which there is room."""
        largest = self._max_bytes * 3 // 16
        if size > largest:
            raise failures.too_large(size, largest)
        self._in_flight += size
        try:
            if self._used is None or self._used + self._in_flight > self._max_bytes:
                async with self._room:
                    await self._make_room(size, spared)
            yield
            self._used = (self._used or 0) + size
        finally:
            self._in_flight -= size

    async def _make_room(self, size: int, spared: list[int]) -> None:
        """Raises GatewayError if nothing else can be evicted."""
        others = self._in_flight - size
        if self._used is None:
            await self._ask_time()
        self._used = await self._total()
        excess = self._used + others + size - self._max_bytes
        if excess > 0:
            await self._write_uses()
            await Evictor(self._pool, spared).evict(excess + self._max_bytes // 16)
            self._used = await self._total()
            if self._used + size > self._max_bytes:
                raise failures.no_room()

    async def _total(self) -> int:
        return int((await self._pool.read(statements.TOTAL))[0][0])

    def _key(self, owner: str, id: str) -> int:
        """Raises BadRequest for an id that is not Unicode text."""
        now = self._now()
        if (now >= self._next_look or len(self._uses) >= _MOST_USES) and (
            self._tidying is None or self._tidying.done()
        ):
            self._next_look = now + _PAUSE
            self._tidying = asyncio.get_running_loop().create_task(self._tidy())
        try:
            return key_of(owner, id)
        except UnicodeEncodeError as error:
            raise failures.while_running(error) from None

    def _use(self, owner: str, id: str) -> int:
        key = self._key(owner, id)
        self._uses[key] = (self._uses.get(key) or (self._last, 0.0))[0], self._last
        return key

    async def _tidy(self) -> None:
        """Errors are ignored here; the next call meets them."""
        with contextlib.suppress(GatewayError):
            now = await self._ask_time()  # before the uses are written: a use after this time expires nothing
            await self._write_uses()
            await Evictor(self._pool, spares_running=False).evict(float("inf"), now - self._max_age)
            await self._pool.write(statements.DROP_EXPIRED_RECORDS, now)
            await self._pool.write(statements.DROP_EXPIRED_COUNTERS, now)
            self._used = await self._total()

    async def _write_uses(self) -> None:
        uses, self._uses = self._uses, {}
        if uses:
            firsts, lasts = zip(*uses.values(), strict=True)
            await self._pool.write(statements.USE, list(uses), list(firsts), list(lasts), self._max_age)

    async def _ask_time(self) -> float:
        now = float((await self._pool.read(statements.NOW, self._server_time()))[0][0])
        self._ahead = now - time.monotonic()
        return now

    def _estimate(self) -> float:
        """The time of the server."""
        return time.time() if self._ahead is None else self._ahead + time.monotonic()

    def _write_time(self) -> float | None:
        """None for the exact time of the server, so that gateways order what they write alike."""
        return None if self._server_time is _nothing else self._now()

    def _now(self) -> float:
        """Strictly increasing, also if the clock is not: uses are ordered by it."""
        self._last = max(self._clock(), self._last + _TICK)
        return self._last


def _nothing() -> None:
    return None
