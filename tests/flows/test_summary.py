"""What a list shows of a request, and what is reported about it."""

from __future__ import annotations

from tests.flows.drafts import begin, end, listed, recorder
from toolwire.calls.ledger.rules import Repair
from toolwire.calls.validation import CallMade, RepairText
from toolwire.errors import UpstreamError
from toolwire.types import Loss, Message, Request, Text, ToolResult, Usage


def request(*texts: str, owner: str = "") -> Request:
    roles = ("user", "assistant")
    messages = [Message(role=roles[place % 2], parts=(Text(text=text),)) for place, text in enumerate(texts)]
    return Request(model="m", messages=tuple(messages), owner=owner)


def test_an_open_flow_is_open_until_the_response_is_sent() -> None:
    flows = recorder()
    draft = begin(flows)
    (summary,) = listed(flows)
    assert (summary.outcome, summary.ended, summary.timings.total) == ("open", None, None)
    draft.record.ended = 101.0
    draft.end()
    assert listed(flows)[0].outcome == "open"
    assert end(flows, draft).summary.outcome == "ok"


def test_the_summary_has_what_the_record_has() -> None:
    flows = recorder()
    draft = begin(flows, model="up/m", backend="up", sent_model="m", route="only up lists it", is_stream=True)
    record = draft.record
    record.usage = Usage(input=10, cached=4, output=5, reasoning=1)
    record.tally.calls = [CallMade("a", "f", "right"), CallMade("b", "g", "repaired"), CallMade("c", "h", "invalid")]
    record.tally.repaired, record.tally.corrections = 1, 2
    record.history.update(["orphan"])
    record.losses = [Loss("x", "y", "z")]
    draft.request = request("first question", "answer", "second   question\nof the user")
    assert listed(flows)[0].preview == "second question of the user"
    summary = end(flows, draft).summary
    assert (summary.model, summary.backend, summary.sent_model) == ("up/m", "up", "m")
    assert (summary.repairs, summary.losses, summary.corrections) == (2, 1, 2)
    assert [(call.valid_before, call.valid_after) for call in summary.calls] == [
        (True, True),
        (False, True),
        (False, False),
    ]
    assert summary.usage is not None
    assert (summary.usage.input, summary.usage.cached) == (10, 4)
    assert summary.preview == "second question of the user"
    assert (summary.cost, summary.timings.total) == (None, 1.0)


def test_the_preview_is_the_last_text_of_the_user_also_after_results() -> None:
    flows = recorder()
    draft = begin(flows)
    result = Message(role="tool", parts=(ToolResult(call_id="c", parts=(Text(text="18 C"),)),))
    draft.request = Request(model="m", messages=(*request("sk-abcdef123 weather").messages, result))
    assert end(flows, draft).summary.preview == "[hidden] weather"


def test_the_error_is_reported_with_its_text() -> None:
    flows = recorder("upstream-key-123")
    draft = begin(flows, backend="up")
    draft.record.fail(UpstreamError("the key upstream-key-123 is wrong.", status=401, code="upstream_error"))
    flow = end(flows, draft, outcome="error")
    assert flow.summary.message == "the key [hidden] is wrong."
    assert [(report.kind, report.code, report.where) for report in flow.reports] == [("fault", "upstream_error", "up")]


def test_repairs_and_losses_are_reported() -> None:
    flows = recorder("known-secret")
    draft = begin(flows)
    texts = draft.record.tally.texts
    assert texts is not None
    texts.append(RepairText(id="call_1", name="f", before='{"n": "1"}', after='{"n": 1}', repairs=("typed",)))
    draft.repairs = (Repair("empty", "messages[1]", "a result without a call was dropped", "known-secret"),)
    draft.record.history.update(["empty", "compacted"])
    draft.record.losses = [Loss("thinking", "request", "the back end has none")]
    reports = end(flows, draft).reports
    assert [(report.kind, report.code, report.where, report.before, report.after) for report in reports] == [
        ("repair", "empty", "messages[1]", "[hidden]", ""),
        ("repair", "compacted", "history", "", ""),
        ("repair", "typed", "call call_1", '{"n": "1"}', '{"n": 1}'),
        ("loss", "thinking", "request", "", ""),
    ]
