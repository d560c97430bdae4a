"""A loop in a thread: what it holds is opened and closed in one task, and what it runs can be stopped."""

from __future__ import annotations

import asyncio
import threading

import pytest

from toolwire.cli.chat.loop_thread import LoopThread


class Held:
    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault
        self.tasks: list[object] = []

    async def __aenter__(self) -> Held:
        self.tasks.append(asyncio.current_task())
        if self._fault is not None:
            raise self._fault
        return self

    async def __aexit__(self, *_: object) -> None:
        self.tasks.append(asyncio.current_task())


def test_what_is_held_is_closed_in_the_task_that_opened_it() -> None:
    held = Held()
    with LoopThread() as worker:
        worker.hold(held)
        assert len(held.tasks) == 1
    assert len(held.tasks) == 2
    assert held.tasks[0] is held.tasks[1]


def test_what_cannot_be_opened_says_why() -> None:
    with LoopThread() as worker, pytest.raises(ValueError, match="not today"):
        worker.hold(Held(ValueError("not today")))


def test_work_is_done_elsewhere_and_its_result_comes_back() -> None:
    async def name() -> str:
        return threading.current_thread().name

    with LoopThread() as worker:
        assert worker.run(name()) == "toolwire-chat"
    assert "toolwire-chat" not in [thread.name for thread in threading.enumerate()]


def test_a_job_is_stopped_from_outside() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    with LoopThread() as worker:
        job = worker.start(work())
        assert begun.wait(5)
        job.cancel()
        assert ended.wait(5)
        job.cancel()


def test_what_still_runs_is_stopped_at_the_end() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    with LoopThread() as worker:
        worker.start(work())
        assert begun.wait(5)
    assert ended.is_set()
