"""The flow before another one, also after the one in between is gone."""

from __future__ import annotations

from msgspec.structs import replace

from tests.flows.drafts import begin, end, recorder
from toolwire.flows.conversations import ConversationIndex
from toolwire.flows.record import FlowSummary


def summaries(*conversations: str) -> list[FlowSummary]:
    flows = recorder()
    return [replace(end(flows, begin(flows)).summary, conversation=name) for name in conversations]


def test_the_previous_flow_is_the_last_one_that_exists() -> None:
    found, index = summaries("a", "b", "a", "a", ""), ConversationIndex()
    for summary in (*reversed(found), found[0]):
        index.add(summary)
    assert [index.previous(summary, range(10)) for summary in found] == [None, None, 1, 3, None]
    assert index.previous(found[3], {1, 4}) == 1
    assert index.previous(found[3], {4}) is None
    index.clear()
    assert index.previous(found[3], range(10)) is None
