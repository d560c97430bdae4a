"""What functions give back, as the model reads it."""

from __future__ import annotations

import base64
import enum
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from toolwire.tools.base import Output
from toolwire.tools.results import describe_error, output_of
from toolwire.types import Media, Opaque, Text

PNG = b"\x89PNG\r\n\x1a\n rest"


class Model(BaseModel):
    day: date


class Struct(msgspec.Struct):
    value: int


@dataclass
class Data:
    model: Model
    amount: Decimal


class Color(enum.Enum):
    RED = "red"


class Spoken:
    def __str__(self) -> str:
        return "spoken" + "!" * 1_000_000


class Silent:
    pass


def text_of(value: object) -> str:
    output = output_of(value)
    assert not output.is_error
    (part,) = output.parts
    assert isinstance(part, Text)
    return part.text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("hello", "hello"),
        (None, "(no output)"),
        ("", "(no output)"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ({1: "a"}, '{"1":"a"}'),
        ([], "[]"),
        ({2}, "[2]"),
        (Model(day=date(2026, 1, 31)), '{"day":"2026-01-31"}'),
        (Struct(4), '{"value":4}'),
        (Data(Model(day=date(2026, 1, 31)), Decimal("1.50")), '{"model":{"day":"2026-01-31"},"amount":"1.50"}'),
        ([Model(day=date(2026, 1, 31))], '[{"day":"2026-01-31"}]'),
        (Color.RED, '"red"'),
        ({"path": Path("a/b")}, '{"path":"a/b"}'),
        (b"plain", "plain"),
        (b"", "(no output)"),
        (b"\xff\x00", "(2 bytes that are neither text nor an image)"),
        (Silent(), '"(Silent)"'),
        ((number for number in (1, 2)), '"(generator)"'),
        ("lone \ud800", "lone \ud800"),
        ({"a": "lone \ud800"}, '{"a":"lone \\ud800"}'),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert text_of(value) == text


def test_images_are_shown() -> None:
    image = Media(kind="image", mime="image/png", data=base64.b64encode(PNG).decode())
    assert output_of(PNG).parts == (image,)
    assert output_of(bytearray(PNG)).parts == (image,)
    (web,) = output_of(b"RIFF1234WEBPdata").parts
    assert isinstance(web, Media)
    assert web.mime == "image/webp"


def test_parts_pass_as_they_are() -> None:
    parts = (Text(text="a"), Media(kind="image", url="https://example.invalid/a.png"), Opaque(dialect="x", value={}))
    assert output_of(parts).parts == parts
    assert output_of(list(parts)).parts == parts
    assert output_of(parts[1]).parts == parts[1:2]
    assert output_of(["words", parts[1], {"a": 1}]).parts == (Text(text="words"), parts[1], Text(text='{"a":1}'))
    ready = Output.of_text("done", is_error=True)
    assert output_of(ready) is ready


def test_a_long_text_of_an_object_is_cut() -> None:
    assert len(text_of(Spoken())) < 3000


def test_what_json_cannot_say_is_an_error() -> None:
    circle: list[Any] = []
    circle.append(circle)
    for value in (circle, {(1, 2): 3}):
        output = output_of(value)
        assert output.is_error
        assert "cannot be expressed as JSON" in output.parts[0].text  # type: ignore[union-attr]


def test_exceptions_as_text() -> None:
    assert describe_error(ValueError("odd")) == "ValueError: odd"
    assert describe_error(ValueError()) == "ValueError"
    assert describe_error(ExceptionGroup("some", [ExceptionGroup("inner", [OSError("full")])])) == "OSError: full"
    assert describe_error(ExceptionGroup("some", [OSError("a"), OSError("b")])).startswith("ExceptionGroup: some")
