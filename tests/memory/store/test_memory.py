"""The store in memory keeps the contract, and never holds more than its limit."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.store.contract import DAY, MB, Clock, StoreContract, answer
from tests.thorough import examples
from toolwire.errors import GatewayError
from toolwire.memory.store import Item, MemoryStore, Store


class TestMemoryStore(StoreContract):
    def open(self, max_bytes: int = 64 * MB, max_age: float = 30 * DAY) -> Store:
        return MemoryStore(max_bytes=max_bytes, max_age=max_age, clock=self.clock)


NAMES = st.sampled_from("abcdef")
LIMIT = 100_000
SIZES = st.integers(0, 20_000)
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


@examples(60)
@given(st.lists(STEPS, max_size=60))
def test_live_entries_and_items_never_exceed_the_limit(steps: list[tuple[Any, ...]]) -> None:
    async def live_bytes(store: Store) -> int:
        total = 0
        for id in "abcdef":
            if (entry := await store.get("ann", id)) is not None:
                listed = [*entry.output, *await store.items("ann", id)]
                total += len(entry.head + entry.input + entry.body) + sum(len(item.value) for item in listed)
        return total

    async def main() -> None:
        store = MemoryStore(max_bytes=LIMIT, max_age=DAY, clock=Clock())
        for method, *arguments in steps:
            with contextlib.suppress(GatewayError):
                await getattr(store, method)(*arguments)
            assert await live_bytes(store) <= LIMIT
        await store.close()

    asyncio.run(main())


def test_two_stores_share_nothing_and_a_closed_one_refuses() -> None:
    async def main() -> None:
        first, second = (MemoryStore(max_bytes=MB, max_age=DAY) for _ in range(2))
        await first.put(answer("a"))
        assert await second.get("ann", "a") is None
        await first.close()
        with pytest.raises(GatewayError, match="closed"):
            await first.get("ann", "a")
        await second.close()

    asyncio.run(main())
