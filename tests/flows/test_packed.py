"""Packing loses nothing that a reader sees."""

from __future__ import annotations

from tests.flows.drafts import STREAM, begin, recorder
from toolwire.calls.validation import CallMade, LocalCall, RepairedCall
from toolwire.flows.packed import memory_of, pack_draft, pack_sealed, unpack_draft, unpack_sealed
from toolwire.flows.redact import WireRedaction
from toolwire.flows.summary import seal
from toolwire.telemetry.flow_draft import FlowDraft
from toolwire.types import Loss, Usage


def full() -> FlowDraft:
    draft = begin(recorder(), b'{"model": "m"}', "client-key-12345", model="m", backend="up", is_stream=True)
    record = draft.record
    record.usage = Usage(input=1, output=2, extra={"chat": {"x": 1}})
    record.tally.calls = [CallMade("a", "f", "repaired")]
    record.tally.repaired_calls = [RepairedCall("a", "f", ("city",), ("unquoted",))]
    record.tally.repairs.update(["unquoted"])
    record.history.update(["orphan"])
    record.losses = [Loss("a", "b", "c")]
    record.local = [LocalCall(name="read", outcome="ok", seconds=0.1)]
    wire = draft.exchange("messages", "POST", "http://host/v1/messages", {"x-api-key": "abc", "a": "b"}, b"\xff{}")
    wire.answer(200, [("content-type", "text/event-stream")])
    wire.receive(b"data: 1\n\n")
    draft.client.answer(200, STREAM)
    draft.client.receive(b"data: 2\n\n")
    draft.note("sent", "codex", "turn", {"a": 1}, 7)
    draft.message = "an error"
    draft.is_answered, record.ended = True, 101.0
    return draft


def test_a_packed_draft_is_sealed_like_the_draft() -> None:
    draft = full()
    before = seal(draft, "id", WireRedaction())
    packed = pack_draft(draft)
    assert seal(unpack_draft(packed), "id", WireRedaction()) == before
    assert (packed.model, packed.backend, packed.outcome, packed.is_sealed) == ("m", "up", "ok", False)


def test_a_sealed_flow_survives() -> None:
    flow = seal(full(), "id", WireRedaction())
    packed = pack_sealed(flow)
    assert unpack_sealed(packed) == flow
    assert packed.is_sealed
    assert memory_of(packed) > len(packed.data)


def test_text_that_is_no_unicode_costs_only_what_has_it() -> None:
    draft = full()
    draft.record.model, draft.message = "m\ud800", "error \udfff"
    draft.record.losses = [Loss("a", "b", "\ud800")]
    flow = seal(unpack_draft(pack_draft(draft)), "id", WireRedaction())
    assert (flow.summary.model, flow.summary.backend, flow.summary.outcome) == ("m?", "up", "ok")
    assert flow.client.body == b'{"model": "m"}'
