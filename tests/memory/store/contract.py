"""What every store does, as tests: a class for the tests of each store to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from toolwire.errors import GatewayError
from toolwire.memory.store import CounterChange, Entry, Item, SharedRecord, Store

MB = 1 << 20
DAY = 86400.0
WEIRD = ["", "a\0b", "é中😀", "'; DROP TABLE entries; --", "%_*", "x" * 5000, " ", "\u2028"]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def answer(id: str, owner: str = "ann", **members: Any) -> Entry:
    return Entry(**{"owner": owner, "id": id, "kind": "responses", "created": 1.5, **members})


def conversation(id: str, owner: str = "ann", **members: Any) -> Entry:
    return answer(id, owner, kind="conversation", **members)


def items(*ids: str) -> tuple[Item, ...]:
    return tuple(Item(id, f'{{"id":"{id}"}}'.encode()) for id in ids)


def ids_of(entries: list[Entry] | None) -> list[str] | None:
    return None if entries is None else [entry.id for entry in entries]


async def until(claim: Callable[[], Awaitable[bool]]) -> None:
    """A store may tidy up a little later than it answers."""
    for _ in range(2000):
        if await claim():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("this did not become true within twenty seconds")


class StoreContract:
    clock: Clock
    folder: Path

    @pytest.fixture(autouse=True)
    def _surroundings(self, tmp_path: Path) -> None:
        self.clock = Clock()
        self.folder = tmp_path

    def open(self, max_bytes: int = 64 * MB, max_age: float = 30 * DAY) -> Store:
        raise NotImplementedError

    def run(self, test: Callable[[Store], Awaitable[None]], **settings: Any) -> None:
        async def main() -> None:
            store = self.open(**settings)
            try:
                await test(store)
            finally:
                await store.close()

        asyncio.run(main())

    def test_an_entry_comes_back_as_it_was(self) -> None:
        entry = Entry(
            owner="ann",
            id="resp_1",
            kind="responses",
            created=12.25,
            previous="resp_0",
            conversation="conv_1",
            keeper="openai",
            status="incomplete",
            alive=3.5,
            head=b'{"system":"\xc3\xa9"}',
            input=b'[{"role":"user"}]',
            output=(Item("msg_1", b'{"a":"\\u0000"}'), Item("fc_1", b"{}")),
            body=b'{"id":"resp_1"}',
        )

        async def test(store: Store) -> None:
            await store.put(entry)
            await store.put(answer("bare"))
            assert await store.get("ann", "resp_1") == entry
            assert await store.get("ann", "bare") == answer("bare")
            assert await store.get("ann", "resp_2") is None

        self.run(test)

    def test_its_kind_is_reported_to_its_owner(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a"))
            await store.put(conversation("c"))
            assert [await store.kind_of("ann", id) for id in ("a", "c", "b")] == ["responses", "conversation", ""]
            assert await store.kind_of("bob", "a") == ""

        self.run(test)

    def test_an_answer_in_place_of_a_conversation_has_none_of_its_items(self) -> None:
        async def test(store: Store) -> None:
            await store.put(conversation("c"))
            await store.append("ann", "c", items("i"))
            await store.put(conversation("c", created=2.0))
            assert await store.items("ann", "c") == [*items("i")]
            await store.put(answer("c"))
            assert await store.find_items("ann", ["i"]) == {}
            await store.put(conversation("c"))
            assert await store.items("ann", "c") == []

        self.run(test)

    @pytest.mark.parametrize("id", WEIRD)
    def test_any_text_is_an_id(self, id: str) -> None:
        async def test(store: Store) -> None:
            await store.put(answer(id, owner=id, output=(*items("x"), Item(id, b"1"))))
            assert (await store.get(id, id)) is not None
            assert await store.find_items(id, [id]) == {id: b"1"}
            await store.put(conversation("c", owner=id))
            assert await store.append(id, "c", [Item(id, b"2")])
            assert await store.items(id, "c") == [Item(id, b"2")]
            assert await store.delete(id, id)

        self.run(test)

    def test_large_values_come_back(self) -> None:
        large = bytes(range(256)) * 4000

        async def test(store: Store) -> None:
            await store.put(answer("a", head=large, input=large, body=large, output=(Item("i", large),)))
            assert await store.get("ann", "a") == answer(
                "a", head=large, input=large, body=large, output=(Item("i", large),)
            )

        self.run(test)

    def test_a_second_put_replaces(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", status="queued", output=items("i", "gone")))
            await store.put(answer("a", status="completed", output=items("i", "new")))
            found = await store.get("ann", "a")
            assert found is not None
            assert found.status == "completed"
            assert set(await store.find_items("ann", ["i", "gone", "new"])) == {"i", "new"}

        self.run(test)

    def test_a_chain_is_given_oldest_first(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", input=b"[1]", body=b"1"))
            await store.put(answer("b", previous="a", input=b"[2]", body=b"2"))
            await store.put(answer("c", previous="b", input=b"[3]", body=b"3"))
            await store.put(answer("side", previous="a"))
            chain = await store.chain("ann", "c")
            assert [(entry.input, entry.body) for entry in chain or []] == [
                (b"[1]", b"{}"),
                (b"[2]", b"{}"),
                (b"[3]", b"{}"),
            ]
            assert ids_of(await store.chain("ann", "side")) == ["a", "side"]
            assert ids_of(await store.chain("ann", "a")) == ["a"]

        self.run(test)

    def test_a_long_chain(self) -> None:
        async def test(store: Store) -> None:
            for number in range(300):
                await store.put(answer(f"r{number}", previous=f"r{number - 1}" if number else ""))
            assert ids_of(await store.chain("ann", "r299")) == [f"r{number}" for number in range(300)]

        self.run(test)

    def test_a_chain_with_a_gap_is_none(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a"))
            await store.put(answer("b", previous="a"))
            await store.put(answer("c", previous="b"))
            assert await store.chain("ann", "not there") is None
            await store.delete("ann", "a")
            assert await store.chain("ann", "c") is None
            await store.put(answer("a", owner="bob"))
            assert await store.chain("ann", "c") is None

        self.run(test)

    def test_a_chain_that_bites_its_tail_is_none(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", previous="b"))
            await store.put(answer("b", previous="a"))
            await store.put(answer("self", previous="self"))
            assert await store.chain("ann", "a") is None
            assert await store.chain("ann", "self") is None

        self.run(test)

    def test_what_is_deleted_is_gone_with_its_items(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", output=items("i")))
            await store.put(conversation("c"))
            await store.append("ann", "c", items("j"))
            assert await store.delete("ann", "a")
            assert await store.delete("ann", "c")
            assert not await store.delete("ann", "a")
            assert await store.find_items("ann", ["i", "j"]) == {}
            assert await store.items("ann", "c") == []
            await store.put(conversation("c"))
            assert await store.items("ann", "c") == []

        self.run(test)

    def test_no_owner_sees_the_answers_of_another(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", output=items("i"), status="in_progress"))
            await store.put(conversation("c"))
            await store.append("ann", "c", items("j"))
            for other in ("bob", "", "an", "anna", "ann\0"):
                assert await store.get(other, "a") is None
                assert await store.chain(other, "a") is None
                assert await store.find_items(other, ["i", "j"]) == {}
                assert await store.items(other, "c") == []
                assert not await store.append(other, "c", items("k"))
                assert not await store.delete_item(other, "c", "j")
                assert await store.touch(other, "a", 1.0) is None
                assert not await store.delete(other, "a")
            assert await store.get("ann", "a") is not None
            assert await store.items("ann", "c") == list(items("j"))

        self.run(test)

    def test_two_owners_may_use_the_same_ids(self) -> None:
        async def test(store: Store) -> None:
            for owner in ("ann", "bob"):
                await store.put(answer("a", owner=owner, output=(Item("i", owner.encode()),)))
                await store.put(conversation("c", owner=owner))
                await store.append(owner, "c", [Item("j", owner.encode())])
            assert await store.find_items("ann", ["i", "j"]) == {"i": b"ann", "j": b"ann"}
            await store.delete("ann", "a")
            await store.delete("ann", "c")
            assert await store.find_items("bob", ["i", "j"]) == {"i": b"bob", "j": b"bob"}
            assert await store.items("bob", "c") == [Item("j", b"bob")]

        self.run(test)

    def test_items_are_found_wherever_they_are(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", output=items("i1", "i2")))
            await store.put(conversation("c"))
            await store.append("ann", "c", items("i2", "i3"))
            expected = {item.id: item.value for item in items("i1", "i2", "i3")}
            assert await store.find_items("ann", ["i3", "i1", "i1", "unknown", "i2"]) == expected
            assert await store.find_items("ann", []) == {}
            await store.delete("ann", "a")
            assert set(await store.find_items("ann", ["i1", "i2", "i3"])) == {"i2", "i3"}

        self.run(test)

    def test_a_conversation_is_a_list(self) -> None:
        async def test(store: Store) -> None:
            await store.put(conversation("c", body=b'{"metadata":{}}'))
            assert await store.append("ann", "c", items("1", "2"))
            assert await store.append("ann", "c", [])
            assert await store.append("ann", "c", [Item("2", b"new"), *items("3")])
            assert await store.items("ann", "c") == [*items("1"), Item("2", b"new"), *items("3")]
            assert await store.delete_item("ann", "c", "2")
            assert not await store.delete_item("ann", "c", "2")
            assert await store.find_items("ann", ["2"]) == {}
            assert [item.id for item in await store.items("ann", "c")] == ["1", "3"]

        self.run(test)

    def test_a_conversation_put_again_keeps_its_items(self) -> None:
        async def test(store: Store) -> None:
            await store.put(conversation("c"))
            await store.append("ann", "c", items("1"))
            await store.put(conversation("c", body=b"changed"))
            assert await store.items("ann", "c") == list(items("1"))
            assert await store.find_items("ann", ["1"]) != {}

        self.run(test)

    def test_nothing_is_appended_to_what_is_no_conversation(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a"))
            assert not await store.append("ann", "a", items("1"))
            assert not await store.append("ann", "not there", items("1"))
            assert await store.items("ann", "a") == []
            assert await store.find_items("ann", ["1"]) == {}

        self.run(test)

    def test_only_a_running_answer_is_touched(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", status="in_progress", alive=1.0))
            await store.put(answer("b", status="cancelled", alive=1.0))
            assert await store.touch("ann", "a", 9.5) == "in_progress"
            assert await store.touch("ann", "b", 9.5) == "cancelled"
            assert await store.touch("ann", "c", 9.5) is None
            found = [await store.get("ann", id) for id in "ab"]
            assert [entry and entry.alive for entry in found] == [9.5, 1.0]

        self.run(test)

    def test_only_a_running_answer_is_replaced(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", status="queued"))
            assert await store.replace_running(answer("a", status="in_progress", body=b"1"))
            outcomes = await asyncio.gather(
                *(store.replace_running(answer("a", output=items(f"i{n}"), body=str(n).encode())) for n in range(10))
            )
            assert sorted(outcomes) == [False] * 9 + [True]
            won = outcomes.index(True)
            assert await store.get("ann", "a") == answer("a", output=items(f"i{won}"), body=str(won).encode())
            assert set(await store.find_items("ann", [f"i{n}" for n in range(10)])) == {f"i{won}"}
            assert not await store.replace_running(answer("a", status="cancelled"))
            assert not await store.replace_running(answer("b"))
            assert await store.get("ann", "b") is None
            assert not await store.replace_running(answer("a", owner="bob"))

        self.run(test)

    def test_many_tasks_at_once(self) -> None:
        async def test(store: Store) -> None:
            async def one(number: int) -> None:
                await store.put(answer(f"a{number}", output=items(f"i{number}"), body=b"x" * 200 * number))
                await asyncio.sleep(0)
                assert await store.chain("ann", f"a{number}") is not None
                assert await store.find_items("ann", [f"i{number}"]) != {}

            await asyncio.gather(*(one(number) for number in range(200)))

        self.run(test)

    def test_what_is_old_goes(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("old", output=items("i")))
            await store.put(answer("hung", status="in_progress"))
            await store.put(conversation("used"))
            self.clock.now += 6 * DAY
            await store.append("ann", "used", items("j"))
            self.clock.now += 5 * DAY
            await store.put(answer("new"))

            async def is_gone() -> bool:
                return await store.get("ann", "old") is None and await store.get("ann", "hung") is None

            await until(is_gone)
            assert await store.find_items("ann", ["i"]) == {}
            assert await store.get("ann", "new") is not None
            assert await store.items("ann", "used") == list(items("j"))

        self.run(test, max_age=10 * DAY)

    @pytest.mark.parametrize("size", [1000, 3000, 50_000])
    def test_when_it_is_full_the_oldest_go(self, size: int) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("running", status="in_progress", body=b"r" * size))
            await store.put(conversation("idle"))
            await store.append("ann", "idle", items("j"))
            await store.put(conversation("used"))
            count = 2 * MB // (size + 800)
            for number in range(count):
                await store.put(answer(f"a{number}", body=b"x" * size, output=items(f"i{number}")))
                if number % 5 == 0:
                    assert await store.append("ann", "used", items(f"u{number}"))
            assert await store.get("ann", "running") is not None
            for gone in ("a0", "a1", "idle"):
                assert await store.get("ann", gone) is None
            assert await store.find_items("ann", ["i0", "j"]) == {}
            for number in range(count - 4, count):
                assert await store.get("ann", f"a{number}") is not None
                assert await store.find_items("ann", [f"i{number}"]) != {}
            assert len(await store.items("ann", "used")) == -(-count // 5)

        self.run(test, max_bytes=MB)

    @pytest.mark.parametrize("use", ["continue", "chain", "kind_of", "get", "find_items"])
    def test_a_chain_in_use_keeps_its_head(self, use: str) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("r0"))
            await store.put(answer("r1", previous="r0", output=items("i")))
            for number in range(600):
                await store.put(answer(f"x{number}", body=b"x" * 3000))
                if number % 20 == 0:
                    match use:
                        case "continue":
                            step = number // 20 + 2
                            await store.put(answer(f"r{step}", previous=f"r{step - 1}"))
                        case "find_items":
                            await store.find_items("ann", ["i"])
                        case _:
                            await getattr(store, use)("ann", "r1")
            assert await store.get("ann", "x0") is None
            last = "r31" if use == "continue" else "r1"
            assert ids_of(await store.chain("ann", last)) == [f"r{number}" for number in range(int(last[1:]) + 1)]

        self.run(test, max_bytes=MB)

    def test_a_conversation_in_use_keeps_its_answers(self) -> None:
        async def test(store: Store) -> None:
            await store.put(conversation("c"))
            await store.put(answer("a", conversation="c"))
            await store.put(answer("b", previous="a"))
            for number in range(600):
                await store.put(answer(f"x{number}", body=b"x" * 3000))
                if number % 20 == 0:
                    await store.kind_of("ann", "b")
            assert ids_of(await store.chain("ann", "b")) == ["a", "b"]
            assert await store.kind_of("ann", "c") == "conversation"

        self.run(test, max_bytes=MB)

    def test_a_chain_is_evicted_whole(self) -> None:
        async def test(store: Store) -> None:
            chains = 40
            for number in range(chains):
                for turn in range(5):
                    previous = f"{number}.{turn - 1}" if turn else ""
                    await store.put(answer(f"{number}.{turn}", previous=previous, body=b"x" * 9000))
            present = []
            for number in range(chains):
                turns = [await store.get("ann", f"{number}.{turn}") is not None for turn in range(5)]
                assert len(set(turns)) == 1
                present.append(turns[0])
            assert present == sorted(present)
            assert set(present) == {False, True}

        self.run(test, max_bytes=MB)

    def test_a_chain_in_use_does_not_expire(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("r0"))
            await store.put(answer("r1", previous="r0"))
            await store.put(answer("idle"))
            for day in range(30):
                self.clock.now += DAY
                assert await store.kind_of("ann", "r1"), day
                await store.put(answer(f"x{day}"))

            async def is_gone() -> bool:
                return await store.get("ann", "idle") is None

            await until(is_gone)
            assert ids_of(await store.chain("ann", "r1")) == ["r0", "r1"]

        self.run(test, max_age=10 * DAY)

    def test_a_chain_that_fills_the_store_is_not_broken(self) -> None:
        async def test(store: Store) -> None:
            turns = ["r0"]

            async def fill() -> None:
                for number in range(1, 100):
                    await store.put(answer(f"r{number}", previous=turns[-1], body=b"x" * 50_000))
                    turns.append(f"r{number}")

            await store.put(answer("r0"))
            with pytest.raises(GatewayError) as caught:
                await fill()
            assert caught.value.status == 503
            assert "continues" in caught.value.message
            assert ids_of(await store.chain("ann", turns[-1])) == turns
            await store.put(answer("other", body=b"x" * 50_000))
            assert await store.get("ann", "other") is not None

        self.run(test, max_bytes=MB)

    def test_items_that_are_replaced_take_no_more_room(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a", body=b"x" * 100_000))
            await store.put(conversation("c"))
            for number in range(1500):
                assert await store.append("ann", "c", [Item("i", str(number % 10).encode() * 250)])
            assert await store.items("ann", "c") == [Item("i", b"9" * 250)]
            assert await store.get("ann", "a") is not None

        self.run(test, max_bytes=MB)

    def test_an_entry_that_is_replaced_in_a_full_store_evicts_nothing(self) -> None:
        async def test(store: Store) -> None:
            for number in range(30):
                await store.put(answer(f"a{number}", body=b"x" * 50_000))
            for _ in range(30):
                await store.put(answer("a29", body=b"y" * 50_000))
            assert await store.get("ann", "a0") is None
            assert await store.get("ann", "a25") is not None

        self.run(test, max_bytes=MB)

    def test_what_never_fits_is_refused(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a"))
            await store.put(conversation("c"))
            for attempt in (
                store.put(answer("b", body=b"x" * 2 * MB)),
                store.put(answer("b", output=(Item("i", b"x" * 2 * MB),))),
                store.append("ann", "c", [Item("i", b"x" * 2 * MB)]),
            ):
                with pytest.raises(GatewayError) as caught:
                    await attempt
                assert (caught.value.status, caught.value.code) == (413, "too_large_to_store")
            assert await store.get("ann", "a") is not None
            assert await store.get("ann", "b") is None

        self.run(test, max_bytes=MB)

    def test_running_answers_are_not_pushed_out(self) -> None:
        async def test(store: Store) -> None:
            attempts = [store.put(answer(f"a{number}", status="queued", body=b"x" * 50_000)) for number in range(30)]
            outcomes = await asyncio.gather(*attempts, return_exceptions=True)
            refused = [outcome for outcome in outcomes if outcome is not None]
            assert 5 < len(refused) < 25
            assert {isinstance(error, GatewayError) and error.status for error in refused} == {503}
            for number, outcome in enumerate(outcomes):
                assert (await store.get("ann", f"a{number}") is None) == (outcome is not None)
            await store.put(answer("a0", body=b"done"))
            await store.put(answer("small"))
            assert await store.get("ann", "small") is not None

        self.run(test, max_bytes=MB)

    def test_a_counter_never_exceeds_its_limit(self) -> None:
        async def test(store: Store) -> None:
            change = CounterChange("requests", 3, limit=100)
            refusals = await asyncio.gather(*(store.apply([change]) for _ in range(50)))
            assert sorted(refusals) == [""] * 33 + ["requests"] * 17
            assert await store.counters(["requests", "unknown"]) == {"requests": 99}
            assert await store.apply([CounterChange("requests", -50, limit=10)]) == ""
            assert await store.apply([CounterChange("requests", 7)]) == ""
            assert await store.counters(["requests"]) == {"requests": 56}
            assert await store.apply([CounterChange("new", 11, limit=10)]) == "new"

        self.run(test)

    def test_changes_happen_together_or_not_at_all(self) -> None:
        async def test(store: Store) -> None:
            held = SharedRecord("holds", "h1", b"5")
            assert await store.apply([CounterChange("b", 5, 10), CounterChange("a", 1)], put=[held]) == ""
            more = SharedRecord("holds", "h2", b"6")
            assert await store.apply([CounterChange("a", 1), CounterChange("b", 6, 10)], put=[more]) == "b"
            assert await store.counters(["a", "b"]) == {"a": 1, "b": 5}
            assert await store.records("holds") == [held]
            settled = [CounterChange("b", -2)]
            assert await store.apply(settled, drop=[("holds", "h1")]) == ""
            assert await store.apply(settled, drop=[("holds", "h1")]) == "h1"
            assert await store.counters(["b"]) == {"b": 3}
            assert await store.records("holds") == []

        self.run(test)

    def test_records_are_replaced_and_listed_by_name(self) -> None:
        async def test(store: Store) -> None:
            await store.apply(put=[SharedRecord("s", name, b"1") for name in ("b", "a", "c")])
            await store.apply(put=[SharedRecord("s", "b", b"2"), SharedRecord("t", "b", b"3")])
            assert [(record.name, record.value) for record in await store.records("s")] == [
                ("a", b"1"),
                ("b", b"2"),
                ("c", b"1"),
            ]
            assert await store.records("t", "b") == [SharedRecord("t", "b", b"3")]
            assert await store.records("t", "a") == []

        self.run(test)

    def test_expired_counters_and_records_do_not_exist(self) -> None:
        async def test(store: Store) -> None:
            until = self.clock.now + 60
            record = SharedRecord("s", "r", b"", until)
            await store.apply([CounterChange("c", 5, expires=until)], put=[record])
            self.clock.now += 59
            assert await store.apply([CounterChange("c", 1, limit=5, expires=until + 60)]) == "c"
            assert await store.records("s") == [record]
            self.clock.now += 2
            assert await store.counters(["c"]) == {}
            assert await store.records("s") == []
            assert await store.apply(drop=[("s", "r")]) == "r"
            assert await store.apply([CounterChange("c", 4, limit=5, expires=until + 60)]) == ""
            assert await store.counters(["c"]) == {"c": 4}

        self.run(test)

    def test_counters_and_records_are_not_evicted(self) -> None:
        async def test(store: Store) -> None:
            await store.apply([CounterChange("c", 1)], put=[SharedRecord("s", "r", b"key")])
            for number in range(40):
                await store.put(answer(f"a{number}", body=b"x" * 50_000))
            assert await store.get("ann", "a0") is None
            assert await store.counters(["c"]) == {"c": 1}
            assert [record.value for record in await store.records("s")] == [b"key"]

        self.run(test, max_bytes=MB)

    def test_a_working_store_is_available(self) -> None:
        async def main() -> None:
            store = self.open()
            assert await store.is_available()
            await store.close()
            assert not await store.is_available()

        asyncio.run(main())

    def test_a_closed_store_raises(self) -> None:
        async def main() -> None:
            store = self.open()
            await store.put(answer("a"))
            await store.close()
            await store.close()
            with pytest.raises(GatewayError) as caught:
                await store.get("ann", "a")
            assert caught.value.status == 503

        asyncio.run(main())
