from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from toolwire.tools.workspace.limits import COMMANDS, Budget, Stopped, off_loop


def test_a_budget_is_over_when_its_time_is() -> None:
    assert Budget(0).is_over
    assert not Budget(10).is_over
    Budget(0).check()


def test_a_budget_that_is_cancelled_stops_the_work() -> None:
    budget = Budget(10)
    shorter = budget.shortened(5)
    budget.cancel()
    assert budget.is_over
    assert shorter.is_over
    with pytest.raises(Stopped):
        shorter.check()


def test_a_shortened_budget_is_never_longer() -> None:
    assert Budget(0).shortened(10).is_over


def test_work_is_done_off_the_loop() -> None:
    async def main() -> tuple[int, int]:
        return await off_loop(lambda budget: threading.get_ident(), 1), threading.get_ident()

    there, here = asyncio.run(main())
    assert there != here


def test_cancelling_stops_the_work_and_waits_for_it() -> None:
    steps = list[str]()

    def work(budget: Budget) -> None:
        while not budget.is_cancelled:
            time.sleep(0.005)
        steps.append("told")
        budget.check()
        steps.append("went on")

    async def main() -> None:
        task = asyncio.create_task(off_loop(work, 10))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["told"]

    asyncio.run(main())


def test_long_work_does_not_keep_others_waiting() -> None:
    async def main() -> int:
        waiting = [asyncio.create_task(off_loop(_until_told, 10)) for _ in range(12)]
        await asyncio.sleep(0)
        answer = await asyncio.to_thread(lambda: 42)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return answer

    assert asyncio.run(main()) == 42


def test_files_do_not_wait_for_commands() -> None:
    async def main() -> int:
        waiting = [asyncio.create_task(off_loop(_until_told, 60, COMMANDS)) for _ in range(100)]
        await asyncio.sleep(0)
        answer = await off_loop(lambda budget: 42, 1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return answer

    assert asyncio.run(main()) == 42


def test_the_time_starts_with_the_work_and_not_in_the_queue() -> None:
    pool, seconds = ThreadPoolExecutor(1), 0.05

    async def main() -> bool:
        first = asyncio.create_task(off_loop(lambda budget: time.sleep(2 * seconds), 10, pool))
        queued = asyncio.create_task(off_loop(lambda budget: budget.is_over, seconds, pool))
        await first
        return await queued

    assert asyncio.run(main()) is False


def test_queued_work_that_is_cancelled_never_starts() -> None:
    pool, started = ThreadPoolExecutor(1), threading.Event()

    async def main() -> None:
        holding = asyncio.create_task(off_loop(_until_told, 60, pool))
        queued = asyncio.create_task(off_loop(lambda budget: started.set(), 60, pool))
        await asyncio.sleep(0)
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
        await off_loop(lambda budget: None, 1, pool)

    asyncio.run(main())
    assert not started.is_set()


def _until_told(budget: Budget) -> None:
    while not budget.is_over:
        time.sleep(0.005)
