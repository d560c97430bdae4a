"""Parts under construction: dense indices, one end, and arguments that are always something."""

from __future__ import annotations

import pytest

from toolwire.dialects.assembly import Assembly
from toolwire.events import PartDelta, PartEnded, PartStarted
from toolwire.types import Citation, Opaque, Part, Reasoning, Refusal, Text, ToolCall


def test_indices_are_dense_over_all_choices() -> None:
    assembly = Assembly()
    starts = [assembly.start(Text(text=""), choice)[1] for choice in (0, 1, 0)]
    assert starts == [
        PartStarted(index=index, part=Text(text=""), choice=choice) for index, choice in enumerate((0, 1, 0))
    ]


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        (Text(text=""), Text(text="ab")),
        (Refusal(text=""), Refusal(text="ab")),
        (Reasoning(text="", item_id="r"), Reasoning(text="ab", item_id="r")),
        (ToolCall(id="c", name="f", raw=""), ToolCall(id="c", name="f", raw="ab")),
        (ToolCall(id="c", name="f", raw="", kind="custom"), ToolCall(id="c", name="f", raw="ab", kind="custom")),
        (Opaque(dialect="chat", value={}), Opaque(dialect="chat", value={})),
    ],
)
def test_an_end_carries_the_whole_and_comes_once(part: Part, whole: Part) -> None:
    assembly = Assembly()
    growing, _ = assembly.start(part)
    growing.pieces += ["a", "b"]
    assert assembly.is_open(growing)
    assert assembly.end(growing) == [PartEnded(index=0, part=whole)]
    assert not assembly.is_open(growing)
    assert assembly.end(growing) == []


@pytest.mark.parametrize("pieces", [[], [""], [" ", "\n"]])
def test_H012_a_call_without_arguments_says_the_empty_object(pieces: list[str]) -> None:
    assembly = Assembly()
    growing, _ = assembly.start(ToolCall(id="c", name="f", raw=""))
    growing.pieces += pieces
    delta, ended = assembly.end(growing)
    assert delta == PartDelta(0, "{}")
    assert isinstance(ended, PartEnded)
    assert isinstance(ended.part, ToolCall)
    assert ended.part.args == {}


def test_a_freeform_call_may_be_empty() -> None:
    assembly = Assembly()
    growing, _ = assembly.start(ToolCall(id="c", name="f", raw="", kind="custom"))
    assert len(assembly.end(growing)) == 1


def test_only_an_object_is_arguments() -> None:
    for raw, args in (('{"a":1}', {"a": 1}), ("[1]", None), ('{"a":', None), ("1", None)):
        assembly = Assembly()
        growing, _ = assembly.start(ToolCall(id="c", name="f", raw=""))
        growing.pieces.append(raw)
        (ended,) = assembly.end(growing)
        assert isinstance(ended, PartEnded)
        assert ended.part == ToolCall(id="c", name="f", raw=raw, args=args)


def test_notes_beside_the_text_are_kept() -> None:
    assembly = Assembly()
    growing, _ = assembly.start(Text(text=""))
    growing.citations.append(Citation(url="https://a"))
    growing.logprobs.append({"token": "a"})
    (ended,) = assembly.end(growing)
    assert ended == PartEnded(
        index=0, part=Text(text="", citations=(Citation(url="https://a"),), logprobs=({"token": "a"},))
    )


def test_all_that_is_open_ends_in_order_with_what_is_only_known_now() -> None:
    assembly = Assembly()
    first, _ = assembly.start(Reasoning(text=""))
    assembly.start(Text(text=""))
    assert assembly.end(first, signature="s") == [PartEnded(index=0, part=Reasoning(text="", signature="s"))]
    assert assembly.end_all() == [PartEnded(index=1, part=Text(text=""))]
    assert assembly.open == {}
