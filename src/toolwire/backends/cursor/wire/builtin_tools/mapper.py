"""Built-in execs as calls of the client's tools.

The model may use the server's own tools whatever the client offers; a client has its own tools for the same things, with other names
and arguments. The request of an exec is written into the first suitable tool of the client, by the schema of that tool, and only if
the finished arguments certainly fit it. Without a suitable tool, but with a shell, a command does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from .....calls.schemas.keywords import properties_of, required_of, types_of
from .....types import Json, JsonObject, Tool, ToolResult
from ..execs import Exec, answered
from .commands import command_of, in_folder
from .requests import ABILITIES, REQUIRED_DEFAULTS, Ability, ToolRequest, tool_request
from .results import KnownFiles, MappedTool, results_of

# Whether arguments certainly fit the schema of a tool, as `calls/schemas` decides.
Fits: TypeAlias = Callable[[Tool, JsonObject], bool]

_SEPARATOR = re.compile(r"__|[./:]")
_ZERO_BASED = re.compile(r"0-based|zero-based|0-indexed|zero-indexed|base ?zero", re.IGNORECASE)
_END_OF_FILE = 100_000
_MAX_OUTPUT = 200_000  # tokens; clients have limits of their own
_MILLISECONDS = re.compile(r"ms\Z|millis|\bms\b", re.IGNORECASE)
_SECONDS = re.compile(r"second|\bsecs?\b|_secs?\Z", re.IGNORECASE)


class MappedCall(Struct, frozen=True):
    """A call of a client's tool; answer encodes its result as the messages that answer the exec."""

    name: str
    args: JsonObject
    answer: Callable[[ToolResult], list[bytes]]


def map_exec(exec: Exec, tools: Sequence[Tool], fits: Fits, known: KnownFiles | None = None) -> MappedCall | None:
    """None if the client has no tool for it. known: files of the run, for clients that do not show a file twice."""
    request = tool_request(exec)
    if request is None:
        return None
    files = KnownFiles() if known is None else known
    for tool in _tools_for(request.ability, tools):
        if (args := _arguments(request, tool)) is not None and fits(tool, args):
            return _mapped(exec, MappedTool(request, tool, by_shell=False), args, files)
    command = command_of(request)
    if request.ability == "shell" or command is None:
        return None
    for tool in _tools_for("shell", tools):
        args = _arguments(ToolRequest("shell", {"command": command, "max_output": _MAX_OUTPUT}), tool)
        if args is not None and fits(tool, args):
            return _mapped(exec, MappedTool(request, tool, by_shell=True), args, files)
    return None


def _mapped(exec: Exec, mapped: MappedTool, args: JsonObject, files: KnownFiles) -> MappedCall:
    def answer(result: ToolResult) -> list[bytes]:
        return answered(exec, *results_of(exec, mapped, result, files))

    return MappedCall(mapped.tool.name, args, answer)


def _tools_for(ability: str, tools: Sequence[Tool]) -> Iterator[Tool]:
    """In the order of the table; names with the prefix of an MCP server come last."""
    usable = [tool for tool in tools if tool.kind in ("function", "typed") and not tool.is_deferred and tool.schema]
    for name in ABILITIES[ability].tools:
        yield from (tool for tool in usable if tool.name.casefold() == name)
    for name in ABILITIES[ability].tools:
        yield from (
            tool for tool in usable if _SEPARATOR.split(tool.name.casefold())[-1] == name != tool.name.casefold()
        )


def _arguments(request: ToolRequest, tool: Tool) -> JsonObject | None:
    """None if the tool has no parameter for a needed value, or requires an unknown one."""
    ability, schema = ABILITIES[request.ability], tool.schema or {}
    properties = _properties(schema)
    values = _adapted(request, ability, properties)
    if values is None:
        return None
    args: JsonObject = {}
    for name, value in values.items():
        parameter = _parameter(ability, name, properties)
        if parameter is not None and (typed := _typed(name, value, parameter, properties[parameter])) is not None:
            args[parameter] = typed
        elif name in ability.needed or name in ability.narrowing:
            return None
    for name in required_of(schema):
        if name not in args:
            if name not in REQUIRED_DEFAULTS:
                return None
            args[name] = REQUIRED_DEFAULTS[name]
    return args


def _parameter(ability: Ability, name: str, properties: JsonObject) -> str | None:
    return next((parameter for parameter in ability.parameters.get(name, ()) if parameter in properties), None)


def _adapted(request: ToolRequest, ability: Ability, properties: dict[str, JsonObject]) -> dict[str, Any] | None:
    """The values as this tool can take them; None if it cannot."""
    values = dict(request.values)
    match request.ability:
        case "shell":
            if values.get("workdir") and _parameter(ability, "workdir", properties) is None:
                values["command"] = in_folder(values["command"], values.pop("workdir"))
        case "read":
            return _ranged(values, ability, properties)
        case "write":
            return values if isinstance(values["content"], str) else None
        case "edit":
            return _edited(values, ability, properties)
        case "grep":
            if values.get("ignore_case") and _parameter(ability, "ignore_case", properties) is None:
                values["pattern"] = f"(?i){values['pattern']}"
        case "list":
            if values["path"] == "." and _parameter(ability, "path", properties) is None:
                del values["path"]
    return values


def _ranged(values: dict[str, Any], ability: Ability, properties: dict[str, JsonObject]) -> dict[str, Any]:
    """Lines count from 1 here. A range that counts from the end is dropped, and the whole file is read."""
    first, limit = values.pop("first", None), values.pop("limit", None)
    if first is not None and first < 0:
        return values
    start, end = _parameter(ability, "first", properties), _parameter(ability, "last", properties)
    if start is not None and (first or end):
        about = f"{start} {properties[start].get('description', '')}"
        base = 0 if _ZERO_BASED.search(about) or start.endswith("BaseZero") else 1
        values["first"] = max(first or 1, 1) - 1 + base
        if end:
            values["last"] = values["first"] + (limit or _END_OF_FILE) - 1
    if limit:
        values["limit"] = limit
    return values


def _edited(values: dict[str, Any], ability: Ability, properties: dict[str, JsonObject]) -> dict[str, Any] | None:
    """Several passages in one call, or a single one; several calls for one exec might edit a file only in part."""
    edits = values.pop("edits")
    several = _parameter(ability, "edits", properties)
    if several is not None:
        members = _properties(properties[several].get("items"))
        old, new = _parameter(ability, "old", members), _parameter(ability, "new", members)
        if edits and old and new:
            return {**values, "edits": [{old: before, new: after} for before, after in edits]}
    old, new = _parameter(ability, "old", properties), _parameter(ability, "new", properties)
    if len(edits) != 1 or not old or not new:
        return None
    return {**values, "old": edits[0][0], "new": edits[0][1]}


def _typed(name: str, value: Any, parameter: str, schema: JsonObject) -> Json:
    """The value in the type that the schema has; None if that is impossible."""
    if name == "timeout":
        return _timeout(value, parameter, schema)
    choices = [choice for key in ("anyOf", "oneOf") for choice in schema.get(key) or ()]
    types = types_of(schema).union(*map(types_of, choices))
    if isinstance(value, str) and "array" in types and "string" not in types:
        return ["bash", "-lc", value] if name == "command" and parameter != "commands" else [value]
    return value


def _timeout(milliseconds: int, parameter: str, schema: JsonObject) -> Json:
    about = f"{schema.get('description', '')}"
    maximum = schema.get("maximum")
    if _MILLISECONDS.search(parameter) or (not _SECONDS.search(parameter) and _MILLISECONDS.search(about)):
        value = milliseconds
    elif _SECONDS.search(parameter) or _SECONDS.search(about):
        value = -(-milliseconds // 1000)
    else:
        return None
    return min(value, int(maximum)) if isinstance(maximum, int | float) else value


def _properties(schema: Json) -> dict[str, JsonObject]:
    found = properties_of(schema) if isinstance(schema, dict) else {}
    return {name: item for name, item in found.items() if isinstance(item, dict)}
