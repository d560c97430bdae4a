"""Flows without a server: requests that are recorded piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

from toolwire.config.values import FlowsConfig
from toolwire.flows.query import FlowQuery
from toolwire.flows.record import FlowSummary
from toolwire.flows.recorder import FlowRecorder
from toolwire.flows.redact import WireRedaction
from toolwire.flows.sealed import SealedFlow
from toolwire.telemetry import Record
from toolwire.telemetry.flow_draft import FlowDraft

STREAM = [(b"content-type", b"text/event-stream")]


class NoTimer:
    def cancel(self) -> None:
        pass


def recorder(*known: str, **limits: Any) -> FlowRecorder:
    """Flows that have ended are sealed when they are read."""
    return FlowRecorder(FlowsConfig(**limits), WireRedaction(known), schedule=lambda seconds, work: NoTimer())


def scope(
    path: str = "/v1/chat/completions", query: bytes = b"", headers: list[tuple[bytes, bytes]] | None = None
) -> dict[str, Any]:
    return {"method": "POST", "path": path, "query_string": query, "headers": headers or []}


def begin(flows: FlowRecorder, body: bytes = b"{}", secret: str = "", **fields: Any) -> FlowDraft:
    """A request of which the gateway has read the body."""

    async def send(message: MutableMapping[str, Any]) -> None:
        pass

    record = Record(**({"dialect": "chat", "started": 100.0} | fields))
    flows.begin(record, scope(), None, secret, send)
    assert record.flow is not None
    record.flow.client.request(body)
    return record.flow


def end(flows: FlowRecorder, draft: FlowDraft, reply: bytes = b"{}", outcome: str = "ok") -> SealedFlow:
    """The response is sent; the flow as a reader gets it."""
    finish(draft, reply, outcome)
    found = asyncio.run(flows.find(flows.id_of(draft.seq)))
    assert found is not None
    return found


def finish(draft: FlowDraft, reply: bytes = b"{}", outcome: str = "ok") -> None:
    draft.client.answer(200, [(b"content-type", b"application/json")])
    draft.client.receive(reply)
    draft.record.ended, draft.record.outcome = 101.0, outcome
    draft.close()


def listed(flows: FlowRecorder, **query: Any) -> list[FlowSummary]:
    return asyncio.run(flows.page(FlowQuery(**query))).flows
