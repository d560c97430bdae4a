"""Events of the loop as data."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import get_args

import pytest

from toolwire.agent.events import CompleteEvent, LoopEvent, ToolCallEvent, ToolErrorEvent, ToolResultEvent, plain
from toolwire.types import Media, Text, Usage
from toolwire.wire.exact_json import encode


def test_there_are_nine_and_each_says_which_it_is() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(LoopEvent)]
    assert tags == [
        "text",
        "reasoning",
        "tool_call",
        "tool_result",
        "tool_error",
        "approval",
        "status",
        "error",
        "complete",
    ]


@pytest.mark.parametrize(
    "event",
    [
        ToolErrorEvent(id="c", name="f", kind="denied", message="no"),
        ToolResultEvent(id="c", name="f", parts=(Text(text="a"), Media(kind="image", data="QQ=="))),
        CompleteEvent(text="done", reason="done", iterations=2, usage=Usage(input=1)),
    ],
)
def test_each_can_be_written_as_json(event: LoopEvent) -> None:
    assert json.loads(encode(plain(event)))["type"] == event.__struct_config__.tag


def test_numbers_stay_numbers_with_all_their_digits() -> None:
    event = ToolCallEvent(id="c", name="f", arguments={"x": Decimal("0.10"), "big": 2**70})
    assert b'{"x":0.10,"big":1180591620717411303424}' in encode(plain(event))


def test_the_text_of_a_result_is_that_of_all_its_parts() -> None:
    parts = (Text(text="a"), Media(kind="image", data="QQ=="), Text(text="b"))
    assert ToolResultEvent(id="c", name="f", parts=parts).text == "ab"
