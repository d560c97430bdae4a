from __future__ import annotations

import jsonschema_rs

from toolwire.calls.schemas.examples import example_of
from toolwire.check.tool_schemas import schema_tools


def test_every_schema_is_valid_and_has_an_example() -> None:
    tools = schema_tools(is_quick=False)
    assert len({tool.name for _, tool in tools}) == len(tools) == 25
    for _, tool in tools:
        assert tool.schema is not None
        jsonschema_rs.meta.validate(tool.schema)
        assert jsonschema_rs.is_valid(tool.schema, example_of(tool.schema))


def test_a_quick_check_has_the_most_common_families() -> None:
    assert [family for family, _ in schema_tools(is_quick=True)] == [
        "text",
        "integer",
        "boolean",
        "enum",
        "list",
        "nested",
    ]
