"""Recorded flows as cassettes: saving some of them, and listing those of a file."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ...errors import BadRequest
from ...flows.cassette import cassette_line, flows_in
from ...flows.detail import flow_record
from ...flows.recorder import FlowRecorder
from ...flows.sealed import SealedFlow
from ...offload import offload
from ...types import JsonObject


class _ChosenFlows(Struct, frozen=True):
    ids: list[str]


async def save_cassette(flows: FlowRecorder | None, body: bytes) -> bytes:
    """A cassette with the flows whose ids are in the body, the oldest first. What is still open has no answer yet, and is left out."""
    try:
        ids = msgspec.json.decode(body, type=_ChosenFlows).ids
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("expected a JSON object with the list ids.", where="body") from None
    found = await flows.find_all(ids) if flows is not None else []
    return await offload(_lines, [flow for flow in found if flow.summary.outcome != "open"])


async def open_cassette(flows: FlowRecorder | None, body: bytes) -> JsonObject:
    """Lists the flows of a cassette. Returns how many are new, how many the file has, and how many lines are none."""
    if flows is None:
        raise not_recorded()
    found, skipped = await offload(flows_in, body)
    if not found:
        raise BadRequest(
            f"found no recorded flow in {skipped} lines; expected a cassette of `toolwire record`.", where="body"
        )
    return {"opened": flows.open_flows(found), "flows": len(found), "skipped": skipped}


def not_recorded() -> BadRequest:
    return BadRequest("nothing is recorded.", status=404, code="not_recorded", hint="Set [flows] enabled = true.")


def _lines(flows: list[SealedFlow]) -> bytes:
    return b"".join(cassette_line(flow_record(flow)) for flow in flows)
