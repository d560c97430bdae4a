"""Functions in threads of their own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from toolwire.tools import threads
from toolwire.tools.threads import in_thread


def test_results_and_errors_come_back() -> None:
    async def main() -> None:
        assert await in_thread(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await in_thread(lambda: 1 // 0)

    asyncio.run(main())


def test_the_result_of_a_cancelled_call_is_dropped() -> None:
    go = threading.Event()

    async def main() -> None:
        task = asyncio.create_task(in_thread(lambda: go.wait(5)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        while threads._threads.busy:
            await asyncio.sleep(0.01)

    asyncio.run(main())


def test_the_number_of_running_functions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(threads, "MOST", 2)

    async def main() -> None:
        waiting = [asyncio.create_task(in_thread(lambda: go.wait(5))) for _ in range(2)]
        await asyncio.sleep(0.01)
        with pytest.raises(RuntimeError, match="have not ended"):
            await in_thread(lambda: 1)
        go.set()
        await asyncio.gather(*waiting)
        while threads._threads.busy:  # a thread is free a moment after its result
            await asyncio.sleep(0.01)
        assert await in_thread(lambda: 1) == 1

    asyncio.run(main())


def test_threads_are_used_again() -> None:
    async def main() -> None:
        before = {await in_thread(threading.get_ident) for _ in range(20)}
        assert len(before) < 20
        at_once = threading.Barrier(30, timeout=5)
        assert len(await asyncio.gather(*(in_thread(at_once.wait) for _ in range(30)))) == 30
        while threads._threads.busy:
            await asyncio.sleep(0.01)

    asyncio.run(main())
    for _ in range(100):
        if sum(thread.name == "toolwire-tool" for thread in threading.enumerate()) <= threads._MAX_IDLE:
            return
        threading.Event().wait(0.01)
    pytest.fail("more threads are left than may wait for work")


@pytest.mark.slow
def test_a_function_that_never_ends_does_not_keep_the_program() -> None:
    program = """
import asyncio, time
from toolwire.tools.threads import in_thread
async def main():
    try:
        await asyncio.wait_for(in_thread(lambda: time.sleep(60)), 0.05)
    except TimeoutError:
        print("left")
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=20, check=True)
    assert ended.stdout == b"left\n"
