"""An asynchronous generator, read by a program without an event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator

import pytest

from toolwire.agent.blocking import iterate


def test_what_it_yields_comes_in_order_and_one_task_makes_it() -> None:
    tasks = set()

    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(50):
            tasks.add(id(asyncio.current_task()))
            await asyncio.sleep(0)
            yield number

    assert list(iterate(numbers)) == list(range(50))
    assert len(tasks) == 1


def test_nothing_starts_before_the_first_item_is_requested() -> None:
    made: list[int] = []

    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(10):
            made.append(number)
            yield number

    items = iterate(numbers)
    assert made == []
    assert (next(items), next(items)) == (0, 1)
    time.sleep(0.02)
    assert made == [0, 1]
    items.close()  # type: ignore[attr-defined] # a generator


def test_the_generator_is_closed_before_a_reader_that_stops_continues() -> None:
    told: list[str] = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0.01)
            told.append("closed")

    before = threading.active_count()
    items = iterate(numbers)
    assert next(items) == 1
    items.close()  # type: ignore[attr-defined] # a generator
    assert told == ["closed"]
    assert threading.active_count() == before


def test_what_it_raises_reaches_the_reader() -> None:
    async def broken() -> AsyncGenerator[int, None]:
        yield 1
        raise ValueError("no more")

    items = iterate(broken)
    assert next(items) == 1
    with pytest.raises(ValueError, match="no more"):
        next(items)


def test_background_work_continues_while_the_reader_is_busy() -> None:
    done = threading.Event()

    async def work() -> None:
        await asyncio.sleep(0.02)
        done.set()

    async def numbers() -> AsyncGenerator[int, None]:
        task = asyncio.create_task(work())
        yield 1
        await task

    items = iterate(numbers)
    assert next(items) == 1
    assert done.wait(5)
    assert list(items) == []


def test_inside_a_running_loop_too() -> None:
    async def one() -> AsyncGenerator[int, None]:
        yield 1

    async def main() -> list[int]:
        return list(iterate(one))

    assert asyncio.run(main()) == [1]
