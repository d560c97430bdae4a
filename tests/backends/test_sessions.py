"""Open turns between two requests."""

from __future__ import annotations

import asyncio
import gc

from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.sessions import Counts, Parking, Place

ONE = Place(frozenset({"call_1"}), "ground", "me")


class Gone(list[str]):
    """What was let go, in order."""

    async def let_go(self, turn: str) -> None:
        await asyncio.sleep(0)
        self.append(turn)


def test_a_turn_is_taken_once_at_its_exact_place() -> None:
    async def main() -> None:
        gone = Gone()
        parking = Parking(gone.let_go)
        parking.park("turn", ONE)
        others = (
            Place(frozenset({"call_1", "call_2"}), "ground", "me"),
            Place(frozenset(), "ground", "me"),
            Place(frozenset({"call_1"}), "edited", "me"),
            Place(frozenset({"call_1"}), "ground", "you"),
            Place(frozenset({"call_1"}), "ground"),
        )
        assert [parking.take(place) for place in others] == [None] * 5
        assert parking.take(ONE) == "turn"
        assert parking.take(ONE) is None
        await parking.close()
        assert gone == []
        assert parking.counts == Counts(parked=1, taken=1)

    asyncio.run(main())


def test_of_many_requests_at_once_exactly_one_gets_the_turn() -> None:
    async def main() -> None:
        parking = Parking(Gone().let_go)
        parking.park("turn", ONE)

        async def ask() -> str | None:
            await asyncio.sleep(0)
            return parking.take(ONE)

        found = await asyncio.gather(*(ask() for _ in range(50)))
        assert sorted(found, key=str) == [None] * 49 + ["turn"]

    asyncio.run(main())


def test_nobody_waits_longer_than_its_time() -> None:
    async def main() -> None:
        gone = Gone()
        parking = Parking(gone.let_go, seconds=0.02)
        parking.park("first", ONE)
        parking.park("second", Place(frozenset({"call_2"})))
        assert parking.take(Place(frozenset({"call_2"}))) == "second"
        await asyncio.sleep(0.08)
        assert gone == ["first"]
        assert (len(parking), parking.leaving) == (0, 0)
        assert parking.take(ONE) is None
        assert parking.counts == Counts(parked=2, taken=1, expired=1)

    asyncio.run(main())


def test_the_oldest_of_too_many_goes() -> None:
    async def main() -> None:
        gone = Gone()
        parking = Parking(gone.let_go, most=2)
        places = [Place(frozenset({f"call_{number}"})) for number in range(4)]
        for number, place in enumerate(places):
            parking.park(f"turn {number}", place)
        await asyncio.sleep(0.01)
        assert gone == ["turn 0", "turn 1"]
        assert [parking.take(place) for place in places] == [None, None, "turn 2", "turn 3"]
        assert parking.counts.crowded_out == 2

    asyncio.run(main())


def test_alike_turns_are_kept_apart() -> None:
    """The same conversation, asked twice: each answer is as good as the other, and each is given once."""

    async def main() -> None:
        parking = Parking(Gone().let_go)
        parking.park("first", ONE)
        parking.park("second", ONE)
        assert [parking.take(ONE) for _ in range(3)] == ["second", "first", None]

    asyncio.run(main())


def test_close_lets_everybody_go_and_waits_for_it() -> None:
    async def main() -> None:
        gone = Gone()
        parking = Parking(gone.let_go)
        for number in range(3):
            parking.park(f"turn {number}", Place(frozenset({str(number)})))
        await parking.close()
        await parking.close()
        assert gone == ["turn 0", "turn 1", "turn 2"]
        assert (len(parking), parking.leaving) == (0, 0)
        parking.park("late", ONE)
        assert len(parking) == 0
        await parking.close()
        assert gone[-1] == "late"
        assert parking.counts == Counts(parked=4, closed=4)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_callback_that_raises_is_counted_and_stops_nobody() -> None:
    async def main() -> None:
        async def let_go(turn: str) -> None:
            if turn == "bad":
                raise OSError("no")

        parking = Parking(let_go)
        parking.park("bad", ONE)
        parking.park("good", ONE)
        await parking.close()
        assert parking.counts == Counts(parked=2, closed=2, failed=1)

    asyncio.run(main())
    gc.collect()  # "exception was never retrieved" would be raised here


def test_a_turn_that_died_by_itself_is_forgotten() -> None:
    async def main() -> None:
        gone = Gone()
        parking = Parking(gone.let_go, seconds=0.02)
        turn = "turn"
        parking.park(turn, ONE)
        assert parking.forget(turn)
        assert not parking.forget(turn)
        await asyncio.sleep(0.05)
        assert gone == []
        assert parking.take(ONE) is None

    asyncio.run(main())


@given(st.lists(st.tuples(st.sampled_from(["park", "take"]), st.integers(0, 3)), max_size=40), st.integers(1, 4))
def test_every_turn_is_taken_or_let_go_once(steps: list[tuple[str, int]], most: int) -> None:
    async def main() -> None:
        gone = Gone()
        parking = Parking(gone.let_go, most=most)
        taken = []
        for number, (step, where) in enumerate(steps):
            place = Place(frozenset({str(where)}))
            if step == "park":
                parking.park(f"turn {number}", place)
            elif (turn := parking.take(place)) is not None:
                taken.append(turn)
            assert len(parking) <= most
        await parking.close()
        parked = [f"turn {number}" for number, (step, _) in enumerate(steps) if step == "park"]
        assert sorted([*taken, *gone]) == sorted(parked)

    asyncio.run(main())


def test_whoever_waits_for_calls_that_were_answered_elsewhere_is_let_go() -> None:
    async def main() -> None:
        gone: list[str] = []

        async def let_go(turn: str) -> None:
            gone.append(turn)

        parking: Parking[str] = Parking(let_go)
        parking.park("in vain", Place(frozenset({"a", "b"}), "ground", "me"))
        parking.park("another call", Place(frozenset({"a", "c"}), "ground", "me"))
        parking.park("another's", Place(frozenset({"a"}), "ground", "you"))
        parking.overtake(["a", "b"], "me")
        assert (len(parking), parking.counts.overtaken) == (2, 1)
        await parking.close()
        assert gone[0] == "in vain"

    asyncio.run(main())
