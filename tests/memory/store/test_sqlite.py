"""The store in a file keeps the contract, also over restarts and kills, between processes, and under its bound."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.store.contract import DAY, MB, Clock, StoreContract, answer, conversation, items, until
from tests.thorough import examples
from toolwire.errors import BadRequest, GatewayError
from toolwire.memory.store import Item, MemoryStore, SqliteStore, Store

# Puts entries for ever, and tells of each when it is safe.
WRITER = """
import asyncio, sys
from pathlib import Path
from toolwire.memory.store import Entry, Item, SqliteStore

async def main(path, name, count, at_once):
    store = SqliteStore(Path(path), max_bytes=64 << 20, max_age=1e6)
    async def write(lane):
        for number in range(lane, count, at_once):
            id = f"{name}{number}"
            await store.put(Entry(owner="ann", id=id, kind="responses", created=1.0, body=b"x" * (number * 37 % 9000)))
            sys.stdout.write(id + "\\n")
            sys.stdout.flush()
            await asyncio.sleep(0)
    await asyncio.gather(*map(write, range(at_once)))
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""

# A store that is made, then forked, then used on both sides.
FORKING = """
import asyncio, os, sys
from pathlib import Path
from toolwire.memory.store import Entry, SqliteStore

async def put(id):
    await store.put(Entry(owner="ann", id=id, kind="responses", created=1.0))
    await store.close()

store = SqliteStore(Path(sys.argv[1]), max_bytes=1 << 20, max_age=1e6)
child = os.fork()
asyncio.run(put("parent" if child else "child"))
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def writer(path: Path, name: str, count: int, at_once: int = 1) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), name, str(count), str(at_once)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)


def stored(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {id for (id,) in connection.execute("SELECT id FROM entries")}


@pytest.mark.slow
class TestSqliteStore(StoreContract):
    def open(self, max_bytes: int = 64 * MB, max_age: float = 30 * DAY, **settings: Any) -> Store:
        return SqliteStore(self.folder / "state.db", max_bytes=max_bytes, max_age=max_age, clock=self.clock, **settings)

    @property
    def size(self) -> int:
        return sum((self.folder / f"state.db{end}").stat().st_size for end in ("", "-wal"))

    def test_everything_is_there_after_a_restart(self) -> None:
        async def before(store: Store) -> None:
            await store.put(answer("a", output=items("i")))
            await store.put(answer("b", previous="a", status="in_progress", alive=2.0))
            await store.put(conversation("c"))
            await store.append("ann", "c", items("1", "2"))

        async def after(store: Store) -> None:
            chain = await store.chain("ann", "b")
            assert chain == [answer("a", output=items("i")), answer("b", previous="a", status="in_progress", alive=2.0)]
            assert await store.items("ann", "c") == list(items("1", "2"))
            assert set(await store.find_items("ann", ["i", "1"])) == {"i", "1"}

        self.run(before)
        self.run(after)

    @pytest.mark.parametrize("at_once", [1, 20])
    def test_what_was_put_survives_a_kill(self, at_once: int) -> None:
        path = self.folder / "state.db"
        process = writer(path, "a", 1_000_000, at_once)
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(300)]
        process.send_signal(signal.SIGKILL)
        told += process.stdout.readlines()
        process.wait()
        process.stdout.close()
        complete = {line.strip() for line in told if line.endswith("\n")}
        assert len(complete) >= 300
        assert complete <= stored(path)

    def test_two_processes_lose_nothing(self) -> None:
        path = self.folder / "state.db"
        processes = [writer(path, name, 300, at_once) for name, at_once in (("a", 1), ("b", 10))]
        told = [process.communicate(timeout=60)[0].split() for process in processes]
        assert [process.returncode for process in processes] == [0, 0]
        assert stored(path) == {*told[0], *told[1]}
        assert len(stored(path)) == 600

    @pytest.mark.parametrize("max_mb", [1, 8])
    def test_file_and_journal_stay_under_the_bound(self, max_mb: int) -> None:
        sizes = (10, 4000, 100, 60_000, 1, 9000, 20_000, 90_000)

        async def test(store: Store) -> None:
            await store.put(conversation("c"))
            largest = 0
            for number in range(50 * max_mb + 150):
                body = b"x" * sizes[number % len(sizes)]
                output = items(*(f"{number}.{each}" for each in range(number % 20)))
                await store.put(answer(f"a{number}", body=body, output=output))
                if number % 7 == 0:
                    await store.append("ann", "c", [Item(f"c{number}", body)])
                largest = max(largest, self.size)
            assert largest <= max_mb * MB
            assert largest > max_mb * MB / 2
            assert await store.get("ann", "a0") is None

        self.run(test, max_bytes=max_mb * MB)

    def test_reads_write_nothing_until_the_next_tidying(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a"))
            await store.put(answer("b", previous="a", body=b"x" * MB))  # by the thread, which has tidied up before
            with closing(sqlite3.connect(self.folder / "state.db")) as other:
                version = other.execute("PRAGMA data_version").fetchone()
                for _ in range(500):
                    assert await store.kind_of("ann", "b")
                    assert await store.chain("ann", "b")
                assert other.execute("PRAGMA data_version").fetchone() == version
                self.clock.now += 100
                await store.kind_of("ann", "b")

                async def is_written() -> bool:
                    [used] = other.execute("SELECT written FROM entries WHERE id = 'b'").fetchone()
                    return bool(used > self.clock.now - 1)

                await until(is_written)

        self.run(test)

    def test_the_bound_holds_for_many_at_once(self) -> None:
        async def test(store: Store) -> None:
            for _ in range(8):
                await asyncio.gather(*(store.put(answer(os.urandom(9).hex(), body=b"x" * 9000)) for _ in range(40)))
                assert self.size <= MB

        self.run(test, max_bytes=MB)

    def test_a_lock_that_stays_is_reported_and_the_store_continues(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a"))
            with closing(sqlite3.connect(self.folder / "state.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(GatewayError) as caught:
                    await store.put(answer("b"))
                assert caught.value.status == 503
                assert "locked" in caught.value.message
                assert await store.get("ann", "a") is not None
                other.execute("ROLLBACK")
            await store.put(answer("c"))
            assert await store.get("ann", "b") is None

        async def main() -> None:
            store = self.open(patience=0.05)
            await test(store)
            await store.close()

        asyncio.run(main())

    def test_a_short_lock_is_waited_for(self) -> None:
        async def test(store: Store) -> None:
            await store.put(answer("a"))
            with closing(sqlite3.connect(self.folder / "state.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                waiting = asyncio.create_task(store.put(answer("b")))
                await asyncio.sleep(0.1)
                assert not waiting.done()
                other.execute("ROLLBACK")
                await waiting

        self.run(test)

    def test_a_disk_error_is_reported_and_the_store_continues(self) -> None:
        """A limit on the size of files stands for a full disk."""

        async def test(store: Store) -> None:
            await store.put(answer("a"))
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
            try:
                with pytest.raises(GatewayError) as caught:
                    await store.put(answer("b", body=b"x" * 2 * MB))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert caught.value.status == 503
            assert await store.get("ann", "b") is None
            await store.put(answer("b", body=b"x" * 2 * MB))
            assert await store.get("ann", "a") is not None

        self.run(test)

    def test_half_a_surrogate_pair_is_refused(self) -> None:
        async def test(store: Store) -> None:
            for attempt in (store.get("ann", "\ud800"), store.put(answer("\udfff")), store.chain("\ud800", "a")):
                with pytest.raises(BadRequest):
                    await attempt

        self.run(test)

    def test_workers_are_forked_before_the_first_question(self) -> None:
        path = self.folder / "state.db"
        finished = subprocess.run([sys.executable, "-c", FORKING, str(path)], env=ENVIRONMENT, timeout=60, check=False)
        assert finished.returncode == 0
        assert stored(path) == {"parent", "child"}


NAMES = st.sampled_from(["a", "b", "c"])
OWNERS = st.sampled_from(["ann", "bob"])
SOME_ITEMS = st.lists(st.builds(Item, NAMES, st.sampled_from([b"1", b"2"])), max_size=3, unique_by=lambda item: item.id)
STEPS = st.one_of(
    st.tuples(
        st.just("put"),
        st.builds(
            answer,
            NAMES,
            OWNERS,
            kind=st.sampled_from(["responses", "conversation"]),
            previous=st.sampled_from(["", "a", "b", "c"]),
            status=st.sampled_from(["completed", "queued"]),
            # No two answers have the same item: which of them is found is not promised.
            body=st.sampled_from([b"1", b"2"]),
        ),
    ),
    st.tuples(st.sampled_from(["get", "chain", "delete", "items"]), OWNERS, NAMES),
    st.tuples(st.just("append"), OWNERS, NAMES, SOME_ITEMS),
    st.tuples(st.just("delete_item"), OWNERS, NAMES, NAMES),
    st.tuples(st.just("touch"), OWNERS, NAMES, st.sampled_from([1.0, 2.0])),
)


@examples(60)
@given(st.lists(STEPS, max_size=40))
def test_it_answers_like_the_one_in_memory(steps: list[tuple[Any, ...]]) -> None:
    async def main(folder: str) -> None:
        clock = Clock()
        memory = MemoryStore(max_bytes=MB, max_age=DAY, clock=clock)
        file = SqliteStore(Path(folder) / "state.db", max_bytes=MB, max_age=DAY, clock=clock)
        for method, *arguments in steps:
            expected = await getattr(memory, method)(*arguments)
            assert await getattr(file, method)(*arguments) == expected
        await file.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
