"""Drafts: bodies are bounded, memory is reserved before it is used, and what is dropped needs none."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from toolwire.errors import UpstreamError
from toolwire.telemetry import Record
from toolwire.telemetry.flow_draft import CHUNK_COST, FLOW_COST, FlowBudget, FlowDraft, WireDraft


def draft(budget: FlowBudget) -> FlowDraft:
    client = WireDraft(budget, "chat", "POST", "/v1/chat/completions", [])
    return FlowDraft("flow_1", 1, Record(), client, budget)


def test_a_body_is_stored_up_to_its_limit_and_counted_in_full() -> None:
    wire = WireDraft(FlowBudget(1 << 20, 10), "chat", "POST", "/", [])
    wire.request(b"x" * 25)
    for piece in (b"12345", b"67890abc", b"more"):
        wire.receive(piece)
    assert (wire.body, wire.request_size, wire.has_cut_request) == (b"x" * 10, 25, True)
    assert ([data for _, data in wire.chunks], wire.size, wire.is_cut) == ([b"12345", b"67890"], 17, True)


def test_what_is_stored_is_charged() -> None:
    budget = FlowBudget(1 << 20, 1000)
    flow = draft(budget)
    flow.client.request(b"x" * 100)
    flow.client.receive(b"y" * 50)
    wire = flow.exchange("messages", "POST", "http://host/v1/messages", {"a": "b"}, b"z" * 10)
    wire.receive(b"r")
    assert budget.used == flow.charged == FLOW_COST + 100 + 50 + 10 + 1 + 2 * CHUNK_COST


def test_memory_that_open_flows_need_is_not_exceeded() -> None:
    budget = FlowBudget(FLOW_COST + 1000, 1 << 20)
    flow = draft(budget)
    flow.client.request(b"x" * 2000)
    flow.client.receive(b"y" * 300)
    flow.client.receive(b"y" * 600)
    assert flow.client.has_cut_request
    assert flow.client.is_cut
    assert budget.used <= budget.limit


def test_a_dropped_flow_stores_nothing_more() -> None:
    budget = FlowBudget(1 << 20, 1000)
    flow = draft(budget)
    wire = flow.exchange("chat", "POST", "http://host", {}, b"body")
    budget.used -= flow.charged
    flow.drop()
    wire.receive(b"late")
    flow.exchange("chat", "POST", "http://host", {}, b"body").receive(b"later")
    flow.note("sent", "codex", "turn", {"a": 1}, 7)
    assert (budget.used, wire.chunks, flow.messages) == (0, [], [])


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
    assert [data for _, data in flow.client.chunks] == [b"one"]


def test_a_reply_that_breaks_off_is_recorded_with_its_error() -> None:
    wire = WireDraft(FlowBudget(1 << 20, 1000), "chat", "POST", "/", [])
    pieces = [b"one", b"two"]

    async def read() -> bytes:
        if not pieces:
            raise UpstreamError("the connection was closed.", status=502, code="upstream_cut")
        return pieces.pop(0)

    async def run() -> None:
        observed = wire.observe(read)
        assert [await observed(), await observed()] == [b"one", b"two"]
        with pytest.raises(UpstreamError):
            await observed()

    asyncio.run(run())
    assert [data for _, data in wire.chunks] == [b"one", b"two"]
    assert wire.error == "upstream_cut: the connection was closed."
