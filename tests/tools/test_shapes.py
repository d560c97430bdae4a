"""The pieces that schemas are made of."""

from __future__ import annotations

import enum
from decimal import Decimal

import pytest

from toolwire.tools.shapes import FORMATS, SCALARS, Mismatch, choices, describe_value, enum_scalars, scalar_of


def test_booleans_are_no_numbers_and_numbers_no_booleans() -> None:
    for kind, value in ((int, True), (float, False), (bool, 1), (str, 1)):
        with pytest.raises(Mismatch):
            SCALARS[kind].convert(value)


def test_choices_distinguish_true_from_one() -> None:
    shape = choices([(1, "one"), (True, "yes")])
    assert shape.schema == {"enum": [1, True]}
    assert (shape.convert(1), shape.convert(True), shape.convert(Decimal("1.0"))) == ("one", "yes", "one")
    with pytest.raises(Mismatch, match='found "2", expected one of 1, true'):
        shape.convert("2")
    with pytest.raises(Mismatch, match="an array of 0"):
        shape.convert([])


def test_enums_by_value_or_by_name() -> None:
    class Plain(enum.Enum):
        A = "a"

    class Text(enum.StrEnum):
        A = "a"

    class Strange(enum.Enum):
        A = object()

    assert enum_scalars(Plain) == {Plain.A: "a"}
    assert type(enum_scalars(Text)[Text.A]) is str
    assert enum_scalars(Strange) == {Strange.A: "A"}
    assert scalar_of(Text.A) == "a"
    with pytest.raises(ValueError, match="bytes"):
        scalar_of(b"")


def test_a_mismatch_has_the_path_of_the_value() -> None:
    mismatch = Mismatch("odd.").inside("name").inside(3).inside("items")
    assert str(mismatch) == "items[3].name: odd."
    assert len(str(Mismatch("odd.").inside("x" * 10_000))) < 300


def test_values_in_messages_are_short() -> None:
    values = ["x" * 10_000, 10**1000, {"a": 1}, [1], None, True, 1.5]
    assert all(len(describe_value(value)) < 300 for value in values)
    assert describe_value(True) == "true"


def test_invalid_base64_is_reported() -> None:
    with pytest.raises(Mismatch, match="base64"):
        FORMATS[bytes].convert("a!")
