"""The store in memory, lost with the process: for tests, and where nothing can or should be written to disk."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec
from msgspec import Struct

from . import errors as failures
from .base import CONVERSATION, RUNNING, Entry, Item, Status, parent_of

OVERHEAD = 500  # bytes that an entry or an item takes beside its content

_Key: TypeAlias = tuple[str, str]  # owner and id


class _Stored(Struct):
    """An entry with its items by id: those it answered, and those appended if it is a conversation.

    use: the number of its last use, the same for all entries of a chain that were used together.
    """

    entry: Entry
    answered: dict[str, bytes]
    appended: dict[str, bytes]
    used: float = 0.0
    use: int = 0

    @property
    def size(self) -> int:
        entry = self.entry
        return size_of((entry.head, entry.input, entry.body, *self.answered.values(), *self.appended.values()))


class MemoryStore:
    """Entries are ordered by last use, children before their parents."""

    def __init__(self, *, max_bytes: int, max_age: float, clock: Callable[[], float] = time.time) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._clock = clock
        self._uses = 0
        self._size = 0
        self._kept: OrderedDict[_Key, _Stored] = OrderedDict()
        self._children: dict[_Key, dict[str, None]] = {}  # by owner and parent: ids of the entries below it
        self._holders: dict[_Key, dict[str, None]] = {}  # by owner and item: ids of the entries that have it
        self._is_closed = False

    @property
    def held_bytes(self) -> int:
        """Bytes of the limit that are in use."""
        return self._size

    async def put(self, entry: Entry) -> None:
        self._expire()
        kept = _Stored(entry, {item.id: item.value for item in entry.output}, {})
        if kept.size > self._max_bytes:
            raise failures.too_large(kept.size, self._max_bytes)
        key = (entry.owner, entry.id)
        replaced = self._kept.get(key)
        if replaced is not None and entry.kind == CONVERSATION:
            kept.appended = replaced.appended
        self._make_room(
            kept.size - (replaced.size if replaced else 0), key, (entry.owner, parent_of(entry) or entry.id)
        )
        self._remove(key)
        self._add(kept)

    async def get(self, owner: str, id: str) -> Entry | None:
        kept = self._used((owner, id))
        return kept.entry if kept else None

    async def kind_of(self, owner: str, id: str) -> str:
        kept = self._used((owner, id))
        return kept.entry.kind if kept else ""

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        self._used((owner, id))
        entries: dict[str, Entry] = {}
        while id:
            kept = self._kept.get((owner, id))
            if kept is None or id in entries:
                return None
            entries[id] = msgspec.structs.replace(kept.entry, body=b"{}")
            id = kept.entry.previous
        return list(reversed(entries.values())) or None

    async def delete(self, owner: str, id: str) -> bool:
        self._expire()
        return self._remove((owner, id)) is not None

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        self._expire()
        found: dict[str, bytes] = {}
        for id in ids:
            for holder in self._holders.get((owner, id), ()):
                kept = self._kept[owner, holder]
                found[id] = kept.answered[id] if id in kept.answered else kept.appended[id]
                self._use((owner, holder))
        return found

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        self._expire()
        added = {item.id: item.value for item in items}
        if (size := size_of(added.values())) > self._max_bytes:
            raise failures.too_large(size, self._max_bytes)
        kept = self._conversation(owner, conversation)
        if kept is None:
            return False
        growth = size - size_of([kept.appended[id] for id in added if id in kept.appended])
        self._make_room(growth, (owner, conversation))
        kept.appended.update(added)
        self._size += growth
        self._hold(owner, added, conversation)
        self._use((owner, conversation))
        return True

    async def items(self, owner: str, conversation: str) -> list[Item]:
        self._expire()
        kept = self._conversation(owner, conversation)
        return [Item(id, value) for id, value in kept.appended.items()] if kept else []

    async def delete_item(self, owner: str, conversation: str, id: str) -> bool:
        self._expire()
        kept = self._conversation(owner, conversation)
        if kept is None or id not in kept.appended:
            return False
        self._size -= size_of([kept.appended.pop(id)])
        _discard(self._holders, (owner, id), conversation)
        return True

    async def touch(self, owner: str, id: str, alive: float) -> Status | None:
        self._expire()
        kept = self._kept.get((owner, id))
        if kept is None:
            return None
        if kept.entry.status in RUNNING:
            kept.entry = msgspec.structs.replace(kept.entry, alive=alive)
        return kept.entry.status

    async def close(self) -> None:
        self._is_closed = True

    def _conversation(self, owner: str, id: str) -> _Stored | None:
        kept = self._kept.get((owner, id))
        return kept if kept and kept.entry.kind == CONVERSATION else None

    def _add(self, kept: _Stored) -> None:
        owner, id = kept.entry.owner, kept.entry.id
        self._kept[owner, id] = kept
        self._size += kept.size
        self._hold(owner, (*kept.answered, *kept.appended), id)
        if parent := parent_of(kept.entry):
            self._children.setdefault((owner, parent), {})[id] = None
        self._use((owner, id))

    def _hold(self, owner: str, items: Iterable[str], holder: str) -> None:
        for item in items:
            self._holders.setdefault((owner, item), {})[holder] = None

    def _remove(self, key: _Key) -> _Stored | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            owner, id = key
            self._size -= kept.size
            for item in (*kept.answered, *kept.appended):
                _discard(self._holders, (owner, item), id)
            if parent := parent_of(kept.entry):
                _discard(self._children, (owner, parent), id)
        return kept

    def _used(self, key: _Key) -> _Stored | None:
        self._expire()
        self._use(key)
        return self._kept.get(key)

    def _use(self, key: _Key) -> None:
        """Mark the entry and its parents as used together."""
        self._uses += 1
        now = self._clock()
        for used in self._upwards(key):
            self._kept[used].used, self._kept[used].use = now, self._uses
            self._kept.move_to_end(used)

    def _upwards(self, key: _Key) -> Iterator[_Key]:
        """The entry and its stored ancestors."""
        seen = set[_Key]()
        while key in self._kept and key not in seen:
            seen.add(key)
            yield key
            if not (parent := parent_of(self._kept[key].entry)):
                return
            key = (key[0], parent)

    def _below(self, key: _Key) -> list[_Key]:
        """The entry and all its descendants."""
        found = {key: None}
        waiting = [key]
        while waiting:
            parent = waiting.pop()
            more = [(parent[0], id) for id in self._children.get(parent, ())]
            waiting += [child for child in more if child not in found]
            found.update(dict.fromkeys(more))
        return list(found)

    def _expire(self) -> None:
        """Remove what is too old; called first by every method."""
        if self._is_closed:
            raise failures.closed()
        oldest = self._clock() - self._max_age
        while self._kept and next(iter(self._kept.values())).used < oldest:
            self._remove(next(iter(self._kept)))

    def _make_room(self, size: int, *writing: _Key) -> None:
        """For so many more bytes, without evicting the entries that are being written or extended."""
        if self._size + size <= self._max_bytes:
            return
        spared = {key for written in writing for key in self._upwards(written)}
        while self._size + size > self._max_bytes:
            evicted = self._least_used(spared)
            if not evicted:
                raise failures.no_room()
            for key in evicted:
                self._remove(key)

    def _least_used(self, spared: set[_Key]) -> list[_Key]:
        """The least recently used chain, or branches of it; empty if everything is running or spared."""
        for key, kept in self._kept.items():
            while key not in spared:
                together = [one for one in self._upwards(key) if self._kept[one].use == kept.use and one not in spared]
                below = self._below(together[-1])
                running = [one for one in below if self._kept[one].entry.status in RUNNING]
                if not running:
                    return below
                spared.update(parent for one in running for parent in self._upwards(one))
        return []


def size_of(values: Iterable[bytes]) -> int:
    return sum(len(value) + OVERHEAD for value in values)


def _discard(table: dict[_Key, dict[str, None]], key: _Key, id: str) -> None:
    ids = table.get(key, {})
    ids.pop(id, None)
    if not ids:
        table.pop(key, None)
