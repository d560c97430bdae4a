"""The store in memory keeps the contract, and keeps no more than it should."""

from __future__ import annotations

from tests.store.contract import DAY, MB, StoreContract, answer, conversation, items
from toolwire.store import MemoryStore, Store


class TestMemoryStore(StoreContract):
    def open(self, max_bytes: int = 64 * MB, max_age: float = 30 * DAY) -> Store:
        return MemoryStore(max_bytes=max_bytes, max_age=max_age, clock=self.clock)

    def test_nothing_is_left_of_what_is_deleted(self) -> None:
        async def test(store: Store) -> None:
            assert isinstance(store, MemoryStore)
            await store.put(answer("a", output=items("i", "j")))
            await store.put(answer("a", output=items("i")))
            await store.put(conversation("c"))
            await store.append("ann", "c", items("i", "k", "l"))
            await store.append("ann", "c", items("k"))
            await store.delete_item("ann", "c", "l")
            await store.delete("ann", "a")
            await store.delete("ann", "c")
            assert (store._size, store._holders, dict(store._kept)) == (0, {}, {})

        self.run(test)
