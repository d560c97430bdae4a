"""Reference cycles are found by time, also where nothing else happens."""

from __future__ import annotations

import asyncio
import gc
import weakref

from toolwire.server.collector import Collector


class Node:
    def __init__(self) -> None:
        self.other: Node | None = None


def test_a_cycle_is_collected_without_any_allocation() -> None:
    async def main() -> None:
        collected = asyncio.Event()
        collector = Collector(interval=0.01)
        collector.start()
        one, two = Node(), Node()
        one.other, two.other = two, one
        weakref.finalize(one, collected.set)
        del one, two
        try:
            async with asyncio.timeout(20):
                await collected.wait()
        finally:
            collector.stop()

    thresholds = gc.get_threshold()
    try:
        asyncio.run(main())
        assert gc.get_threshold()[0] > 10_000
    finally:
        gc.set_threshold(*thresholds)


def test_it_stops() -> None:
    async def main() -> None:
        collector = Collector(interval=0.0)
        collector.start()
        collector.stop()
        runs = gc.get_stats()[1]["collections"]
        for _ in range(5):
            await asyncio.sleep(0)
        assert gc.get_stats()[1]["collections"] == runs

    thresholds = gc.get_threshold()
    try:
        asyncio.run(main())
    finally:
        gc.set_threshold(*thresholds)
