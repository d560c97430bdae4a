"""Names without their spelling, and all names of a schema."""

from __future__ import annotations

import pytest

from toolwire.calls.arguments.property_names import all_names, same_name

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "name", ["max_results", "maxResults", "MAX-RESULTS", " max results", '"max.results"', "'maxResults'"]
)
def test_spelling_makes_no_difference(name: str) -> None:
    assert same_name(name) == "maxresults"


def test_names_at_any_depth_are_found_and_properties_called_properties_too() -> None:
    schema = {
        "properties": {"a": {"items": {"properties": {"b": {}}}}, "properties": {"type": "string"}},
        "$defs": {"x": {"anyOf": [{"properties": {"c": {}}}, True]}},
    }
    assert all_names(schema) == {"a", "b", "c", "properties"}


def test_a_schema_without_end_is_left() -> None:
    schema: dict[str, object] = {"properties": {"a": {}}}
    schema["items"] = schema
    assert all_names(schema) == {"a"}
