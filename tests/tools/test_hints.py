"""Schemas from type hints: a value fits the schema exactly when it converts."""

from __future__ import annotations

import enum
import typing
from collections import OrderedDict, deque, namedtuple
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType

from tests.thorough import examples
from toolwire.tools.hints import Hints, Unsupported
from toolwire.tools.shapes import Mismatch, Shape
from toolwire.types import Json, JsonObject

T = TypeVar("T")
UserId = NewType("UserId", int)
Alias = TypeAliasType("Alias", list["Alias"] | int)
Nested = dict[str, "Nested"] | list["Nested"] | str


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    POINT = (0, 0)
    LINE = (0, 1)


@dataclass
class Place:
    """Somewhere.

    Attributes:
        city: Its name.
    """

    city: str
    zip: int | None = None
    tags: list[str] = field(default_factory=list)
    seen: int = field(default=0, init=False)


@dataclass
class Tree:
    value: int
    children: list[Tree] = field(default_factory=list)


@dataclass
class Box(Generic[T]):
    content: T
    more: list[T] = field(default_factory=list)


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    must: Required[int]
    may: str


class Strict(TypedDict):
    must: int
    may: NotRequired[str]


class Entry(msgspec.Struct):
    key: str
    count: int = 1
    inner: list[Entry] = []


class Item(BaseModel):
    name: str
    price: float = Field(ge=0)
    parts: list[Item] = []


class Refusing:
    pass


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("it is odd")


# Each with JSON values that fit it; others are made from these.
HINTS: dict[str, tuple[Any, list[Json]]] = {
    "str": (str, ["", "a"]),
    "int": (int, [0, -3, 4.0]),
    "float": (float, [0, 1.5, -2]),
    "bool": (bool, [True, False]),
    "None": (None, [None]),
    "Any": (Any, [1, {}]),
    "optional": (Optional[int], [None, 1]),  # noqa: UP045  # people write it
    "union": (int | str | None, [None, 1, "x"]),
    "numbers": (float | int, [1, 1.5]),
    "literal": (Literal["a", 1, True, None], ["a", 1, True, None]),
    "enum": (Color, ["red", "blue"]),
    "int enum": (Level, [1, 2]),
    "odd enum": (Odd, ["POINT"]),
    "list": (list[int], [[], [1, 2]]),
    "bare list": (list, [[], [None]]),
    "sequence": (Sequence[str], [["a"]]),
    "tuple": (tuple[int, str], [[1, "a"]]),
    "empty tuple": (tuple[()], [[]]),
    "tuple of any length": (tuple[int, ...], [[], [1, 1]]),
    "set": (set[int], [[], [1, 2]]),
    "frozenset": (frozenset[str], [["a", "b"]]),
    "abstract set": (AbstractSet[bool], [[True, False]]),
    "dict": (dict[str, int], [{}, {"a": 1}]),
    "mapping": (Mapping[str, list[int]], [{"a": [1]}]),
    "int keys": (dict[int, str], [{"1": "a"}]),
    "enum keys": (dict[Color, int], [{"red": 1}]),
    "ordered": (OrderedDict[str, int], [{"a": 1}]),
    "deque": (deque[int], [[1]]),
    "dataclass": (Place, [{"city": "Rome"}, {"city": "Rome", "zip": None, "tags": ["old"]}]),
    "recursive": (Tree, [{"value": 1, "children": [{"value": 2}]}]),
    "generic": (Box[int], [{"content": 1, "more": [2]}]),
    "named tuple": (Point, [{"x": 1}, {"x": 1.5, "y": 2}]),
    "typed dict": (Options, [{"must": 1}, {"must": 1, "may": "x"}]),
    "postponed typed dict": (Strict, [{"must": 1}, {"must": 1, "may": "x"}]),
    "struct": (Entry, [{"key": "a"}, {"key": "a", "count": 2, "inner": [{"key": "b"}]}]),
    "new type": (UserId, [7]),
    "type variable": (T, [1, "x"]),
    "alias that holds itself": (Nested, ["a", {"a": ["b"]}]),
    "named alias": (Alias, [1, [1, [2]]]),
    "limits": (Annotated[int, msgspec.Meta(ge=0, lt=10)], [0, 9]),
    "multiples": (Annotated[int, Field(multiple_of=3)], [0, 9]),
    "lengths": (Annotated[str, Field(min_length=2, max_length=3)], ["ab", "abc"]),
    "pattern": (Annotated[str, msgspec.Meta(pattern="^a+$")], ["a", "aa"]),
    "items": (Annotated[list[int], Field(min_length=1)], [[1]]),
    "optional with limits": (Annotated[int | None, Field(gt=2)], [None, 3]),
    "deep": (dict[str, list[Place | Tree | int]], [{"a": [{"city": "x"}, {"value": 1}, 3]}]),
}

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 15)
    | st.sampled_from([0.5, 1.0, -2.0, "", "a", "ab", "red", "1", "city"])
)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "city", "1", "must"]), inner),
)


def shape_of(hint: Any) -> tuple[Shape, JsonObject]:
    """The shape and the whole schema, definitions and all."""
    hints = Hints(globals())
    shape = hints.shape(hint)
    return shape, {**shape.schema, "$defs": hints.definitions}


@st.composite
def altered(draw: st.DrawFn, value: Json) -> Json:
    """The value, or one that differs from it in one place or more, often by little."""
    if draw(st.integers(0, 5)) == 0:
        return draw(documents)
    if isinstance(value, dict):
        changed = {key: draw(altered(item)) for key, item in value.items() if draw(st.integers(0, 5))}
        return changed | draw(st.dictionaries(st.sampled_from(["city", "zip", "new", "1"]), documents, max_size=1))
    if isinstance(value, list):
        again = draw(st.lists(st.sampled_from(value) | documents if value else documents, max_size=1))
        return [draw(altered(item)) for item in value] + again
    if isinstance(value, int | float):
        return draw(st.sampled_from([value, float(value), bool(value), value + 1, value - 1, str(value)]))
    return draw(st.sampled_from([value, value + "a", value[:-1]])) if isinstance(value, str) else value


@pytest.mark.parametrize("name", HINTS)
def test_values_that_fit_convert(name: str) -> None:
    hint, values = HINTS[name]
    shape, schema = shape_of(hint)
    jsonschema.Draft202012Validator.check_schema(schema)
    for value in values:
        jsonschema.Draft202012Validator(schema).validate(value)
        shape.convert(value)


@pytest.mark.slow
@examples(1000)
@given(st.sampled_from(sorted(HINTS)).flatmap(lambda name: st.tuples(st.just(name), _alike(name))))
def test_a_value_converts_exactly_when_it_fits_the_schema(case: tuple[str, Json]) -> None:
    name, value = case
    shape, validator = _judges(name)
    try:
        shape.convert(value)
        converts = True
    except Mismatch:
        converts = False
    assert converts == validator.is_valid(value)


def _alike(name: str) -> st.SearchStrategy[Json]:
    return st.sampled_from(HINTS[name][1]).flatmap(altered)


@cache
def _judges(name: str) -> tuple[Shape, jsonschema.Draft202012Validator]:
    shape, schema = shape_of(HINTS[name][0])
    return shape, jsonschema.Draft202012Validator(schema)


def test_values_become_what_the_hints_say() -> None:
    def converted(hint: Any, value: Json) -> Any:
        return shape_of(hint)[0].convert(value)

    assert converted(int, 4.0) == 4
    assert type(converted(int, Decimal("4.0"))) is int
    assert type(converted(float, 1)) is float
    assert type(converted(float | int, 1)) is int
    assert type(converted(Any, Decimal("1.5"))) is float
    assert converted(Color, "red") is Color.RED
    assert converted(Odd, "LINE") is Odd.LINE
    assert converted(Literal[1, True], True) is True
    assert converted(set[int], [1, 2]) == {1, 2}
    assert converted(tuple[int, str], [1, "a"]) == (1, "a")
    assert converted(dict[int, str], {"7": "a"}) == {7: "a"}
    assert converted(Tree, {"value": 1, "children": [{"value": 2}]}) == Tree(1, [Tree(2)])
    assert converted(Box[Color], {"content": "red"}) == Box(Color.RED)
    assert converted(Point, {"x": 1}) == Point(1.0, 0.0)
    assert converted(Entry, {"key": "a", "inner": [{"key": "b"}]}) == Entry("a", 1, [Entry("b")])
    assert converted(Item, {"name": "a", "price": 1}) == Item(name="a", price=1.0)
    assert converted(deque[int], [1]) == deque([1])


@pytest.mark.parametrize(
    ("hint", "told", "text", "meant"),
    [
        (datetime, "date-time", "2026-01-31T18:30:00Z", datetime(2026, 1, 31, 18, 30, tzinfo=UTC)),
        (date, "date", "2026-01-31", date(2026, 1, 31)),
        (time, "time", "18:30:00", time(18, 30)),
        (timedelta, "duration", "PT90S", timedelta(seconds=90)),
        (UUID, "uuid", "123e4567-e89b-12d3-a456-426614174000", UUID("123e4567-e89b-12d3-a456-426614174000")),
        (Decimal, "decimal", "12.50", Decimal("12.50")),
        (Path, "path", "a/b", Path("a/b")),
        (bytes, "byte", "AAE=", b"\x00\x01"),
    ],
)
def test_texts_with_a_format(hint: Any, told: str, text: str, meant: object) -> None:
    shape, schema = shape_of(hint)
    assert (schema["type"], schema["format"]) == ("string", told)
    assert shape.convert(text) == meant
    for wrong in ("\0 no", 7, None):
        with pytest.raises(Mismatch):
            shape.convert(wrong)


def test_a_mismatch_says_where_and_what_was_expected() -> None:
    def said(hint: Any, value: Json) -> str:
        with pytest.raises(Mismatch) as caught:
            shape_of(hint)[0].convert(value)
        return str(caught.value)

    assert said(dict[str, list[Place]], {"a": [{"city": 1}]}) == "a[0].city: found 1, expected a string."
    assert said(Entry, {"key": "a", "inner": [{"key": 1}]}) == "inner[0].key: Expected `str`, got `int`."
    assert said(Item, {"name": "a", "price": -1}) == "price: Input should be greater than or equal to 0."
    assert said(Place, {"town": 1}) == '"city" missing.'
    assert said(Even, {"number": 3}) == "it is odd"
    assert "2026-01-31" in said(date | None, "tomorrow")
    assert said(int, Decimal("1e999999999")) == "the number is too large."
    assert len(said(str, {str(number): 0 for number in range(100_000)})) < 100


def test_named_types_are_defined_once() -> None:
    hints = Hints(globals())
    first, second = hints.shape(Tree), hints.shape(list[Tree])
    assert first.schema == {"$ref": "#/$defs/Tree"}
    assert second.schema["items"] == first.schema
    assert list(hints.definitions) == ["Tree"]


def test_types_of_the_same_name_do_not_meet() -> None:
    def make(number: type) -> type:
        return dataclass(type("Same", (), {"__annotations__": {"value": number}, "__module__": __name__}))

    hints = Hints({})
    hints.shape(make(int))
    hints.shape(make(str))
    model = type(
        "Same", (BaseModel,), {"__annotations__": {"inner": "Optional[Same]"}, "inner": None, "__module__": __name__}
    )
    model.model_rebuild(_types_namespace={"Same": model, "Optional": Optional})
    shape = hints.shape(model)
    assert set(hints.definitions) == {"Same", "Same2", "Same3"}
    whole = {**shape.schema, "$defs": hints.definitions}
    assert jsonschema.Draft202012Validator(whole).is_valid({"inner": {"inner": None}})
    assert not jsonschema.Draft202012Validator(whole).is_valid({"inner": {"inner": 1}})


def test_descriptions_come_along() -> None:
    shape, schema = shape_of(Place)
    assert schema["$defs"]["Place"]["description"] == "Somewhere."
    assert schema["$defs"]["Place"]["properties"]["city"]["description"] == "Its name."
    assert "seen" not in schema["$defs"]["Place"]["properties"]
    assert shape.convert({"city": "x"}) == Place("x")
    assert shape_of(Annotated[int, "How many."])[0].schema == {"type": "integer", "description": "How many."}


@pytest.mark.parametrize(
    "hint", [Refusing, typing.Callable[[], int], type[int], dict[float, int], complex, Literal[b"x"]]
)
def test_what_json_cannot_say_is_refused(hint: Any) -> None:
    with pytest.raises(Unsupported, match="no form in JSON"):
        shape_of(hint)


def test_an_unknown_name_is_reported() -> None:
    with pytest.raises(Unsupported, match="'Missing'"):
        Hints({}).shape("Missing")


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


def test_dataclasses_have_their_defaults_and_descriptions_in_the_schema() -> None:
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
def test_generated_docstrings_are_left_out(kind: Any) -> None:
    hints = Hints(globals())
    kind = dataclass(type("Bare", (), {"__annotations__": {"x": "int"}})) if kind is Card else kind
    hints.shape(kind)
    (told,) = hints.definitions.values()
    assert "description" not in told
