"""One request in numbers."""

from __future__ import annotations

import asyncio

from toolwire.telemetry import Record, Telemetry
from toolwire.telemetry.prometheus import Prometheus
from toolwire.telemetry.record import NoTelemetry, RecordBatch


def test_a_new_record_is_ok_and_shares_no_list() -> None:
    first, second = Record(), Record()
    assert first.outcome == "ok"
    first.losses.append("x")  # type: ignore[arg-type] # any object shows that the list is shared, if it is
    assert second.losses == []


def test_every_kind_of_telemetry_accepts_a_record() -> None:
    kinds: list[Telemetry] = [NoTelemetry(), Prometheus()]
    for telemetry in kinds:
        telemetry.opened(Record())
        telemetry.closed(Record())


def batch(seconds: float = 0.0) -> tuple[RecordBatch, list[str]]:
    counted: list[str] = []
    return RecordBatch(lambda records: counted.extend(record.request_id for record in records), seconds), counted


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
