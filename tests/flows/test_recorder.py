"""The recorder: order, limits of memory and number, age, deletion."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.flows.drafts import begin, end, recorder
from toolwire.config.values import FlowsConfig
from toolwire.flows.recorder import FlowRecorder
from toolwire.flows.redact import WireRedaction
from toolwire.telemetry.flow_draft import current


def run(check: Any) -> Any:
    async def inside() -> Any:
        return check()

    return asyncio.run(inside())


def test_flows_are_listed_the_newest_first() -> None:
    def check() -> None:
        flows = recorder()
        drafts = [begin(flows) for _ in range(3)]
        end(flows, drafts[1])
        assert [flow.summary.id for flow in flows.entries()] == [draft.id for draft in reversed(drafts)]
        assert [flow.summary.outcome for flow in flows.entries()] == ["open", "ok", "open"]

    run(check)


def test_memory_stays_inside_its_limit_and_the_oldest_are_evicted() -> None:
    def check() -> None:
        flows = recorder(max_mb=2, max_body_kb=64)
        for _ in range(200):
            end(flows, begin(flows, b"x" * 100_000), b"y" * 100_000)
            assert flows.used <= 2 << 20
        seqs = [flow.summary.seq for flow in flows.entries()]
        assert seqs[0] == 200
        assert 10 < len(seqs) < 20
        flow = flows.entries()[0]
        assert flow.client.has_cut_request
        assert (flow.client.request_size, len(flow.client.body)) == (100_000, 65536)

    run(check)


def test_open_flows_are_never_evicted_and_share_the_limit() -> None:
    def check() -> None:
        flows = recorder(max_mb=1, max_body_kb=512)
        drafts = [begin(flows, b"x" * 300_000) for _ in range(10)]
        assert flows.used <= 1 << 20
        assert len(flows.entries()) == 10
        for draft in drafts:
            end(flows, draft)
        assert flows.used <= 1 << 20

    run(check)


def test_the_number_of_flows_is_limited() -> None:
    def check() -> None:
        flows = recorder(max_flows=5)
        for _ in range(12):
            end(flows, begin(flows))
        assert [flow.summary.seq for flow in flows.entries()] == [12, 11, 10, 9, 8]

    run(check)


def test_without_bodies_only_their_sizes_are_stored() -> None:
    def check() -> None:
        flows = recorder(bodies=False)
        flow = end(flows, begin(flows, b"secret text"), b"answer")
        assert (flow.client.body, flow.client.reply) == (b"", b"")
        assert (flow.client.request_size, flow.client.size) == (11, 6)

    run(check)


def test_old_flows_expire() -> None:
    def check() -> None:
        now = [1e9]
        flows = FlowRecorder(FlowsConfig(max_age_days=1), WireRedaction(), lambda: now[0])
        draft = begin(flows)
        draft.started = 1e9
        end(flows, draft)
        assert len(flows.entries()) == 1
        now[0] += 86401
        assert flows.entries() == []
        assert flows.used == 0

    run(check)


def test_deleted_flows_are_gone_and_their_memory_is_free() -> None:
    def check() -> None:
        flows = recorder()
        first, second = begin(flows), begin(flows)
        end(flows, first)
        assert flows.delete(first.id)
        assert not flows.delete(first.id)
        assert flows.find(first.id) is None
        assert flows.delete()
        assert (flows.entries(), flows.used) == ([], 0)
        second.client.receive(b"late")
        second.record.ended = 101.0
        second.close()
        assert (flows.entries(), flows.used) == ([], 0)

    run(check)


def test_an_ended_flow_is_sealed_without_a_reader() -> None:
    async def check() -> None:
        flows, seen = recorder(), list[Any]()
        flows.listeners.add(seen.append)
        small, large = begin(flows), begin(flows, b"x" * 1_000_000)
        for draft in (small, large):
            draft.record.ended = 101.0
            draft.close()
        assert seen == []
        await flows.stop()
        assert [summary.id for summary in seen] == [small.id, large.id]
        assert (small.client.body, large.client.body) == (b"", b"")

    asyncio.run(check())


def test_the_request_is_the_current_one_in_its_context() -> None:
    def check() -> None:
        draft = begin(recorder())
        assert current.get() is draft

    run(check)
