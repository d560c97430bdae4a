"""Tool definitions from a file of any form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolwire.cli.tools.definitions import read_definitions
from toolwire.errors import ConfigError

SCHEMA = {"type": "object"}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"tools": [{"type": "function", "function": {"name": "a", "parameters": SCHEMA}}]}, "a"),
        ({"tools": [{"type": "function", "name": "a", "parameters": SCHEMA}]}, "a"),
        ({"tools": [{"name": "a", "input_schema": SCHEMA}]}, "a"),
        ({"tools": [{"functionDeclarations": [{"name": "a", "parameters": SCHEMA}]}]}, "a"),
        ({"tools": [{"type": "namespace", "name": "n", "tools": [{"name": "a", "parameters": SCHEMA}]}]}, "n__a"),
        ({"tools": [{"name": "a", "inputSchema": SCHEMA}]}, "a"),
        ([{"name": "a", "schema": SCHEMA}, 5, {"name": 5}], "a"),
    ],
)
def test_every_form(tmp_path: Path, value: Any, name: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(value))
    [tool] = read_definitions(path)
    assert (tool.name, tool.schema) == (name, SCHEMA)


@pytest.mark.parametrize("text", ["", "{}", "5", '{"tools": []}', "[" * 5000])
def test_a_file_without_tools_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tools.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_definitions(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_definitions(tmp_path / "none.json")
