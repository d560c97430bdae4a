"""Words of the responses dialect that both directions share."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.responses.resource import citation_out, usage_out
from toolwire.dialects.responses.shapes import call_in, citation_in, parts_in, usage_in
from toolwire.types import Citation, Opaque, Refusal, Text, Usage


def test_a_message_of_every_kind() -> None:
    content = [
        {
            "type": "output_text",
            "text": "a",
            "annotations": [{"type": "url_citation", "url": "https://a", "start_index": 0, "end_index": 1}],
            "logprobs": [{"token": "a"}],
        },
        {"type": "refusal", "refusal": "no"},
        {"type": "new", "x": 1},
    ]
    text, refusal, other = parts_in({"type": "message", "id": "msg", "content": content})
    assert isinstance(text, Text)
    assert (text.text, text.item_id, text.logprobs) == ("a", "msg", ({"token": "a"},))
    assert [(one.url, one.start, one.end) for one in text.citations] == [("https://a", 0, 1)]
    assert refusal == Refusal(text="no", item_id="msg")
    assert other == Opaque(dialect="responses", value={"type": "new", "x": 1})


@pytest.mark.parametrize(
    ("arguments", "raw"), [("", "{}"), (None, "{}"), (" ", "{}"), ('{"a":1}', '{"a":1}'), ("broken", "broken")]
)
def test_H012_arguments_are_never_empty(arguments: Any, raw: str) -> None:
    call = call_in({"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments})
    assert call.raw == raw
    assert (call.args is None) == (raw == "broken")


def test_freeform_input_may_be_empty() -> None:
    assert call_in({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": ""}).raw == ""


def test_the_items_id_stands_in_for_a_missing_call_id() -> None:
    call = call_in({"type": "function_call", "id": "fc", "name": "f", "arguments": "{}"})
    assert (call.id, call.item_id) == ("fc", "fc")


def test_usage_both_ways() -> None:
    value = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0, "x": 1},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 17,
    }
    usage = usage_in(value)
    assert (usage.input, usage.output, usage.cached, usage.reasoning) == (10, 7, 4, 2)
    assert usage_out(usage) == value
    assert usage_out(Usage(input=1))["output_tokens_details"] == {"reasoning_tokens": 0}
    assert usage_in({"input_tokens": [], "input_tokens_details": 5}).input == 0


def test_citations() -> None:
    own = {"type": "file_citation", "filename": "F", "index": 1}
    citation = citation_in(own)
    assert citation is not None
    assert citation.title == "F"
    assert citation_out(citation) == own
    assert citation_out(Citation(title="no address")) is None
    assert citation_in(5) is None
