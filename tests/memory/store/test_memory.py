"""The store in memory keeps the contract, and keeps no more than it should."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.store.contract import DAY, MB, Clock, StoreContract, answer, conversation, items
from toolwire.errors import GatewayError
from toolwire.memory.store import Item, MemoryStore, Store
from toolwire.memory.store.memory import size_of


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
            assert (store.held_bytes, store._holders, store._children, dict(store._kept)) == (0, {}, {}, {})

        self.run(test)


NAMES = st.sampled_from("abcdef")
SIZES = st.integers(0, 3000)
SOME_ITEMS = st.lists(
    st.builds(Item, st.sampled_from("ijk"), SIZES.map(bytes)), max_size=3, unique_by=lambda item: item.id
)
STEPS = st.one_of(
    st.tuples(
        st.just("put"),
        st.builds(
            answer,
            NAMES,
            kind=st.sampled_from(["responses", "conversation"]),
            previous=st.sampled_from(["", *"abcdef"]),
            status=st.sampled_from(["completed", "queued"]),
            body=SIZES.map(bytes),
            output=SOME_ITEMS.map(tuple),
        ),
    ),
    st.tuples(st.sampled_from(["get", "chain", "delete"]), st.just("ann"), NAMES),
    st.tuples(st.just("append"), st.just("ann"), NAMES, SOME_ITEMS),
    st.tuples(st.just("delete_item"), st.just("ann"), NAMES, st.sampled_from("ijk")),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_the_bytes_counted_are_those_of_the_live_entries_and_items(steps: list[tuple[Any, ...]]) -> None:
    async def live_bytes(store: Store) -> int:
        total = 0
        for id in "abcdef":
            if (entry := await store.get("ann", id)) is not None:
                values = [entry.head, entry.input, entry.body, *(item.value for item in entry.output)]
                total += size_of([*values, *(item.value for item in await store.items("ann", id))])
        return total

    async def main() -> None:
        store = MemoryStore(max_bytes=12_000, max_age=DAY, clock=Clock())
        for method, *arguments in steps:
            with contextlib.suppress(GatewayError):
                await getattr(store, method)(*arguments)
            assert store.held_bytes == await live_bytes(store) <= 12_000

    asyncio.run(main())
