"""A flow in memory as one piece of bytes.

A flow consists of some fifty small objects. Thousands of flows would be half a million objects that the garbage collector visits again and again, which
costs more than everything else that recording does; bytes it does not visit. Drafts are packed when their request ends, as they are.
Sealed flows are packed after they were redacted.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from ..calls.ledger.rules import Repair
from ..dialects.base import Decode
from ..telemetry import Record
from ..telemetry.flow_draft import FLOW_COST, FlowBudget, FlowDraft, Gist, WireDraft, WireMessage, header_items
from .gist import gist_of, needs_gist
from .sealed import SealedFlow

_MAX_REPAIRS = 200
_COST = 500  # bytes of memory of a packed flow besides its data
_UNBOUNDED = FlowBudget(1 << 60, 1 << 60)
_encode = msgspec.msgpack.Encoder().encode


class PackedFlow(Struct, frozen=True, gc=False):
    """The members that lists are filtered by, and the rest as bytes. is_sealed: no secret is left in them."""

    seq: int
    started: float
    dialect: str
    model: str
    sent_model: str
    backend: str
    outcome: str
    is_sealed: bool
    data: bytes
    decode: Decode | None = None

    @property
    def memory(self) -> int:
        return _COST + len(self.data)


class _PackedWire(Struct, array_like=True):
    dialect: str
    method: str
    url: str
    headers: list[tuple[Any, Any]]  # str or bytes
    opened: float
    body: bytes | None  # None: that of the client
    request_size: int
    has_cut_request: bool
    status: int | None
    reply_headers: list[tuple[Any, Any]]
    times: list[float]
    pieces: list[bytes] | None  # None: those of the client
    size: int
    is_cut: bool
    error: str
    connected: float
    answered: float


class _PackedDraft(Struct, array_like=True):
    record: Record
    client: _PackedWire
    upstream: list[_PackedWire]
    messages: list[WireMessage]
    message: str
    secret: str
    gist: Gist | None
    repairs: tuple[Repair, ...]


_FIELDS = _PackedWire.__struct_fields__


def pack_draft(draft: FlowDraft) -> PackedFlow:
    """Of a request that has ended. Its record refers to the draft no longer."""
    record = draft.record
    record.flow = None
    client = draft.client
    wires = [_pack_wire(wire, client) for wire in draft.upstream]
    gist = gist_of(draft) if needs_gist(draft) else None
    rest = (draft.messages, draft.message, draft.secret, gist, draft.repairs[:_MAX_REPAIRS])
    try:
        data = _encode((record, _pack_wire(client), wires, *rest))
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
        record = _plain_record(record)
        data = _encode((record, _pack_wire(client), wires, (), "", draft.secret, None, ()))
    return PackedFlow(
        draft.seq,
        draft.started,
        record.dialect,
        record.model,
        record.sent_model,
        record.backend,
        record.outcome,
        False,
        data,
        draft.decode,
    )


def unpack_draft(packed: PackedFlow) -> FlowDraft:
    found = _decoder.decode(packed.data)
    client = _unpack_wire(found.client)
    draft = FlowDraft(packed.seq, found.record, client, found.secret, _UNBOUNDED, lambda draft: None)
    draft.upstream = [_unpack_wire(wire, client) for wire in found.upstream]
    draft.messages, draft.message, draft.is_answered = found.messages, found.message, True
    draft.started, draft.decode, draft.gist = packed.started, packed.decode, found.gist
    draft.repairs = found.repairs
    return draft


def pack_sealed(flow: SealedFlow) -> PackedFlow:
    summary = flow.summary
    return PackedFlow(
        summary.seq,
        summary.started,
        summary.dialect,
        summary.model,
        summary.sent_model,
        summary.backend,
        summary.outcome,
        True,
        _encode(flow),
    )


def unpack_sealed(packed: PackedFlow) -> SealedFlow:
    return _sealed_decoder.decode(packed.data)


def memory_of(entry: FlowDraft | PackedFlow) -> int:
    return entry.memory if isinstance(entry, PackedFlow) else entry.charged


def _plain_record(record: Record) -> Record:
    """What is certain to be encodable: JSON of clients may contain text that is not valid Unicode, and back ends may add anything."""
    return Record(
        request_id=_text(record.request_id),
        dialect=record.dialect,
        model=_text(record.model),
        backend=record.backend,
        sent_model=_text(record.sent_model),
        is_stream=record.is_stream,
        is_verbatim=record.is_verbatim,
        status=record.status,
        error=_text(record.error),
        outcome=record.outcome,
        started=record.started,
        first_byte=record.first_byte,
        ended=record.ended,
    )


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _pack_wire(wire: WireDraft, client: WireDraft | None = None) -> tuple[Any, ...]:
    """In the order of _PackedWire. client: that of the client, whose bytes are often passed on unchanged."""
    return (
        wire.dialect,
        wire.method,
        wire.url,
        header_items(wire.headers),
        wire.opened,
        None if client is not None and wire.body is client.body else wire.body,
        wire.request_size,
        wire.has_cut_request,
        wire.status,
        header_items(wire.reply_headers),
        wire.times,
        None if client is not None and wire.pieces == client.pieces else wire.pieces,
        wire.size,
        wire.is_cut,
        wire.error,
        wire.connected,
        wire.answered,
    )


def _unpack_wire(packed: _PackedWire, client: WireDraft | None = None) -> WireDraft:
    wire = WireDraft(_UNBOUNDED, packed.dialect, packed.method, packed.url, packed.headers, packed.opened)
    for name in _FIELDS[5:]:
        setattr(wire, name, getattr(packed, name))
    if client is not None:
        wire.body = client.body if packed.body is None else packed.body
        wire.pieces = client.pieces if packed.pieces is None else packed.pieces
    return wire


def _convert(kind: type, value: Any) -> Any:
    if kind is Counter or getattr(kind, "__origin__", None) is Counter:
        return Counter(value)
    raise NotImplementedError(f"found {kind} in a packed flow.")


_decoder = msgspec.msgpack.Decoder(_PackedDraft, dec_hook=_convert)
_sealed_decoder = msgspec.msgpack.Decoder(SealedFlow)
assert FLOW_COST > _COST  # so that packing frees memory
