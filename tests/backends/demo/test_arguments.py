"""Values of a prompt go to the properties that they fit."""

from __future__ import annotations

from typing import Any

from toolwire.backends.demo.arguments import PromptArguments
from toolwire.backends.demo.prompt_match import hints_of
from toolwire.calls.schemas.examples import example_of

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def arguments(prompt: str, required: tuple[str, ...] = (), **properties: Any) -> Any:
    schema = {"type": "object", "properties": properties, "required": list(required or properties)}
    return example_of(schema, PromptArguments(hints_of(prompt, "/work")))


def test_texts_numbers_and_options_are_used_where_they_fit() -> None:
    unit = {"enum": ["metric", "imperial"]}
    found = arguments(
        "Weather in New York for 3 days, imperial", ("city",), city=TEXT, days={"type": "integer"}, unit=unit
    )
    assert found == {"city": "New York", "days": 3, "unit": "imperial"}
    assert arguments('look at "San Marino" now', city=TEXT) == {"city": "San Marino"}
    assert arguments("Write to ann@example.com", to={"type": "string", "format": "email"}) == {"to": "ann@example.com"}


def test_each_value_is_used_once() -> None:
    assert arguments("add 2 and 3.5", a=NUMBER, b=NUMBER) == {"a": 2, "b": 3.5}
    assert arguments("sum of 1, 2 and 3", v={"type": "array", "items": NUMBER}) == {"v": [1, 2, 3]}


def test_a_value_after_the_name_of_its_property_is_taken() -> None:
    assert arguments("call it with count=7 and note: hello", count=NUMBER, note=TEXT) == {"count": 7, "note": "hello"}


def test_file_names_are_paths() -> None:
    absolute = {"type": "string", "description": "Absolute path of the file."}
    assert arguments("Please read README.md", path=TEXT) == {"path": "README.md"}
    assert arguments("Please read README.md", filePath=absolute) == {"filePath": "/work/README.md"}
    assert arguments("List the files", directory=TEXT) == {"directory": "/work"}


def test_lines_count_from_one_and_a_limit_leaves_room() -> None:
    assert arguments("read it", startLine=NUMBER, limit=NUMBER) == {"startLine": 1, "limit": 100}


def test_quoted_texts_are_no_items_of_a_list_of_dates() -> None:
    dates = {"type": "array", "prefixItems": [{"type": "string", "format": "date"}], "minItems": 1}
    assert arguments('run "x" on them', days=dates) == {"days": ["2025-01-01"]}
