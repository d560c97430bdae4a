"""The request for arguments under their schema, and the calls that its answer becomes."""

from __future__ import annotations

import pytest

from toolwire.calls.argument_request import ArgumentRequest
from toolwire.calls.validation import span_of, with_span
from toolwire.types import Message, Request, Sampling, Text, Tool, ToolCall, ToolChoice

CITY = Tool(name="city", schema={"type": "object", "properties": {"name": {"type": "string"}}}, strict=True)
NOW = Tool(name="now", schema={"type": "object", "properties": {}})
REQUEST = Request(
    model="m",
    messages=(Message(role="user", parts=(Text(text="hi"),)),),
    tools=(CITY, NOW),
    tool_choice=ToolChoice(mode="required"),
    parallel_calls=True,
    sampling=Sampling(stop=("}",), temperature=1),
    source={"tools": []},
    wire=b"{}",
)
CALL = ToolCall(id="c1", name="city", raw="{")


def test_the_request_offers_no_tools_and_nothing_of_the_clients_body() -> None:
    asked = ArgumentRequest([[CITY]]).request(REQUEST)
    assert (asked.tools, asked.tool_choice, asked.parallel_calls, asked.source, asked.wire) == ((), None, None, {}, b"")
    assert asked.sampling == Sampling(temperature=1)
    assert (asked.output.schema, asked.output.strict) == (CITY.schema, True)
    assert ArgumentRequest([[NOW]]).request(REQUEST).output.strict is None


def test_the_answer_keeps_id_and_numbers() -> None:
    made = ArgumentRequest([[CITY]]).calls('{"name": 1.50}', [CALL])
    assert made is not None
    assert [(call.id, call.name, call.raw) for call in made] == [("c1", "city", '{"name":1.50}')]


def test_an_unreadable_block_becomes_a_call_without_its_text() -> None:
    block = with_span(CALL, "<tool_call>city</tool_call>", "no JSON")
    made = ArgumentRequest([[CITY, NOW]]).calls('{"name": "now", "arguments": {}}', [block])
    assert made is not None
    assert (made[0].name, made[0].raw, span_of(made[0])) == ("now", "{}", "")


@pytest.mark.parametrize(
    "text", ["", "no", "[]", '{"call_1": {}}', '{"call_1": {}, "call_2": 1}', '{"call_1": {}, "call_2"']
)
def test_an_answer_in_another_form_is_none(text: str) -> None:
    assert ArgumentRequest([[CITY], [NOW]]).calls(text, [CALL, CALL]) is None


def test_the_hint_names_the_member_of_each_of_several_calls() -> None:
    asked = ArgumentRequest([[CITY], [CITY, NOW]])
    assert '"call_1"' in asked.hint(0)["hint"]
    assert '"call_2"' in asked.hint(1)["hint"]
    assert [tool["name"] for tool in asked.hint(1)["tools"]] == ["city", "now"]
