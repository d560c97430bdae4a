"""Parts under construction: dense indices, one end, and arguments that are always something."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.playing import pieces
from toolwire.dialects.shared.assembly import Assembly, Balance, GrowingCall
from toolwire.events import PartDelta, PartEnded, PartStarted
from toolwire.types import Citation, Opaque, Part, Reasoning, Refusal, Text, ToolCall
from toolwire.wire.exact_json import object_of


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
    assert growing.is_empty
    assert [growing.grow("a"), growing.grow("b")] == [PartDelta(0, "a"), PartDelta(0, "b")]
    assert not growing.is_empty
    assert assembly.is_open(growing)
    assert assembly.end(growing) == [PartEnded(index=0, part=whole)]
    assert not assembly.is_open(growing)
    assert assembly.end(growing) == []


@pytest.mark.parametrize("pieces", [[], [""], [" ", "\n"]])
def test_H012_a_call_without_arguments_says_the_empty_object(pieces: list[str]) -> None:
    assembly = Assembly()
    growing, _ = assembly.start(ToolCall(id="c", name="f", raw=""))
    for piece in pieces:
        growing.grow(piece)
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
        growing.grow(raw)
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


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\{}[]\n é'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\}'), inner, max_size=3),
)


@given(st.dictionaries(st.text(alphabet='k"\\}'), JSON, max_size=3), st.lists(st.integers(0, 200), max_size=6))
def test_an_object_is_closed_at_its_last_character_however_it_is_cut(value: object, cuts: list[int]) -> None:
    text = json.dumps(value)
    balance = Balance()
    for piece in pieces(text.encode(), [min(cut, len(text)) for cut in cuts]):
        assert not balance.is_closed or not piece
        balance.read(piece.decode())
    assert balance.is_closed
    assert not balance.is_spoilt
    balance.read(" \n")
    assert not balance.is_spoilt
    balance.read(",")
    assert balance.is_spoilt


class Counting(Balance):
    """Counts the characters that it is given."""

    __slots__ = ("characters",)

    def __init__(self) -> None:
        super().__init__()
        self.characters = 0

    def read(self, text: str) -> None:
        self.characters += len(text)
        super().read(text)


def test_a_call_is_read_once_however_often_its_value_is_wanted() -> None:
    balance = Counting()
    growing = GrowingCall(0, ToolCall(id="c", name="f", raw=""), 0, balance)
    written = 0
    for number, piece in enumerate(['{"a":"', *["}}}}"] * 300, '"}']):
        assert growing.value is None
        if number % 7 == 0:
            assert len(growing.content) == written
        written += len(growing.grow(piece).text)
    assert growing.value == {"a": "}}}}" * 300}
    assert growing.value == {"a": "}}}}" * 300}
    assert balance.characters == written
    growing.grow(" \n")
    assert growing.value is not None
    growing.grow("}")
    assert growing.value is None


@pytest.mark.parametrize("part", [Text(text=""), ToolCall(id="c", name="f", raw="", kind="custom")])
def test_only_a_call_of_a_function_has_a_value(part: Part) -> None:
    growing, _ = Assembly().start(part)
    growing.grow("{}")
    assert growing.value is None


@given(st.lists(st.tuples(st.text(max_size=3), st.booleans(), st.booleans()), max_size=12))
def test_looking_at_a_call_changes_nothing(steps: list[tuple[str, bool, bool]]) -> None:
    growing, _ = Assembly().start(ToolCall(id="c", name="f", raw=""))
    written = ""
    for text, wants_content, wants_value in steps:
        growing.grow(text)
        written += text
        if wants_value:
            assert growing.value == object_of(written)
        if wants_content:
            assert growing.content == written
    assert "".join(growing.pieces) == growing.content == written
