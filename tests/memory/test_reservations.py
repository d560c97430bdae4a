from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolwire.errors import InternalError
from toolwire.memory.keys import NamedKey
from toolwire.memory.reservations import ALIVE_SECONDS, HOLDS, LIVES, KeyLimits, RateLimited
from toolwire.memory.store.memory import MemoryStore
from toolwire.telemetry.prices import Price
from toolwire.types import Usage


def key(**limits: Any) -> NamedKey:
    return NamedKey(id="k1", name="ann", hash="h", created=0.0, **limits)


class Clock:
    def __init__(self, now: float = 1_763_456_430.0) -> None:
        self.now = now
        self.slept = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds


class Harness:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = MemoryStore(max_bytes=1 << 20, max_age=1e9, clock=self.clock)
        self.limits = self.process()

    def process(self) -> KeyLimits:
        """Another process on the same store."""
        return KeyLimits(self.store, self.clock, self.clock.sleep, monotonic=self.clock)


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_exactly_the_limit_is_admitted_in_a_window_by_all_processes(harness: Harness) -> None:
    async def attempt(limits: KeyLimits) -> bool:
        try:
            await limits.reserve(key(requests_per_minute=10), 100, 10)
        except RateLimited:
            return False
        return True

    async def run() -> None:
        processes = [harness.process() for _ in range(4)]
        admitted = await asyncio.gather(*(attempt(processes[number % 4]) for number in range(50)))
        assert sum(admitted) == 10
        harness.clock.now += 60
        assert await attempt(harness.limits)

    asyncio.run(run())


def test_a_refusal_says_when_to_try_again(harness: Harness) -> None:
    async def run() -> None:
        await harness.limits.reserve(key(requests_per_minute=1), 100, 10)
        await harness.limits.reserve(key(requests_per_minute=1), 100, 10)

    with pytest.raises(RateLimited, match="the key ann may send 1 requests per minute") as caught:
        asyncio.run(run())
    assert caught.value.status == 429
    assert int(caught.value.headers["retry-after"]) == 31


def test_a_settled_request_counts_what_it_used(harness: Harness) -> None:
    async def run() -> None:
        limits, one = harness.limits, key(budget=1000)
        held = await limits.reserve(one, 400, 500)
        assert (await limits.used(one))[0] == 600
        await limits.settle(held, Usage(input=120, output=30), is_answered=True)
        assert (await limits.used(one))[0] == 150
        await limits.settle(held, Usage(input=120, output=30), is_answered=True)
        assert (await limits.used(one))[0] == 150, "a second settlement changes nothing"

    asyncio.run(run())


@pytest.mark.parametrize(("is_answered", "used"), [(True, 600), (False, 0)])
def test_without_usage_an_answer_keeps_its_reservation(harness: Harness, is_answered: bool, used: int) -> None:
    async def run() -> int:
        held = await harness.limits.reserve(key(budget=1000), 400, 500)
        await harness.limits.settle(held, None, is_answered=is_answered)
        return (await harness.limits.used(key(budget=1000)))[0]

    assert asyncio.run(run()) == used


def test_a_budget_is_never_exceeded_and_begins_again_with_its_period(harness: Harness) -> None:
    async def run() -> None:
        limits, one = harness.limits, key(budget=1000, period="day")
        await limits.reserve(one, 0, 900)
        with pytest.raises(RateLimited, match="budget of 1000 tokens for this day"):
            await limits.reserve(one, 0, 200)
        harness.clock.now += 86400
        await limits.reserve(one, 0, 200)

    asyncio.run(run())


def test_streams_are_free_again_after_the_end(harness: Harness) -> None:
    async def run() -> None:
        limits, one = harness.limits, key(streams=1)
        held = await limits.reserve(one, 0, 1)
        with pytest.raises(RateLimited, match="1 requests open at once"):
            await limits.reserve(one, 0, 1)
        assert harness.clock.slept >= 1.0, "the end of the last request is waited for"
        await limits.settle(held, None, is_answered=False)
        await limits.reserve(one, 0, 1)

    asyncio.run(run())


def test_the_streams_of_a_dead_process_are_released_and_its_tokens_stay_counted(harness: Harness) -> None:
    async def run() -> None:
        one, other = key(streams=1, budget=1000), harness.process()
        await harness.process().reserve(one, 0, 100)
        await asyncio.gather(harness.limits.watch(), other.watch())
        harness.clock.now += ALIVE_SECONDS - 1
        await harness.limits.watch()
        assert len(await harness.store.records(HOLDS)) == 1
        harness.clock.now += 1
        await asyncio.gather(harness.limits.watch(), other.watch())
        assert await harness.store.records(HOLDS) == []
        assert (await harness.limits.used(one))[0] == 100
        await harness.limits.reserve(one, 0, 100)

    asyncio.run(run())


def test_a_live_process_keeps_its_reservations(harness: Harness) -> None:
    async def run() -> None:
        other = harness.process()
        await harness.limits.reserve(key(streams=1), 0, 100)
        for _ in range(5):
            harness.clock.now += ALIVE_SECONDS / 2
            await harness.limits.watch()
            await other.watch()
        assert len(await harness.store.records(HOLDS)) == 1

    asyncio.run(run())


class FaultyStore(MemoryStore):
    """Fails as an unreachable database does: is_down refuses, is_lost does what is wanted and loses the response."""

    is_down = False
    is_lost = False

    async def apply(self, *arguments: Any, **members: Any) -> str:
        if self.is_down:
            raise InternalError("down.", status=503)
        done = await super().apply(*arguments, **members)
        if self.is_lost:
            raise InternalError("no reply.", status=503)
        return done


@pytest.fixture
def faulty(harness: Harness) -> FaultyStore:
    store = FaultyStore(max_bytes=1 << 20, max_age=1e9, clock=harness.clock)
    harness.store = store
    harness.limits = harness.process()
    return store


@pytest.mark.parametrize("fault", ["is_down", "is_lost"])
@pytest.mark.parametrize("limits", [{"budget": 1000, "streams": 1}, {}])
def test_usage_is_counted_once_when_the_store_fails_and_returns(
    harness: Harness, faulty: FaultyStore, fault: str, limits: dict[str, int]
) -> None:
    async def run() -> None:
        one, usage = key(**limits), Usage(input=70, output=7)
        held = await harness.limits.reserve(one, 400, 500) if limits else harness.limits.unlimited(one)
        setattr(faulty, fault, True)
        with pytest.raises(InternalError):
            await harness.limits.settle(held, usage, is_answered=True)
        assert await harness.limits.settle_rest() == 1
        setattr(faulty, fault, False)
        assert await harness.limits.settle_rest() == 0
        assert (await harness.limits.used(one))[0] == 77
        await harness.limits.settle(held, usage, is_answered=True)
        assert (await harness.limits.used(one))[0] == 77
        assert await faulty.records(HOLDS) == []

    asyncio.run(run())


def test_a_reservation_whose_outcome_is_unknown_is_taken_back(harness: Harness, faulty: FaultyStore) -> None:
    async def run() -> None:
        one = key(budget=1000, streams=1)
        faulty.is_lost = True
        with pytest.raises(InternalError):
            await harness.limits.reserve(one, 400, 500)
        faulty.is_lost = False
        assert (await harness.limits.used(one))[0] == 600
        assert await harness.limits.settle_rest() == 0
        assert (await harness.limits.used(one))[0] == 0
        await harness.limits.reserve(one, 0, 1)

    asyncio.run(run())


def test_a_reservation_that_never_arrived_is_looked_for_a_few_times_only(harness: Harness, faulty: FaultyStore) -> None:
    async def run() -> None:
        faulty.is_down = True
        with pytest.raises(InternalError):
            await harness.limits.reserve(key(budget=1000), 400, 500)
        faulty.is_down = False
        assert [await harness.limits.settle_rest() for _ in range(5)] == [1, 1, 1, 1, 0]
        assert (await harness.limits.used(key(budget=1000)))[0] == 0

    asyncio.run(run())


def test_an_outage_is_not_the_death_of_a_process(harness: Harness, faulty: FaultyStore) -> None:
    async def run() -> None:
        other = harness.process()
        held = await harness.limits.reserve(key(budget=1000, streams=1), 400, 500)
        await harness.limits.watch()
        await other.watch()
        faulty.is_down = True
        harness.clock.now += 10 * ALIVE_SECONDS
        for process in (harness.limits, other):
            with pytest.raises(InternalError):
                await process.watch()
        faulty.is_down = False
        await other.watch()
        await harness.limits.settle(held, Usage(input=5, output=5), is_answered=True)
        assert (await harness.limits.used(key(budget=1000)))[0] == 10

    asyncio.run(run())


def test_a_step_of_the_clock_releases_nothing(harness: Harness) -> None:
    async def run() -> None:
        behind = Clock(harness.clock.now - 86400)
        other = KeyLimits(harness.store, behind, behind.sleep, monotonic=behind)
        await harness.limits.reserve(key(streams=1), 0, 100)
        await harness.limits.watch()
        behind.now += 5
        await other.watch()
        assert len(await harness.store.records(HOLDS)) == 1

    asyncio.run(run())


def test_settling_after_the_window_leaves_no_counter(harness: Harness) -> None:
    async def run() -> None:
        one = key(tokens_per_minute=1000, period="day")
        held = await harness.limits.reserve(one, 400, 500)
        counters = [name for name, _ in held.token_counters]
        harness.clock.now += 3 * 86400
        await harness.limits.settle(held, Usage(input=5, output=5), is_answered=True)
        assert await harness.store.counters(counters) == {}

    asyncio.run(run())


def test_a_process_that_ends_in_order_leaves_nothing(harness: Harness) -> None:
    async def run() -> None:
        held = await harness.limits.reserve(key(budget=1000), 400, 500)
        await harness.limits.watch()
        await harness.limits.settle(held, None, is_answered=False)
        await harness.limits.leave()
        assert await harness.store.records(HOLDS) == []
        assert await harness.store.records(LIVES) == []

    asyncio.run(run())


def test_a_budget_of_money_admits_exactly_what_it_pays_for(harness: Harness) -> None:
    price = Price(input=1, output=1, max_input=1)  # 1,000 billionths of a dollar for each token
    rich = key(max_cost=1_000_000)

    async def attempt(limits: KeyLimits) -> bool:
        try:
            await limits.reserve(rich, 0, 100, price)
        except RateLimited:
            return False
        return True

    async def run() -> None:
        processes = [harness.process() for _ in range(3)]
        admitted = await asyncio.gather(*(attempt(processes[number % 3]) for number in range(40)))
        assert sum(admitted) == 10
        assert (await harness.limits.used(rich))[1] == 1_000_000
        with pytest.raises(RateLimited, match=r"0\.00 dollars for this month") as refused:
            await harness.limits.reserve(rich, 0, 1, price)
        assert int(refused.value.headers["retry-after"]) > 3600

    asyncio.run(run())


@pytest.mark.parametrize(
    ("usage", "cost", "is_answered", "left"),
    [
        (Usage(input=3, output=4), 7_000, True, 7_000),
        (Usage(input=3, output=4), None, True, 100_000),  # another model answered, whose price is unknown
        (None, None, True, 100_000),
        (None, None, False, 0),
    ],
)
def test_the_cost_of_the_answer_replaces_what_was_reserved(
    harness: Harness, usage: Usage | None, cost: int | None, is_answered: bool, left: int
) -> None:
    rich = key(max_cost=1_000_000)

    async def run() -> None:
        held = await harness.limits.reserve(rich, 0, 100, Price(input=1, output=1))
        for _ in range(2):  # a repeated settlement counts once
            await harness.limits.settle(held, usage, is_answered=is_answered, cost=cost)
        assert (await harness.limits.used(rich))[1] == left

    asyncio.run(run())


def test_the_cost_of_a_key_without_limits_is_counted(harness: Harness) -> None:
    async def run() -> None:
        held = harness.limits.unlimited(key())
        await harness.limits.settle(held, Usage(input=1), is_answered=True, cost=5)
        assert await harness.limits.used(key()) == (1, 5)

    asyncio.run(run())
