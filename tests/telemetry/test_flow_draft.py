"""Drafts: bodies are bounded, memory is reserved before it is used, and what is dropped needs none."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from toolwire.telemetry import Record
from toolwire.telemetry.flow_draft import FLOW_COST, FlowBudget, FlowDraft, WireDraft

ended: list[FlowDraft] = []


def draft(budget: FlowBudget) -> FlowDraft:
    client = WireDraft(budget, "chat", "POST", "/v1/chat/completions", [], 0.0)
    return FlowDraft(1, Record(), client, "", budget, ended.append)


def test_a_body_is_stored_up_to_its_limit_and_counted_in_full() -> None:
    wire = WireDraft(FlowBudget(1 << 20, 10), "chat", "POST", "/", [], 0.0)
    wire.request(b"x" * 25)
    for piece in (b"12345", b"67890abc", b"more"):
        wire.receive(piece)
    assert (wire.body, wire.request_size, wire.has_cut_request) == (b"x" * 10, 25, True)
    assert (wire.pieces, wire.size, wire.is_cut) == ([b"12345", b"67890"], 17, True)


def test_what_is_stored_is_charged_and_never_less() -> None:
    budget = FlowBudget(1 << 20, 100_000)
    flow = draft(budget)
    flow.client.request(b"x" * 100)
    wire = flow.exchange("messages", "POST", "http://host/v1/messages", {"a": "b"}, b"z" * 10)
    for size in (1, 50, 20_000, 3, 70_000, 500, 500_000):
        wire.receive(b"r" * size)
        stored = sum(map(len, wire.pieces))
        assert budget.used == flow.charged >= FLOW_COST + 110 + stored
    assert stored == 100_000
    assert wire.is_cut


def test_memory_that_open_flows_need_is_not_exceeded() -> None:
    budget = FlowBudget(FLOW_COST + 20_000, 1 << 20)
    flow = draft(budget)
    flow.client.request(b"x" * 30_000)
    flow.client.receive(b"y" * 300)
    flow.client.receive(b"y" * 60_000)
    flow.client.receive(b"y")
    assert flow.client.has_cut_request
    assert (flow.client.body, flow.client.pieces, flow.client.is_cut) == (b"", [b"y" * 300], True)
    assert flow.client.size == 60_301
    assert budget.used <= budget.limit


def test_a_dropped_flow_stores_nothing_more() -> None:
    budget = FlowBudget(1 << 20, 1000)
    flow = draft(budget)
    wire = flow.exchange("chat", "POST", "http://host", {}, b"body")
    budget.used -= flow.charged
    flow.drop()
    wire.receive(b"late")
    late = flow.exchange("chat", "POST", "http://host", {}, b"body")
    late.receive(b"later")
    flow.note("sent", "codex", "turn", {"a": 1}, 7)
    assert (budget.used, wire.pieces, late.body, late.pieces, list(flow.messages)) == (0, [], b"", [], [])


def test_a_flow_with_very_many_exchanges_stores_only_the_first() -> None:
    budget = FlowBudget(1 << 20, 1000)
    flow = draft(budget)
    for _ in range(100):
        flow.exchange("chat", "POST", "http://host", {}, b"").receive(b"x")
    assert len(flow.upstream) == 40
    assert budget.used == flow.charged


def test_the_client_gets_what_is_recorded() -> None:
    flow, sent = draft(FlowBudget(1 << 20, 1000)), list[Any]()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def run() -> None:
        observed = flow.observe(send)
        await observed({"type": "http.response.start", "status": 201, "headers": [(b"a", b"b")]})
        await observed({"type": "http.response.body", "body": b"one", "more_body": True})
        await observed({"type": "http.response.body", "body": b""})

    asyncio.run(run())
    assert [message["type"] for message in sent] == [
        "http.response.start",
        "http.response.body",
        "http.response.body",
    ]
    assert (flow.client.status, flow.client.reply_headers) == (201, [(b"a", b"b")])
    assert flow.client.pieces == [b"one"]


def test_a_flow_ends_once_when_response_and_record_have_ended() -> None:
    ended.clear()
    flow = draft(FlowBudget(1 << 20, 1000))
    flow.end()
    flow.close()
    assert ended == []
    flow.record.ended = 1.0
    flow.end()
    flow.end()
    assert ended == [flow]
