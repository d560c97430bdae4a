"""Who does a task: the caller at once, or the thread with all others that wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from sqlite3 import Connection

import pytest

from tests.memory.store.contract import DAY, MB, until
from toolwire.errors import ConfigError, GatewayError
from toolwire.memory.store.pruning import bounds_of
from toolwire.memory.store.session import StoreSession, Task
from toolwire.memory.store.writer_thread import StoreThread


def run(folder: Path, test: Callable[[StoreThread], Awaitable[None]]) -> None:
    async def main() -> None:
        worker = StoreThread(lambda: StoreSession(folder / "state.db", bounds_of(8 * MB), DAY, 1.0), time.time)
        try:
            await test(worker)
        finally:
            await worker.close()

    asyncio.run(main())


def where(connection: Connection) -> str:
    return threading.current_thread().name


def test_the_thread_opens_and_the_caller_continues(tmp_path: Path) -> None:
    async def test(worker: StoreThread) -> None:
        assert await worker.do(Task(where, 1)) == "toolwire-store"

        async def is_mine() -> bool:
            name: str = await worker.do(Task(where, 1))
            return name == "MainThread"

        await until(is_mine)
        assert await worker.do(Task(where, 100)) == "toolwire-store"

    run(tmp_path, test)


def test_what_waits_for_the_thread_is_done_together(tmp_path: Path) -> None:
    async def test(worker: StoreThread) -> None:
        await worker.do(Task(where))
        counts: list[int] = []

        def slow(connection: Connection) -> None:
            time.sleep(0.05)

        def count(connection: Connection) -> None:
            counts.append(connection.execute("SELECT total_changes()").fetchone()[0])
            connection.execute("INSERT INTO output_ids VALUES (?, 1)", (len(counts),))
            assert connection.in_transaction

        first = asyncio.create_task(worker.do(Task(slow, 100)))
        await asyncio.sleep(0.01)
        await asyncio.gather(*(worker.do(Task(count, 1)) for _ in range(20)))
        await first
        assert len(counts) == 20

    run(tmp_path, test)


def test_a_caller_that_is_cancelled_still_has_its_write(tmp_path: Path) -> None:
    async def test(worker: StoreThread) -> None:
        await worker.do(Task(where))

        def slow(connection: Connection) -> None:
            time.sleep(0.05)
            connection.execute("INSERT INTO output_ids VALUES (7, 1)")

        task = asyncio.create_task(worker.do(Task(slow, 100)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        question = Task(lambda connection: connection.execute("SELECT count(*) FROM output_ids").fetchone()[0], 100)
        assert await worker.do(question) == 1

    run(tmp_path, test)


def test_a_slow_disk_is_left_to_the_thread_for_a_while(tmp_path: Path) -> None:
    async def test(worker: StoreThread) -> None:
        await worker.do(Task(where))

        def slow(connection: Connection) -> str:
            time.sleep(0.15)
            return where(connection)

        async def was_felt() -> bool:
            name: str = await worker.do(Task(slow))
            return name == "MainThread"

        await until(was_felt)
        assert await worker.do(Task(where)) == "toolwire-store"

    run(tmp_path, test)


def test_a_session_that_cannot_be_opened_is_tried_again(tmp_path: Path) -> None:
    attempts: list[int] = []

    def open_session() -> StoreSession:
        attempts.append(1)
        if len(attempts) == 1:
            raise ConfigError("the disk is away.", where="/secret/path")
        return StoreSession(tmp_path / "state.db", bounds_of(MB), DAY, 1.0)

    async def main() -> None:
        worker = StoreThread(open_session, time.time)
        with pytest.raises(GatewayError) as caught:
            await worker.do(Task(where))
        assert caught.value.status == 503
        assert "secret" not in caught.value.sentence()
        assert await worker.do(Task(where))
        await worker.close()

    asyncio.run(main())


def test_reads_do_not_wait_for_writes_that_wait(tmp_path: Path) -> None:
    async def test(worker: StoreThread) -> None:
        order: list[str] = []

        async def ask(name: str, pages: int) -> None:
            await worker.do(Task(lambda connection: time.sleep(0.05), pages))
            order.append(name)

        await asyncio.gather(ask("first", 1), ask("write", 1), ask("read", 0))
        assert order == ["first", "read", "write"]

    run(tmp_path, test)


def test_a_removed_file_is_created_again(tmp_path: Path) -> None:
    def write(connection: Connection) -> None:
        connection.execute("INSERT INTO output_ids VALUES (1, 1)")

    async def test(worker: StoreThread) -> None:
        for _ in range(2):
            await worker.do(Task(write, 1))
            for file in tmp_path.iterdir():
                file.unlink()
        await worker.do(Task(write, 1))
        assert (tmp_path / "state.db").exists()

    run(tmp_path, test)


def test_a_fault_in_tidying_up_is_logged_once_and_the_thread_lives_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Faulty(StoreSession):
        def tidy(self, now: float) -> None:
            raise ZeroDivisionError("a mistake")

    async def main() -> None:
        worker = StoreThread(lambda: Faulty(tmp_path / "state.db", bounds_of(8 * MB), DAY, 1.0), time.time)
        for _ in range(3):
            assert await worker.do(Task(where, 100)) == "toolwire-store"
        await worker.close()

    asyncio.run(main())
    [record] = caplog.records
    assert record.exc_info is not None
    assert "tidied" in record.message


def test_closing_first_performs_queued_tasks(tmp_path: Path) -> None:
    async def main() -> None:
        worker = StoreThread(lambda: StoreSession(tmp_path / "state.db", bounds_of(MB), DAY, 1.0), time.time)
        asked = [asyncio.create_task(worker.do(Task(where, 1))) for _ in range(50)]
        await asyncio.sleep(0)
        await worker.close()
        assert len(await asyncio.gather(*asked)) == 50
        assert not Path(tmp_path / "state.db-wal").exists()

    asyncio.run(main())


def test_a_worker_that_did_nothing_closes(tmp_path: Path) -> None:
    async def test(worker: StoreThread) -> None:
        await worker.close()

    run(tmp_path, test)
    assert list(tmp_path.iterdir()) == []


def test_one_worker_serves_loops_one_after_the_other(tmp_path: Path) -> None:
    worker = StoreThread(lambda: StoreSession(tmp_path / "state.db", bounds_of(MB), DAY, 1.0), time.time)
    for _ in range(3):
        assert asyncio.run(worker.do(Task(where, 1)))
    asyncio.run(worker.close())


@pytest.mark.parametrize(
    "question",
    [
        "SELECT zeroblob(1000000)",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT zeroblob(1000) FROM n",
    ],
)
def test_a_large_read_is_for_the_thread(tmp_path: Path, question: str) -> None:
    """One large row, or many that add up to as much."""

    def read(connection: Connection) -> tuple[int, str]:
        return sum(len(row[0]) for row in connection.execute(question)), where(connection)

    def read_little(connection: Connection) -> tuple[int, str]:
        return len(connection.execute("SELECT zeroblob(100000)").fetchone()[0]), where(connection)

    async def test(worker: StoreThread) -> None:
        async def is_mine() -> bool:
            return await worker.do(Task(where)) == "MainThread"

        await until(is_mine)
        for _ in range(2):
            size, thread = await worker.do(Task(read))
            assert (size, thread) == (1_000_000 if size > 600_000 else 500_000, "toolwire-store")
            await until(is_mine)
            assert await worker.do(Task(read_little)) == (100_000, "MainThread")

    run(tmp_path, test)
