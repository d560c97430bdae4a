"""The record is a stable form: what is written can be read, also when later versions have added members."""

from __future__ import annotations

import msgspec
import pytest

from tests.flows.drafts import begin, end, recorder
from toolwire.flows.detail import flow_record
from toolwire.flows.record import VERSION, Flow, FlowSummary


def test_a_flow_survives_json() -> None:
    flows = recorder()
    flow = flow_record(end(flows, begin(flows, b'{"model": "m"}')))
    written = msgspec.json.encode(flow)
    assert msgspec.json.decode(written, type=Flow) == flow
    assert flow.version == VERSION


def test_members_of_later_versions_are_ignored() -> None:
    flows = recorder()
    value = msgspec.to_builtins(flow_record(end(flows, begin(flows))))
    value["later"] = value["summary"]["later"] = value["client"]["later"] = 1
    assert msgspec.convert(value, Flow).summary.dialect == "chat"


@pytest.mark.parametrize(
    "name",
    ["id", "seq", "started", "ended", "dialect", "path", "model", "backend", "backend_dialect", "sent_model", "stream",
     "status", "outcome", "error", "message", "verbatim", "translated", "route", "repairs", "losses", "corrections",
     "calls", "usage", "cost", "timings", "conversation", "previous", "key", "preview"],
)  # fmt: skip
def test_the_summary_has_the_documented_members(name: str) -> None:
    assert name in FlowSummary.__struct_fields__
