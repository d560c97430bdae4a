"""Closed records are counted together, in order, and nothing is lost."""

import asyncio

from toolwire.telemetry.batch import RecordBatch
from toolwire.telemetry.record import Record


def batch(seconds: float = 0.0) -> tuple[RecordBatch, list[str]]:
    counted: list[str] = []
    return RecordBatch(lambda record: counted.append(record.request_id), seconds), counted


def test_records_are_handed_over_in_order_after_a_moment() -> None:
    async def run() -> None:
        records, counted = batch()
        for number in range(3):
            records.add(Record(request_id=str(number)))
        assert counted == []
        while len(counted) < 3:
            await asyncio.sleep(0)
        assert counted == ["0", "1", "2"]

    asyncio.run(run())


def test_a_flush_leaves_nothing_for_the_timer() -> None:
    async def run() -> None:
        records, counted = batch(seconds=3600)
        records.add(Record(request_id="a"))
        records.flush()
        records.flush()
        assert counted == ["a"]

    asyncio.run(run())


def test_many_records_do_not_wait() -> None:
    async def run() -> None:
        records, counted = batch(seconds=3600)
        for number in range(500):
            records.add(Record(request_id=str(number)))
        assert len(counted) >= 400
        records.flush()
        assert len(counted) == 500

    asyncio.run(run())
