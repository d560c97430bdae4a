from __future__ import annotations

import pytest

from tests.calls.speaking import CALL, tag, told
from toolwire.calls.formats.base import Closed
from toolwire.calls.formats.careful import Careful, Exacting
from toolwire.calls.formats.tagged import Tagged


def careful(inside: str) -> Careful:
    block = Careful(Tagged("<tool_call", Exacting(told())), told(), "odd")
    assert block.feed(">").pieces == []
    assert inside
    return block


def test_nothing_is_said_before_the_end() -> None:
    block = careful(CALL)
    assert block.feed(CALL).pieces == []
    read = block.feed("</tool_call> x")
    assert read.pieces == [Closed(name="get_weather", raw='{"city": "Paris"}', repairs=("odd",))]
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
    exacting = Exacting(told())
    assert not exacting.is_told
    assert exacting.tool("get_time") is told().tool("get_time")
    assert exacting.fits("get_time", "{}")
    assert not exacting.fits("get_weather", "{}")
