"""Types whose library knows their schema."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import jsonschema
import msgspec
import pytest
from pydantic import BaseModel, Field

from toolwire.tools.foreign import Definitions, pydantic_shape, struct_shape
from toolwire.tools.shapes import Mismatch


class Cat(msgspec.Struct, tag=True, rename="camel"):
    lives_left: Annotated[int, msgspec.Meta(ge=0)] = 9


class Dog(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    born: date
    friends: dict[str, Cat | Dog] = {}


class Node(BaseModel):
    model_config = {"strict": True}
    day: date
    next: Node | None = None
    weights: tuple[float, ...] = ()


class Holder(BaseModel):
    node: Node
    count: int = Field(alias="howMany")


def whole(definitions: Definitions, schema: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**schema, "$defs": definitions.schemas})


def test_structs_with_tags_names_and_limits() -> None:
    definitions = Definitions()
    shape = struct_shape(Dog, definitions)
    good = {"type": "Dog", "born": "2020-01-31", "friends": {"tom": {"type": "Cat", "livesLeft": Decimal("3.0")}}}
    assert shape.convert(good) == Dog(date(2020, 1, 31), {"tom": Cat(3)})
    assert whole(definitions, shape.schema).is_valid({"type": "Dog", "born": "2020-01-31"})
    for bad in ({"type": "Cat"}, {"type": "Dog", "born": "2020-01-31", "extra": 1}):
        assert not whole(definitions, shape.schema).is_valid(bad)
        with pytest.raises(Mismatch):
            shape.convert(bad)
    with pytest.raises(Mismatch) as caught:
        shape.convert({"type": "Dog", "born": "2020-01-31", "friends": {"tom": {"type": "Cat", "livesLeft": -1}}})
    assert caught.value.where[0] == "friends"


def test_models_are_read_as_json_and_not_as_python() -> None:
    definitions = Definitions()
    shape = pydantic_shape(Holder, definitions)
    value = {"node": {"day": "2026-01-31", "next": {"day": "2026-02-01"}, "weights": [1, 2.5]}, "howMany": 2}
    assert whole(definitions, shape.schema).is_valid(value)
    made = shape.convert(value)
    assert made.node.next.day == date(2026, 2, 1)
    assert made.count == 2
    with pytest.raises(Mismatch) as caught:
        shape.convert({"node": {"day": "x"}, "howMany": 2})
    assert caught.value.where == ("node", "day")


def test_decimals_of_the_wire_reach_models() -> None:
    class Amount(BaseModel):
        value: Decimal

    shape = pydantic_shape(Amount, Definitions())
    assert shape.convert({"value": Decimal("0.30")}).value == Decimal("0.3")


def test_definitions_keep_their_names_apart() -> None:
    definitions = Definitions()
    assert [definitions.label("A"), definitions.label("A"), definitions.label("B[int]")] == ["A", "A2", "B_int_"]
    adopted = definitions.adopt(object(), {"$ref": "#/$defs/A"}, {"A": {"items": {"$ref": "#/$defs/A"}}})
    assert adopted == {"$ref": "#/$defs/A3"}
    assert definitions.schemas["A3"] == {"items": {"$ref": "#/$defs/A3"}}


def test_the_same_type_is_adopted_once() -> None:
    definitions = Definitions()
    first, second = struct_shape(Dog, definitions), struct_shape(Dog, definitions)
    assert first.schema == second.schema
    assert len(definitions.schemas) == 2
