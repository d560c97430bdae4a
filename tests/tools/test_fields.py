"""Classes with named members."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, Required, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from toolwire.tools.fields import foreign_kind, is_typed_dict
from toolwire.tools.hints import Hints


@dataclass
class Card:
    """A card."""

    title: str = field(metadata={"description": "On top."})
    lines: list[str] = field(default_factory=lambda: ["x"])
    options: dict[str, int] = field(default_factory=dict)


class Base(TypedDict):
    a: int


class Wider(Base, total=False):
    b: int
    c: Required[Annotated[int, "Third."]]
    d: NotRequired[int]


def test_kinds_are_told_apart() -> None:
    pair = namedtuple("pair", "x y")  # people write it
    kinds = [type("M", (BaseModel,), {}), type("S", (msgspec.Struct,), {}), Card, pair, dict, tuple, 3]
    assert [foreign_kind(kind) for kind in kinds] == ["pydantic", "struct", "dataclass", "named tuple", "", "", ""]
    assert is_typed_dict(Base)
    assert not is_typed_dict(dict)


def test_dataclasses_tell_their_defaults_and_descriptions() -> None:
    hints = Hints(globals())
    hints.shape(Card)
    assert hints.definitions["Card"] == {
        "description": "A card.",
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "On top."},
            "lines": {"type": "array", "items": {"type": "string"}},
            "options": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}},
        },
        "required": ["title"],
        "additionalProperties": False,
    }


def test_typed_dicts_know_what_is_required() -> None:
    hints = Hints(globals())
    hints.shape(Wider)
    assert sorted(hints.definitions["Wider"]["required"]) == ["a", "c"]
    assert hints.definitions["Wider"]["properties"]["c"] == {"type": "integer", "description": "Third."}


def test_named_tuples_without_hints_take_anything() -> None:
    pair = namedtuple("pair", "x y", defaults=[0])  # people write it
    shape = Hints({}).shape(pair)
    assert shape.convert({"x": "anything"}) == pair("anything", 0)


@pytest.mark.parametrize("kind", [Card, namedtuple("pair", "x")])
def test_docstrings_that_python_wrote_are_not_told(kind: Any) -> None:
    hints = Hints(globals())
    kind = dataclass(type("Bare", (), {"__annotations__": {"x": "int"}})) if kind is Card else kind
    hints.shape(kind)
    (told,) = hints.definitions.values()
    assert "description" not in told
