"""Work beside the event loop: it runs in another thread, and what it returns or raises arrives."""

from __future__ import annotations

import asyncio
import threading

import pytest

from toolwire.offload import offload


def test_it_runs_in_another_thread_while_the_loop_continues() -> None:
    async def main() -> None:
        may_end = threading.Event()

        def work(number: int, *, more: int) -> tuple[int, int]:
            assert may_end.wait(20)  # the loop has to run on for this
            return number + more, threading.get_ident()

        working = asyncio.create_task(offload(work, 1, more=2))
        await asyncio.sleep(0.01)
        assert not working.done()
        may_end.set()
        total, thread = await working
        assert total == 3
        assert thread != threading.get_ident()

    asyncio.run(main())


def test_what_it_raises_arrives() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(offload(fail))


def test_threads_are_few() -> None:
    async def main() -> None:
        names = await asyncio.gather(*(offload(threading.get_ident) for _ in range(50)))
        assert len(set(names)) <= 2

    asyncio.run(main())
