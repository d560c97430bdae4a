"""Several app-servers: who gets the next turn, what happens after a death, when one is replaced, and that none is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.backends.codex.processes import marked, zombies
from tests.backends.codex.starting import environment, worker
from toolwire.backends.codex.pool import Lease, WorkerLimits, WorkerPool, memory_of
from toolwire.backends.codex.worker import AppServerWorker
from toolwire.backends.sessions import SessionLost
from toolwire.errors import UpstreamError

pytestmark = pytest.mark.slow


class Stage:
    """A pool on fake app-servers; failures are the starts that are still to fail."""

    def __init__(self, folder: Path, size: int = 2, limits: WorkerLimits | None = None) -> None:
        self.environ, self.mark = environment()
        self.starts = 0
        self.failures = 0
        self._folder = folder
        self.pool = WorkerPool(self._start, size, limits)

    async def _start(self) -> AppServerWorker:
        self.starts += 1
        if self.failures:
            self.failures -= 1
            raise UpstreamError("it cannot be started.", code="codex_not_started", hint="Do something.")
        return await worker(self._folder, environ=self.environ)


def played(stage: Stage, play: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    """play() on the stage, and then nobody is left."""

    async def main() -> None:
        try:
            await play(stage)
        finally:
            await stage.pool.close()
            await stage.pool.close()
        assert stage.pool.workers == []

    asyncio.run(main())
    assert marked(stage.mark) == zombies() == []


async def _killed(lease: Lease) -> None:
    os.kill(lease.worker.channel.pid, signal.SIGKILL)
    with suppress(SessionLost):
        while True:
            await lease.worker.ask("model/list", {})
    assert not lease.worker.is_alive


def test_those_that_are_retired_end_with_their_last_turn_and_others_take_their_place(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        leases = [await stage.pool.lease() for _ in range(10)]
        busy = leases[0].worker
        for lease in leases:
            if lease.worker is not busy:
                lease.release(is_good=True)
        stage.pool.retire()
        assert stage.pool.workers == [busy]
        (fresh := await stage.pool.lease()).release(is_good=True)
        assert fresh.worker is not busy
        assert busy.is_alive
        for lease in leases:
            lease.release(is_good=True)
        assert stage.pool.workers == [fresh.worker]

    played(Stage(tmp_path), play)


def test_a_second_one_starts_when_the_first_is_busy_and_then_they_share(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        leases = [await stage.pool.lease() for _ in range(10)]
        assert stage.starts == len(stage.pool.workers) == 2
        counts = sorted(sum(lease.worker is one for lease in leases) for one in stage.pool.workers)
        assert counts == [5, 5]
        for lease in leases:
            lease.release(is_good=True)
            lease.release(is_good=True)
        assert stage.pool.running == 0

    played(Stage(tmp_path), play)


def test_those_who_come_at_once_wait_for_the_same_start(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        leases = await asyncio.gather(*(stage.pool.lease() for _ in range(50)))
        assert stage.starts == 2
        assert stage.pool.running == len(leases) == 50

    played(Stage(tmp_path), play)


def test_a_start_that_fails_is_reported_to_everybody_and_tried_again_after_a_pause(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        stage.failures = 1
        failed = await asyncio.gather(*(stage.pool.lease() for _ in range(3)), return_exceptions=True)
        assert [str(error) for error in failed] == ["it cannot be started."] * 3
        since = time.monotonic()
        await stage.pool.lease()
        assert 0.3 < time.monotonic() - since < 2.0
        assert stage.starts == 2

    played(Stage(tmp_path, size=1), play)


def test_where_a_second_one_does_not_start_the_first_does_its_work(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        first = await stage.pool.lease()
        stage.failures = 1
        leases = await asyncio.gather(*(stage.pool.lease() for _ in range(6)))
        assert {lease.worker for lease in leases} == {first.worker}
        assert stage.starts == 2
        for lease in (first, *leases):
            lease.release(is_good=True)
        assert stage.pool.workers == [first.worker]

    played(Stage(tmp_path), play)


def test_pauses_grow_and_a_long_one_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.pool._MAX_WAIT", 0.01)

    async def play(stage: Stage) -> None:
        stage.failures = 9
        with pytest.raises(UpstreamError):
            await stage.pool.lease()
        with pytest.raises(UpstreamError, match="it cannot be started") as caught:
            await stage.pool.lease()
        assert caught.value.headers == {"retry-after": "1"}
        assert caught.value.hint == "Do something."
        assert stage.starts == 1
        [slot] = stage.pool._slots
        pauses = []
        for _ in range(8):
            slot.fail(caught.value)
            pauses.append(round(slot.pause()))
        assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]

    played(Stage(tmp_path, size=1), play)


def test_after_a_death_the_slot_waits_and_the_other_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.pool._FIRST_PAUSE", 0.2)

    async def play(stage: Stage) -> None:
        leases = [await stage.pool.lease() for _ in range(6)]
        dead = leases[0].worker
        await _killed(leases[0])
        for lease in leases:
            lease.release(is_good=lease.worker.is_alive)
        others = [await stage.pool.lease() for _ in range(6)]
        assert all(lease.worker is not dead for lease in others)
        assert len({id(lease.worker) for lease in others}) == 1
        assert stage.starts == 2
        await asyncio.sleep(0.2)
        again = await stage.pool.lease()
        assert again.worker not in (dead, others[0].worker)
        assert stage.starts == 3

    played(Stage(tmp_path), play)


def test_a_good_turn_makes_the_pauses_short_again(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        lease = await stage.pool.lease()
        [slot] = stage.pool._slots
        for _ in range(5):
            slot.fail(UpstreamError("x"))
        lease.release(is_good=True)
        slot.fail(UpstreamError("x"))
        assert slot.pause() < 0.6

    played(Stage(tmp_path, size=1), play)


def test_one_that_has_had_enough_threads_is_drained_and_replaced(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        long = await stage.pool.lease()
        for _ in range(3):
            short = await stage.pool.lease()
            await short.worker.open("thread/start", {})
            short.release(is_good=True)
        new = await stage.pool.lease()
        assert new.worker is not long.worker
        assert long.worker.is_alive
        await long.worker.ask("model/list", {})
        long.release(is_good=True)
        while long.worker.is_alive:
            await asyncio.sleep(0.01)
        assert stage.pool.workers == [new.worker]
        assert stage.starts == 2

    played(Stage(tmp_path, size=1, limits=WorkerLimits(threads=3)), play)


def test_one_that_has_grown_is_replaced(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        for _ in range(10):
            lease = await stage.pool.lease()
            await lease.worker.open("thread/start", {})
            assert memory_of(lease.worker.channel.pid) > 1 << 20
            lease.release(is_good=True)
        assert (await stage.pool.lease()).worker is not lease.worker

    played(Stage(tmp_path, size=1, limits=WorkerLimits(memory=1 << 20)), play)


def test_a_client_that_disconnects_during_the_start_does_not_stop_the_start(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        waiting = asyncio.create_task(stage.pool.lease())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await stage.pool.lease()
        assert stage.starts == 1

    played(Stage(tmp_path, size=1), play)


def test_closing_ends_what_is_just_starting_and_nothing_starts_after_it(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        waiting = asyncio.create_task(stage.pool.lease())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await stage.pool.close()
        await asyncio.gather(waiting, return_exceptions=True)
        with pytest.raises(UpstreamError, match="closed"):
            await stage.pool.lease()

    played(Stage(tmp_path, size=1), play)


def test_unknown_memory_is_none() -> None:
    assert memory_of(0) == 0
    assert memory_of(1 << 30) == 0


@pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="there is no /proc here")
def test_what_it_has_started_counts() -> None:
    def alone() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    assert memory_of(os.getpid()) >= alone() * 0.9 > 1 << 20
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo; wait"], stdout=subprocess.PIPE, process_group=0) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert memory_of(child.pid) > int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
        os.killpg(child.pid, 9)
