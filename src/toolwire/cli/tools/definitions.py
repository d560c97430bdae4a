"""Reads tool definitions from a file: a request of any dialect, the tool list of an MCP server, or an array of definitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...errors import ConfigError, quote
from ...types import Tool

_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "schema")
_GROUPS = ("functionDeclarations", "function_declarations", "tools")
_MAX_BYTES = 64 << 20


def read_definitions(path: Path) -> tuple[Tool, ...]:
    """Raises ConfigError if there are none."""
    try:
        data = path.read_bytes()[: _MAX_BYTES + 1]
    except OSError as error:
        raise ConfigError(f"{quote(str(path))} cannot be read: {error.strerror}.", where="--file") from None
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise ConfigError(
            f"found no JSON in {quote(str(path))}; expected a request or a tool list.", where="--file"
        ) from None
    tools = tuple(_tools(value.get("tools") if isinstance(value, dict) else value))
    if not tools:
        raise ConfigError(f"found no tools in {quote(str(path))}; expected a request or a tool list.", where="--file")
    return tools


def _tools(items: Any, prefix: str = "") -> Iterator[Tool]:
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        inner = next((item[key] for key in _GROUPS if isinstance(item.get(key), list)), None)
        if inner is not None:  # a namespace, or declarations of Gemini
            yield from _tools(inner, f"{prefix}{item['name']}__" if isinstance(item.get("name"), str) else prefix)
            continue
        wrapped = item.get("function")
        function = wrapped if isinstance(wrapped, dict) else item
        name, about = function.get("name"), function.get("description")
        if isinstance(name, str) and name:
            schema = next((function[key] for key in _SCHEMAS if isinstance(function.get(key), dict)), None)
            yield Tool(name=prefix + name, description=about if isinstance(about, str) else None, schema=schema)
