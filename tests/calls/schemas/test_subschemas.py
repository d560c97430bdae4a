"""Which schemas speak about a place."""

from __future__ import annotations

import pytest

from toolwire.calls.schemas.subschemas import declared, schemas_at, types_of

pytestmark = pytest.mark.slow

SCHEMA = {
    "properties": {
        "list": {"type": "array", "prefixItems": [{"type": "null"}], "items": {"$ref": "#/$defs/r0"}},
        "any": {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"$ref": "#/$defs/r0"}]},
    },
    "additionalProperties": {"type": "boolean"},
    "$defs": {"r0": {"type": "object", "properties": {"y": {"$ref": "#"}}}},
}


def test_paths_go_through_lists_references_and_unions() -> None:
    assert [types_of(found) for found in schemas_at(SCHEMA, ("list", 0))] == [{"null"}]
    assert declared(SCHEMA, ("list", 5)) == {"y"}
    assert declared(SCHEMA, ("any",)) == {"x", "y"}
    assert declared(SCHEMA, ("list", 1, "y")) == {"list", "any"}
    assert [types_of(found) for found in schemas_at(SCHEMA, ("other",))] == [{"boolean"}]
    assert schemas_at(SCHEMA, ("list", 1, "z")) == []


def test_circles_end() -> None:
    schema = {"$ref": "#/$defs/r0", "$defs": {"r0": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/r0"}]}}}
    assert len(schemas_at(schema, ())) < 6
