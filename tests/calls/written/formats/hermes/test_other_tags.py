from __future__ import annotations

import pytest

from tests.calls.speaking import PARIS, read_all_ways, tag, told, told_apart
from toolwire.calls.written.formats import glm, qwen
from toolwire.calls.written.formats.hermes.other_tags import BehindTag, StrayTag

pytestmark = pytest.mark.slow


def test_other_forms_behind_the_same_tag() -> None:
    for inside in (
        "\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n",
        "get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n",
    ):
        for is_told in (True, False):
            assert told_apart(read_all_ways(tag(inside), is_told=is_told)) == [PARIS]
            assert told_apart(read_all_ways(f"<tool_call >{inside}</tool_call>", is_told=is_told)) == [PARIS]


def test_a_tag_that_does_not_end_is_none() -> None:
    for grammar in (BehindTag("qwen", qwen.in_tag), BehindTag("glm", glm.in_tag)):
        assert grammar.begin("<tool_call", told()).feed("s").status == "none"
        assert grammar.begin("<tool_call", told()).feed(" " * 60).status == "none"
        assert grammar.begin("<tool_call", told()).close().status == "none"


def test_a_closing_tag_that_closes_nothing_says_nothing() -> None:
    block = StrayTag().begin("</tool_call", told())
    assert block.feed(" ").status == "more"
    read = block.feed("> x")
    assert (read.status, read.pieces, read.rest) == ("done", [], " x")
    assert StrayTag().begin("</tool_call", told()).feed("er>").status == "none"


def test_closing_tags_go_only_behind_blocks() -> None:
    assert told_apart(read_all_ways(f"{tag()}\n</tool_call>\n</tool_calls>x</tool_call>")) == [
        PARIS,
        "\n\nx</tool_call>",
    ]
    assert told_apart(read_all_ways("x\n</tool_call>\n")) == ["x\n</tool_call>\n"]
