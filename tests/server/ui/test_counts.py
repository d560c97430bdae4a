"""The counts of `toolwire stats` by hour."""

from __future__ import annotations

import asyncio

import pytest

from toolwire.memory.store.memory import MemoryStore
from toolwire.server.stats_writer import Recorder
from toolwire.server.ui.counts import hourly_stats
from toolwire.telemetry import Record
from toolwire.telemetry.hourly import HOUR, HourlyCounts
from toolwire.types import Usage

NOON = 20_000 * 86400 + 12 * HOUR


def test_hours_of_all_processes_add_up_and_older_ones_are_left_out() -> None:
    async def check() -> None:
        store, now = MemoryStore(max_bytes=1 << 20, max_age=1e9), [float(NOON - 30 * HOUR)]
        counts = [HourlyCounts(lambda: now[0]) for _ in range(2)]
        recorders = [Recorder(store, count, lambda error, request: None) for count in counts]
        counts[0].closed(Record(backend="up", sent_model="m"))
        now[0] = NOON
        for count in counts:
            usage = Usage(input=10, output=5, cached=4)
            count.closed(Record(backend="up", sent_model="m", usage=usage, started=1.0, ended=3.0))
        await recorders[1].write()
        (line,) = await hourly_stats(recorders[0], 24, NOON)
        assert (line["hour"], line["backend"], line["model"], line["requests"]) == (NOON, "up", "m", 2)
        assert (line["input_tokens"], line["output_tokens"], line["seconds"], line["cost"]) == (20, 10, 4.0, None)
        assert line["cached_tokens"] == 8
        assert line["latency"]["p50"] == line["latency"]["p95"] == pytest.approx(2.0, rel=0.09)
        assert line["latency"]["ranges"] == [[line["latency"]["p50"], 2]]
        assert len(await hourly_stats(recorders[0], 48, NOON)) == 2

    asyncio.run(check())
