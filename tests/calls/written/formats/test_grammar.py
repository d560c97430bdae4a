from __future__ import annotations

import pytest

from tests.calls.speaking import CALL, tag, told
from toolwire.calls.written.formats.base import CallClosed
from toolwire.calls.written.formats.grammar import Block, Grammar
from toolwire.calls.written.formats.hermes.tagged import OPENERS, read_tagged

ODD = Grammar("odd", OPENERS, read_tagged, "line", "odd")


def careful(inside: str) -> Block:
    block = ODD.begin("<tool_call", told())
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
