from __future__ import annotations

import jsonschema_rs
import msgspec
import pytest

from toolwire.tools.workspace import definitions
from toolwire.tools.workspace.grep import Grep
from toolwire.tools.workspace.list import Glob, List
from toolwire.tools.workspace.read import Read
from toolwire.tools.workspace.shell import Command
from toolwire.tools.workspace.write import Edit, Write
from toolwire.types import Tool

pytestmark = pytest.mark.slow

_TOOLS = [
    (definitions.READ, Read),
    (definitions.WRITE, Write),
    (definitions.EDIT, Edit),
    (definitions.LIST, List),
    (definitions.GLOB, Glob),
    (definitions.GREP, Grep),
    (definitions.SHELL, Command),
]


@pytest.mark.parametrize(("tool", "asked"), _TOOLS, ids=lambda value: getattr(value, "name", ""))
def test_a_schema_says_what_the_tool_takes(tool: Tool, asked: type[msgspec.Struct]) -> None:
    assert tool.schema is not None
    jsonschema_rs.validator_for(tool.schema)
    fields = msgspec.structs.fields(asked)
    assert list(tool.schema["properties"]) == [field.name for field in fields]
    assert tool.schema["required"] == [field.name for field in fields if field.required]
    assert tool.schema["additionalProperties"] is False
    assert all(property["description"].endswith((".", "py")) for property in tool.schema["properties"].values())
    assert tool.description
