"""Live runs: delivery of one answer, and parking between two requests."""

from __future__ import annotations

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual_clock import run_virtually
from toolwire.backends.continuation import ResumePoint
from toolwire.backends.sessions import (
    Delivery,
    Inbox,
    Overflow,
    Parking,
    ParkingCounts,
    RunReply,
    SessionLost,
    read_first,
)
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, PartDelta, PartStarted, Started
from toolwire.types import Text

ONE = ResumePoint(frozenset({"call_1"}), "ground", "me")
STARTED = PartStarted(index=0, part=Text(text=""))


class ListedRun:
    """A run with a fixed list of event batches."""

    def __init__(self, *batches: list[Event]) -> None:
        self._batches = list(batches)

    @property
    def is_over(self) -> bool:
        return not self._batches

    async def more(self) -> list[Event]:
        return self._batches.pop(0)


def deliver(run: ListedRun) -> tuple[Delivery[ListedRun], list[str]]:
    handed: list[str] = []
    return Delivery(run, lambda run: handed.append("settled"), lambda run: handed.append("abandoned")), handed


def test_delivery_settles_the_run_before_the_last_events() -> None:
    async def main() -> None:
        delivery, handed = deliver(ListedRun([], [PartDelta(0, "b")]))
        seen = [(events, list(handed)) async for events in delivery.events([STARTED])]
        assert seen == [([STARTED], []), ([PartDelta(0, "b")], ["settled"])]
        delivery.stop()
        assert handed == ["settled"]

    asyncio.run(main())


def test_delivery_abandons_a_run_that_is_not_read_to_its_end() -> None:
    async def main() -> None:
        delivery, handed = deliver(ListedRun([STARTED]))
        reply = RunReply(events=delivery.events([STARTED]), stop=delivery.stop)
        await anext(reply.events)
        await reply.close()
        assert handed == ["abandoned"]
        unread, handed = deliver(ListedRun([STARTED]))
        await RunReply(events=unread.events([]), stop=unread.stop).close()
        assert handed == ["abandoned"]

    asyncio.run(main())


def test_read_first_returns_everything_up_to_the_first_part() -> None:
    started = Started(id="1", model="m")
    run = ListedRun([started], [], [STARTED], [PartDelta(0, "b")])
    assert asyncio.run(read_first(run, run.more)) == [started, STARTED]


def test_read_first_raises_the_error_of_an_answer_without_parts() -> None:
    failed = Failed(error=UpstreamError("no.", code="gone"))
    empty, begun = ListedRun([Started(id="1", model="m")], [failed]), ListedRun([STARTED, failed])
    with pytest.raises(UpstreamError, match="no"):
        asyncio.run(read_first(empty, empty.more))
    assert asyncio.run(read_first(begun, begun.more)) == [STARTED, failed]


class Stopped(list[str]):
    """The runs that were stopped, in order."""

    async def stop(self, turn: str) -> None:
        await asyncio.sleep(0)
        self.append(turn)


def test_take_returns_a_run_once_and_only_at_its_point() -> None:
    async def main() -> None:
        stopped = Stopped()
        parking = Parking(stopped.stop)
        parking.park("turn", ONE)
        others = (
            ResumePoint(frozenset({"call_1", "call_2"}), "ground", "me"),
            ResumePoint(frozenset(), "ground", "me"),
            ResumePoint(frozenset({"call_1"}), "edited", "me"),
            ResumePoint(frozenset({"call_1"}), "ground", "you"),
            ResumePoint(frozenset({"call_1"}), "ground"),
        )
        assert [parking.take(place) for place in others] == [None] * 5
        assert parking.take(ONE) == "turn"
        assert parking.take(ONE) is None
        await parking.close()
        assert stopped == []
        assert parking.counts == ParkingCounts(parked=1, taken=1)

    asyncio.run(main())


def test_concurrent_requests_take_a_run_once() -> None:
    async def main() -> None:
        parking = Parking(Stopped().stop)
        parking.park("turn", ONE)

        async def ask() -> str | None:
            await asyncio.sleep(0)
            return parking.take(ONE)

        found = await asyncio.gather(*(ask() for _ in range(50)))
        assert sorted(found, key=str) == [None] * 49 + ["turn"]

    asyncio.run(main())


def test_expired_runs_are_stopped() -> None:
    async def main() -> None:
        stopped = Stopped()
        parking = Parking(stopped.stop, seconds=0.02)
        parking.park("first", ONE)
        parking.park("second", ResumePoint(frozenset({"call_2"})))
        assert parking.take(ResumePoint(frozenset({"call_2"}))) == "second"
        await asyncio.sleep(0.08)
        assert stopped == ["first"]
        assert (len(parking), parking.stopping) == (0, 0)
        assert parking.take(ONE) is None
        assert parking.counts == ParkingCounts(parked=2, taken=1, expired=1)

    run_virtually(main())


def test_the_oldest_of_too_many_is_evicted() -> None:
    async def main() -> None:
        stopped = Stopped()
        parking = Parking(stopped.stop, most=2)
        places = [ResumePoint(frozenset({f"call_{number}"})) for number in range(4)]
        for number, place in enumerate(places):
            parking.park(f"turn {number}", place)
        await asyncio.sleep(0.01)
        assert stopped == ["turn 0", "turn 1"]
        assert [parking.take(place) for place in places] == [None, None, "turn 2", "turn 3"]
        assert parking.counts.evicted == 2

    run_virtually(main())


def test_runs_at_the_same_point_are_taken_one_by_one() -> None:
    """The same conversation was sent twice: either run may answer, each once."""

    async def main() -> None:
        parking = Parking(Stopped().stop)
        parking.park("first", ONE)
        parking.park("second", ONE)
        assert [parking.take(ONE) for _ in range(3)] == ["second", "first", None]

    asyncio.run(main())


def test_close_stops_every_run_and_waits_for_it() -> None:
    async def main() -> None:
        stopped = Stopped()
        parking = Parking(stopped.stop)
        for number in range(3):
            parking.park(f"turn {number}", ResumePoint(frozenset({str(number)})))
        await parking.close()
        await parking.close()
        assert stopped == ["turn 0", "turn 1", "turn 2"]
        assert (len(parking), parking.stopping) == (0, 0)
        parking.park("late", ONE)
        assert len(parking) == 0
        await parking.close()
        assert stopped[-1] == "late"
        assert parking.counts == ParkingCounts(parked=4, closed=4)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_an_error_while_stopping_is_counted() -> None:
    async def main() -> None:
        async def stop(turn: str) -> None:
            if turn == "bad":
                raise OSError("no")

        parking = Parking(stop)
        parking.park("bad", ONE)
        parking.park("good", ONE)
        await parking.close()
        assert parking.counts == ParkingCounts(parked=2, closed=2, failed=1)

    asyncio.run(main())
    gc.collect()  # "exception was never retrieved" would be raised here


def test_discard_removes_a_run_without_stopping_it() -> None:
    async def main() -> None:
        stopped = Stopped()
        parking = Parking(stopped.stop, seconds=0.02)
        turn = "turn"
        parking.park(turn, ONE)
        assert parking.discard(turn)
        assert not parking.discard(turn)
        await asyncio.sleep(0.05)
        assert stopped == []
        assert parking.take(ONE) is None

    run_virtually(main())


@given(st.lists(st.tuples(st.sampled_from(["park", "take"]), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_every_run_is_taken_or_stopped_once(steps: list[tuple[str, int]], most: int) -> None:
    async def main() -> None:
        stopped = Stopped()
        parking = Parking(stopped.stop, most=most)
        taken = []
        for number, (step, where) in enumerate(steps):
            place = ResumePoint(frozenset({str(where)}))
            if step == "park":
                parking.park(f"turn {number}", place)
            elif (turn := parking.take(place)) is not None:
                taken.append(turn)
            assert len(parking) <= most
        await parking.close()
        parked = [f"turn {number}" for number, (step, _) in enumerate(steps) if step == "park"]
        assert sorted([*taken, *stopped]) == sorted(parked)

    asyncio.run(main())


def test_supersede_stops_runs_whose_calls_were_answered_elsewhere() -> None:
    async def main() -> None:
        stopped: list[str] = []

        async def stop(turn: str) -> None:
            stopped.append(turn)

        parking: Parking[str] = Parking(stop)
        parking.park("superseded", ResumePoint(frozenset({"a", "b"}), "ground", "me"))
        parking.park("another call", ResumePoint(frozenset({"a", "c"}), "ground", "me"))
        parking.park("another's", ResumePoint(frozenset({"a"}), "ground", "you"))
        parking.supersede(["a", "b"], "me")
        assert (len(parking), parking.counts.superseded) == (2, 1)
        await parking.close()
        assert stopped[0] == "superseded"

    asyncio.run(main())


def test_messages_are_read_in_order_and_waited_for() -> None:
    async def main() -> None:
        inbox = Inbox[int]("r", 1000)
        reading = asyncio.create_task(inbox.next())
        await asyncio.sleep(0)
        assert inbox.put(0, 10)
        assert await reading == 0
        inbox.put(1, 10)
        inbox.put(2, 10)
        assert [await inbox.next(), *inbox.ready()] == [1, 2]
        assert inbox.ready() == []

    asyncio.run(main())


def test_too_much_unread_output_is_thrown_away() -> None:
    async def main() -> None:
        inbox = Inbox[int]("r", 1000)
        assert inbox.put(0, 5000)  # the next one to be read always has room
        assert inbox.put(1, 700)
        assert not inbox.put(2, 10)
        assert inbox.put(3, 10)  # nobody is told twice
        with pytest.raises(Overflow):
            await inbox.next()

    asyncio.run(main())


def test_what_was_read_makes_room() -> None:
    async def main() -> None:
        inbox = Inbox[int]("r", 1000)
        for seq in range(100):
            assert inbox.put(seq, 500)
            assert await inbox.next() == seq

    asyncio.run(main())


def test_small_messages_are_not_free() -> None:
    async def main() -> None:
        inbox = Inbox[int]("r", 10_000)
        assert sum(inbox.put(seq, 1) for seq in range(39)) == 39
        assert not inbox.put(39, 1)

    asyncio.run(main())


def test_what_came_before_the_end_is_still_read() -> None:
    async def main() -> None:
        inbox = Inbox[int]("r", 1000)
        inbox.put(0, 10)
        inbox.end(SessionLost("it left"))
        inbox.end(SessionLost("again"))
        assert await inbox.next() == 0
        with pytest.raises(SessionLost, match="it left"):
            await inbox.next()

    asyncio.run(main())


def test_a_reader_that_waits_hears_of_the_end() -> None:
    async def main() -> None:
        inbox = Inbox[int]("r", 1000)
        reading = asyncio.create_task(inbox.next())
        await asyncio.sleep(0)
        inbox.end(SessionLost("it left"))
        with pytest.raises(SessionLost, match="it left"):
            await asyncio.wait_for(reading, 1)

    asyncio.run(main())
