"""The store in memory: for tests, and where nothing can or should be written to disk. It ends with the process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from . import failures
from .base import CONVERSATION, RUNNING, Entry, Item, Status

_OVERHEAD = 500  # bytes that an entry or an item takes beside its content

_Key: TypeAlias = tuple[str, str]  # owner and id


class _Kept(Struct):
    """An entry with its items by id: those it answered, and those appended if it is a conversation."""

    entry: Entry
    written: float
    answered: dict[str, bytes]
    appended: dict[str, bytes]
    size: int


class MemoryStore:
    """Entries lie in the order of their last write; nothing here ever waits."""

    def __init__(self, *, max_bytes: int, max_age: float, clock: Callable[[], float] = time.time) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._size = 0
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._holders: dict[_Key, dict[str, None]] = {}  # by owner and item: ids of the entries that have it
        self._is_closed = False

    async def put(self, entry: Entry) -> None:
        self._tidy()
        answered = {item.id: item.value for item in entry.output}
        size = _size_of((entry.head, entry.input, entry.body)) + _size_of(answered.values())
        self._make_room(size)
        replaced = self._remove((entry.owner, entry.id))
        appended = replaced.appended if replaced else {}
        self._add(_Kept(entry, self._clock(), answered, appended, size + _size_of(appended.values())))

    async def get(self, owner: str, id: str) -> Entry | None:
        self._tidy()
        kept = self._kept.get((owner, id))
        return kept.entry if kept else None

    async def kind_of(self, owner: str, id: str) -> str:
        self._tidy()
        kept = self._kept.get((owner, id))
        return kept.entry.kind if kept else ""

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        self._tidy()
        entries: dict[str, Entry] = {}
        while id:
            kept = self._kept.get((owner, id))
            if kept is None or id in entries:
                return None
            entries[id] = msgspec.structs.replace(kept.entry, body=b"{}")
            id = kept.entry.previous
        return list(reversed(entries.values())) or None

    async def delete(self, owner: str, id: str) -> bool:
        self._tidy()
        return self._remove((owner, id)) is not None

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        self._tidy()
        found: dict[str, bytes] = {}
        for id in ids:
            for holder in self._holders.get((owner, id), ()):
                kept = self._kept[owner, holder]
                found[id] = kept.answered[id] if id in kept.answered else kept.appended[id]
        return found

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        self._tidy()
        added = {item.id: item.value for item in items}
        self._make_room(_size_of(added.values()))
        kept = self._conversation(owner, conversation)
        if kept is None:
            return False
        self._remove((owner, conversation))
        kept.appended.update(added)
        kept.size += _size_of(added.values())
        kept.written = self._clock()
        self._add(kept)
        return True

    async def items(self, owner: str, conversation: str) -> list[Item]:
        self._tidy()
        kept = self._conversation(owner, conversation)
        return [Item(id, value) for id, value in kept.appended.items()] if kept else []

    async def delete_item(self, owner: str, conversation: str, id: str) -> bool:
        self._tidy()
        kept = self._conversation(owner, conversation)
        if kept is None or id not in kept.appended:
            return False
        size = _size_of([kept.appended.pop(id)])
        kept.size -= size
        self._size -= size
        self._let_go(owner, id, conversation)
        return True

    async def touch(self, owner: str, id: str, alive: float) -> Status | None:
        self._tidy()
        kept = self._kept.get((owner, id))
        if kept is None:
            return None
        if kept.entry.status in RUNNING:
            kept.entry = msgspec.structs.replace(kept.entry, alive=alive)
        return kept.entry.status

    async def close(self) -> None:
        self._is_closed = True

    def _conversation(self, owner: str, id: str) -> _Kept | None:
        kept = self._kept.get((owner, id))
        return kept if kept and kept.entry.kind == CONVERSATION else None

    def _add(self, kept: _Kept) -> None:
        owner, id = kept.entry.owner, kept.entry.id
        self._kept[owner, id] = kept
        self._size += kept.size
        for item in (*kept.answered, *kept.appended):
            self._holders.setdefault((owner, item), {})[id] = None

    def _remove(self, key: _Key) -> _Kept | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= kept.size
            for item in (*kept.answered, *kept.appended):
                self._let_go(key[0], item, key[1])
        return kept

    def _let_go(self, owner: str, item: str, holder: str) -> None:
        holders = self._holders.get((owner, item), {})
        holders.pop(holder, None)
        if not holders:
            self._holders.pop((owner, item), None)

    def _tidy(self) -> None:
        """What is too old goes, before any question is answered."""
        if self._is_closed:
            raise failures.closed()
        oldest = self._clock() - self._max_age
        while self._kept and next(iter(self._kept.values())).written < oldest:
            self._remove(next(iter(self._kept)))

    def _make_room(self, size: int) -> None:
        if size > self._max_bytes:
            raise failures.too_large(size, self._max_bytes)
        while self._size + size > self._max_bytes:
            spare = (key for key, kept in self._kept.items() if kept.entry.status not in RUNNING)
            key = next(spare, None)
            if key is None:
                raise failures.no_room()
            self._remove(key)


def _size_of(values: Iterable[bytes]) -> int:
    return sum(len(value) + _OVERHEAD for value in values)
