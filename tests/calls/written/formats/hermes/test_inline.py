from __future__ import annotations

import pytest

from tests.calls.speaking import CALL, PARIS, read_all_ways, tag, told, told_apart
from tests.calls.written.formats.holding import PROSE, check_held
from toolwire.calls.written.formats.base import CallClosed
from toolwire.calls.written.formats.hermes.inline import MOST_UNNAMED, ExactTools, ValidatedBlock
from toolwire.calls.written.formats.hermes.tagged import TaggedBlock

pytestmark = pytest.mark.slow


def careful(inside: str) -> ValidatedBlock:
    block = ValidatedBlock(TaggedBlock("<tool_call", ExactTools(told())), told(), "odd")
    assert block.feed(">").pieces == []
    assert inside
    return block


def test_nothing_is_said_before_the_end() -> None:
    block = careful(CALL)
    assert block.feed(CALL).pieces == []
    read = block.feed("</tool_call> x")
    assert read.pieces == [CallClosed(name="get_weather", raw='{"city": "Paris"}', repairs=("odd",))]
    assert read.rest == " x"


@pytest.mark.parametrize(
    "inside",
    [
        '{"name": "nobody"}',
        '{"name": "get_weather", "arguments": {"city": 1}}',
        '{"name": "get_weather", "arguments": 3}',
        "x",
        "{]",
    ],
)
def test_what_is_not_valid_is_none(inside: str) -> None:
    read = careful(inside).feed(tag(inside).removeprefix("<tool_call>"))
    assert (read.status, read.pieces) == ("none", [])


def test_what_is_cut_is_none() -> None:
    block = careful(CALL)
    block.feed(CALL[:-5])
    assert block.close().status == "none"
    assert careful(CALL).close().status == "none"


def test_the_tools_are_the_same_but_nothing_was_told() -> None:
    exacting = ExactTools(told())
    assert not exacting.is_instructed
    assert exacting.tool("get_time") is told().tool("get_time")
    assert exacting.fits("get_time", "{}")
    assert not exacting.fits("get_weather", "{}")


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("<tool_call>{", 20),
        ("<tool_call>[{", 20),
        ("<tool_call><tool_call>{", 30),
        ('<tool_call>{"name": "get_time"', 40),
        ('<tool_call>{"name": "get_time",', 40),
        ('<tool_call>{"name": "get_time", "arguments"', 50),
        ('<tool_call>{"name": "get_time", "arguments": 1', 50),
        ('<tool_call>{"name": "get_time", "arguments": {}', 55),
        ('<tool_call>{"name": "get_time" {', 40),
        ('<tool_call>{"name":', 30),
        ('<tool_call>{"a": "', 200),
        ("<tool_call>{'a': '", 200),
        ('<tool_call>{"arguments": {', 200),
        ("<tool_call>" + " " * 300 + "{", 200),
        ("<|channel|>final<|message|>", 50),
    ],
)
def test_prose_behind_a_brace_is_not_held(text: str, most: int) -> None:
    check_held(f"x {text}{PROSE}", most)


@pytest.mark.parametrize(
    "inside",
    [
        CALL,
        f"[{CALL}]",
        f"\n```json\n{CALL}\n```\n",
        f"<tool_call>{CALL}",
        '{"id": 1, "type": null, "name": "get_weather", "arguments": {"city": "Paris"}, }',
        '{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
        '{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}',
        "{'name': 'get_weather', 'arguments': {'city': 'Paris'}}",
        '{"name": "get_weather" "arguments": {city: "Paris"}}',
        '{"arguments": {"city": "Paris"}, "name": "get_weather"}',
    ],
)
def test_a_call_inside_a_line_may_have_any_of_its_shapes(inside: str) -> None:
    for is_instructed in (True, False):
        assert told_apart(read_all_ways(f"x {tag(inside)}", is_instructed=is_instructed)) == ["x ", PARIS]


def test_a_call_that_is_named_is_held_as_long_as_it_goes_on() -> None:
    city = "w " * MOST_UNNAMED
    text = f"x {tag(CALL.replace('Paris', city))}"
    assert told_apart(read_all_ways(text)) == ["x ", ("get_weather", {"city": city})]
