"""What both OpenAI APIs reject in tools, names, ids and numbers, with their own messages."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.contract.strict.refusals import Refused

_NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")
_LONGEST_NAME = 64
_MOST_TOOLS = 128


def check_name(name: Any, where: str) -> None:
    if not isinstance(name, str) or not name:
        raise Refused(
            f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty string instead.",
            where,
            "empty_string",
        )
    if not _NAME.match(name):
        raise Refused(
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            where,
            "invalid_value",
        )
    check_length(name, _LONGEST_NAME, where)


def check_length(text: Any, longest: int, where: str) -> None:
    if not isinstance(text, str):
        raise Refused(
            f"Invalid type for '{where}': expected a string, but got {_kind(text)} instead.", where, "invalid_type"
        )
    if not text:
        raise Refused(
            f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty string instead.",
            where,
            "empty_string",
        )
    if len(text) > longest:
        raise Refused(
            f"Invalid '{where}': string too long. Expected a string with maximum length {longest}, but got a string with "
            f"length {len(text)} instead.",
            where,
            "string_above_max_length",
        )


def check_arguments(arguments: Any, where: str) -> None:
    """OpenAI itself accepts any string; Kimi, vLLM and others parse it."""
    if not isinstance(arguments, str):
        raise Refused(
            f"Invalid type for '{where}': expected a string, but got {_kind(arguments)} instead.", where, "invalid_type"
        )
    try:
        value = json.loads(arguments)
    except ValueError:
        raise Refused(f"function.arguments must be valid JSON: {where}", where) from None
    if not isinstance(value, dict):
        raise Refused(f"function.arguments must be a JSON object: {where}", where)


def check_temperature(body: dict[str, Any]) -> None:
    temperature = body.get("temperature")
    if temperature is not None and temperature > 2:
        raise Refused(
            f"Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got {temperature} instead.",
            "temperature",
            "decimal_above_max_value",
        )


def check_functions(functions: list[dict[str, Any]], total: int | None, where: str) -> list[str]:
    """The names of these functions; total is the number of tools, None if they are no tools."""
    if total == 0:
        raise Refused(
            "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            "tools",
            "empty_array",
        )
    if (total or 0) > _MOST_TOOLS:
        raise Refused(
            f"Invalid 'tools': array too long. Expected an array with maximum length {_MOST_TOOLS}, but got an array with "
            f"length {total} instead.",
            "tools",
            "array_above_max_length",
        )
    names = []
    for index, function in enumerate(functions):
        check_name(function.get("name"), where.format(index=index) + ".name")
        names.append(function["name"])
        _check_schema(function, where.format(index=index) + ".parameters")
    if len(set(names)) != len(names):
        raise Refused("Invalid 'tools': tool names must be unique.", "tools", "invalid_value")
    return names


def check_choice(choice: Any, names: list[str]) -> None:
    if choice is None:
        return
    if not names:
        raise Refused(
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", "tool_choice"
        )
    if isinstance(choice, dict):
        named = choice.get("function") if isinstance(choice.get("function"), dict) else choice
        if choice.get("type") in ("function", "custom") and named.get("name") not in names:
            raise Refused(f"Tool choice '{named.get('name')}' not found in 'tools' parameter.", "tool_choice")


def _check_schema(function: dict[str, Any], where: str) -> None:
    schema, name = function.get("parameters"), function["name"]
    if schema is None:
        return
    kind = schema.get("type")
    if kind != "object":
        raise Refused(
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: "
            f"{json.dumps(kind)}'.",
            where,
            "invalid_function_parameters",
        )
    if not isinstance(schema.get("properties"), dict):
        raise Refused(
            f"Invalid schema for function '{name}': In context=(), object schema missing properties.",
            where,
            "invalid_function_parameters",
        )
    if function.get("strict") and schema.get("additionalProperties") is not False:
        raise Refused(
            f"Invalid schema for function '{name}': In context=(), 'additionalProperties' is required to be supplied and to "
            "be false.",
            where,
            "invalid_function_parameters",
        )


def _kind(value: Any) -> str:
    return {dict: "an object", list: "an array", bool: "a boolean", type(None): "null"}.get(type(value), "an integer")
