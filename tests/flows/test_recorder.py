"""The recorder: order, limits of memory and number, age, deletion, and sealing without a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.flows.drafts import NoTimer, begin, end, finish, listed, recorder
from toolwire.config.values import FlowsConfig
from toolwire.flows.packed import PackedFlow
from toolwire.flows.recorder import FlowRecorder
from toolwire.flows.redact import WireRedaction
from toolwire.telemetry.flow_draft import FlowDraft


def test_flows_are_listed_the_newest_first() -> None:
    flows = recorder()
    drafts = [begin(flows) for _ in range(3)]
    end(flows, drafts[1])
    assert [(flow.seq, flow.outcome) for flow in listed(flows)] == [(3, "open"), (2, "ok"), (1, "open")]


def test_memory_stays_inside_its_limit_and_the_oldest_are_evicted() -> None:
    flows = recorder(max_mb=2, max_body_kb=64)
    for _ in range(200):
        finish(begin(flows, b"x" * 100_000), b"y" * 100_000)
        assert flows.used <= 2 << 20
    seqs = [flow.seq for flow in listed(flows)]
    assert seqs[0] == 200
    assert 10 < len(seqs) < 20
    flow = asyncio.run(flows.find(flows.id_of(200)))
    assert flow is not None
    assert flow.client.has_cut_request
    assert (flow.client.request_size, len(flow.client.body), flow.client.is_cut) == (100_000, 65536, True)
    assert flows.used <= 2 << 20


def test_what_is_accounted_is_what_is_held() -> None:
    flows = recorder()
    for size in (0, 10, 5000, 70_000):
        draft = begin(flows, b"x" * size)
        draft.exchange("chat", "POST", "http://host", {"a": "b"}, b"z" * size).receive(b"r" * size)
        draft.client.receive(b"y" * size)
        finish(draft)
    entries = flows.entries()
    assert flows.used == sum(entry.memory for entry in entries if isinstance(entry, PackedFlow))
    listed(flows)  # seals them
    assert flows.used == sum(entry.memory for entry in flows.entries() if isinstance(entry, PackedFlow))
    flows.delete()
    assert flows.used == 0


def test_old_flows_make_room_for_one_large_body() -> None:
    flows = recorder(max_mb=1)
    for _ in range(3):
        finish(begin(flows, b"x" * 250_000))
    assert begin(flows, b"x" * 800_000).client.has_cut_request is False
    assert flows.used <= 1 << 20


def test_open_flows_are_never_evicted_and_share_the_limit() -> None:
    flows = recorder(max_mb=1, max_body_kb=512)
    drafts = [begin(flows, b"x" * 300_000) for _ in range(10)]
    assert flows.used <= 1 << 20
    assert len(listed(flows)) == 10
    for draft in drafts:
        finish(draft)
    assert flows.used <= 1 << 20


def test_the_number_of_flows_is_limited() -> None:
    flows = recorder(max_flows=5)
    for _ in range(12):
        finish(begin(flows))
    assert [flow.seq for flow in listed(flows)] == [12, 11, 10, 9, 8]


def test_without_bodies_only_their_sizes_are_stored() -> None:
    flows = recorder(bodies=False)
    flow = end(flows, begin(flows, b"secret text"), b"answer")
    assert (flow.client.body, flow.client.reply) == (b"", b"")
    assert (flow.client.request_size, flow.client.size) == (11, 6)


def test_old_flows_expire() -> None:
    now = [1e9]
    flows = FlowRecorder(FlowsConfig(max_age_days=1), WireRedaction(), lambda: now[0], lambda seconds, work: NoTimer())
    draft = begin(flows)
    draft.started = 1e9
    finish(draft)
    assert len(listed(flows)) == 1
    now[0] += 86401
    assert listed(flows) == []
    assert flows.used == 0


def test_deleted_flows_are_gone_and_their_memory_is_free() -> None:
    flows = recorder()
    first, second = begin(flows), begin(flows)
    finish(first)
    assert flows.delete(flows.id_of(1))
    assert not flows.delete(flows.id_of(1))
    assert asyncio.run(flows.find(flows.id_of(1))) is None
    assert flows.delete()
    assert (listed(flows), flows.used) == ([], 0)
    second.client.receive(b"late")
    finish(second)
    assert (listed(flows), flows.used) == ([], 0)


def test_ids_of_other_processes_are_unknown() -> None:
    flows = recorder()
    begin(flows)
    for name in ("", "flow_", flows.id_of(2), recorder().id_of(1), flows.id_of(1).upper(), flows.id_of(1) + "0"):
        assert asyncio.run(flows.find(name)) is None


def test_ended_flows_are_sealed_without_a_reader_once_no_request_begins() -> None:
    waiting: list[Callable[[], None]] = []

    def schedule(seconds: float, work: Callable[[], None]) -> NoTimer:
        waiting.append(work)
        return NoTimer()

    def packed() -> list[PackedFlow]:
        return [entry for entry in flows.entries() if isinstance(entry, PackedFlow)]

    async def run() -> None:
        for _ in range(250):
            finish(begin(flows, b"known-secret"))
        waiting.pop()()  # packs them
        finish(begin(flows, b"known-secret"))
        waiting.pop(0)()  # a request began meanwhile
        assert {entry.is_sealed for entry in packed()} == {False}
        while waiting:
            waiting.pop(0)()
        for _ in range(2000):
            if all(entry.is_sealed for entry in packed()):
                break
            await asyncio.sleep(0.01)
        assert {entry.is_sealed for entry in packed()} == {True}
        assert not any(b"known-secret" in entry.data for entry in packed())

    flows = FlowRecorder(FlowsConfig(), WireRedaction(["known-secret"]), schedule=schedule)
    asyncio.run(run())


def test_listeners_hear_of_ends_and_deletions() -> None:
    flows, seen = recorder(), list[Any]()
    flows.listeners.add(seen.append)
    finish(begin(flows))
    flows.delete()
    assert [None if summary is None else summary.outcome for summary in seen] == ["ok", None]


def test_an_ended_request_is_not_held_by_its_flow() -> None:
    flows = recorder()
    draft = begin(flows, b"x" * 1000)
    record = draft.record
    finish(draft)
    assert not any(isinstance(entry, FlowDraft) for entry in flows.entries())
    assert record.flow is None
    assert (draft.client.body, draft.client.pieces) == (b"", [])
