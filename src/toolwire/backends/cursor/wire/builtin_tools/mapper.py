"""Built-in execs as calls of the tools that this client has.

The model may use the server's own tools whatever the client offers; a client has its own for the same things, by other names and with
other arguments. The exec's wish is written into the first tool of the client that is known for it, by the schema of that tool, and
only if the finished arguments certainly fit it. Where there is none, but a shell, a command does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from .....types import Json, JsonObject, Tool, ToolResult
from ..execs import Exec, answered
from .commands import command_of, in_folder
from .requests import ABILITIES, DEMANDED, Ability, Wish, wish_of
from .results import Call, Known, results_of

_PARTS = re.compile(r"__|[./:]")
_ZERO_BASED = re.compile(r"0-based|zero-based|0-indexed|zero-indexed|base ?zero", re.IGNORECASE)
_END_OF_FILE = 100_000
_ROOM = 200_000  # tokens; clients cap it as they like
_MILLISECONDS = re.compile(r"ms\Z|millis|\bms\b", re.IGNORECASE)
_SECONDS = re.compile(r"second|\bsecs?\b|_secs?\Z", re.IGNORECASE)


class Borrowed(Struct, frozen=True):
    """A call of a client's tool; answer makes of its result the messages that answer the exec."""

    name: str
    args: JsonObject
    answer: Callable[[ToolResult], list[bytes]]
    namespace: str = ""


def borrowed(exec: Exec, tools: Sequence[Tool], fits: Fits, known: Known | None = None) -> Borrowed | None:
    """None: the client has no tool for it. known is the memory of a run, for clients that show no file twice."""
    wish = wish_of(exec)
    if wish is None:
        return None
    for tool in _tools_for(wish.ability, tools):
        if (args := _arguments(wish, tool)) is not None and fits(tool, args):
            return _borrowed(exec, Call(wish, tool, by_shell=False), args, known)
    command = command_of(wish)
    if wish.ability == "shell" or command is None:
        return None
    for tool in _tools_for("shell", tools):
        args = _arguments(Wish("shell", {"command": command, "room": _ROOM}), tool)
        if args is not None and fits(tool, args):
            return _borrowed(exec, Call(wish, tool, by_shell=True), args, known)
    return None


def _borrowed(exec: Exec, call: Call, args: JsonObject, known: Known | None) -> Borrowed:
    memory = Known() if known is None else known

    def answer(result: ToolResult) -> list[bytes]:
        return answered(exec, *results_of(exec, call, result, memory))

    return Borrowed(call.tool.name, args, answer, call.tool.namespace)


def _tools_for(ability: str, tools: Sequence[Tool]) -> Iterator[Tool]:
    """In the order of the table; those that some server has put its own name before come last."""
    usable = [tool for tool in tools if tool.kind in ("function", "typed") and not tool.is_deferred and tool.schema]
    for name in ABILITIES[ability].tools:
        yield from (tool for tool in usable if tool.name.casefold() == name)
    for name in ABILITIES[ability].tools:
        yield from (tool for tool in usable if _PARTS.split(tool.name.casefold())[-1] == name != tool.name.casefold())


def _arguments(wish: Wish, tool: Tool) -> JsonObject | None:
    """None where the tool has no room for what is needed, or demands what nobody knows."""
    ability, schema = ABILITIES[wish.ability], tool.schema or {}
    properties = properties_of(schema)
    values = _adapted(wish, ability, properties)
    if values is None:
        return None
    args: JsonObject = {}
    for name, value in values.items():
        place = _place(ability, name, properties)
        if place is not None and (fitted := _fitted(name, value, place, properties[place])) is not None:
            args[place] = fitted
        elif name in ability.needed or name in ability.narrowing:
            return None
    for name in required_of(schema):
        if name not in args:
            if name not in DEMANDED:
                return None
            args[name] = DEMANDED[name]
    return args


def _place(ability: Ability, name: str, properties: JsonObject) -> str | None:
    return next((place for place in ability.parameters.get(name, ()) if place in properties), None)


def _adapted(wish: Wish, ability: Ability, properties: dict[str, JsonObject]) -> dict[str, Any] | None:
    """The values as this tool can take them; None where it cannot."""
    values = dict(wish.values)
    match wish.ability:
        case "shell":
            if (folder := values.get("workdir")) and _place(ability, "workdir", properties) is None:
                values["command"] = in_folder(values["command"], values.pop("workdir") and folder)
        case "read":
            return _ranged(values, ability, properties)
        case "write":
            return values if isinstance(values["content"], str) else None
        case "edit":
            return _edited(values, ability, properties)
        case "grep":
            if values.get("ignore_case") and _place(ability, "ignore_case", properties) is None:
                values["pattern"] = f"(?i){values['pattern']}"
        case "list":
            if values["path"] == "." and _place(ability, "path", properties) is None:
                del values["path"]
    return values


def _ranged(values: dict[str, Any], ability: Ability, properties: dict[str, JsonObject]) -> dict[str, Any]:
    """Lines are counted from 1 here; one that counts from the end is left out, and the whole is read."""
    first, limit = values.pop("first", None), values.pop("limit", None)
    if first is not None and first < 0:
        return values
    begins, ends = _place(ability, "first", properties), _place(ability, "last", properties)
    if begins is not None and (first or ends):
        about = f"{begins} {properties[begins].get('description', '')}"
        base = 0 if _ZERO_BASED.search(about) or begins.endswith("BaseZero") else 1
        values["first"] = max(first or 1, 1) - 1 + base
        if ends:
            values["last"] = values["first"] + (limit or _END_OF_FILE) - 1
    if limit:
        values["limit"] = limit
    return values


def _edited(values: dict[str, Any], ability: Ability, properties: dict[str, JsonObject]) -> dict[str, Any] | None:
    """Several passages at once, or one; several calls for one exec could leave a file half edited."""
    edits = values.pop("edits")
    place = _place(ability, "edits", properties)
    if place is not None:
        inner = properties[place].get("items")
        members = properties_of(inner)
        old, new = _place(ability, "old", members), _place(ability, "new", members)
        if edits and old and new:
            return {**values, "edits": [{old: before, new: after} for before, after in edits]}
    old, new = _place(ability, "old", properties), _place(ability, "new", properties)
    if len(edits) != 1 or not old or not new:
        return None
    return {**values, "old": edits[0][0], "new": edits[0][1]}


def _fitted(name: str, value: Any, place: str, schema: JsonObject) -> Json:
    """The value in the type that the schema has; None where that cannot be."""
    types = types_of(schema)
    if name == "timeout":
        return _timed(value, place, schema)
    if isinstance(value, str) and "array" in types and "string" not in types:
        return ["bash", "-lc", value] if name == "command" and place != "commands" else [value]
    return value


def _timed(milliseconds: int, place: str, schema: JsonObject) -> Json:
    about = f"{schema.get('description', '')}"
    most = schema.get("maximum")
    if _MILLISECONDS.search(place) or (not _SECONDS.search(place) and _MILLISECONDS.search(about)):
        value = milliseconds
    elif _SECONDS.search(place) or _SECONDS.search(about):
        value = -(-milliseconds // 1000)
    else:
        return None
    return min(value, int(most)) if isinstance(most, int | float) else value


# Whether arguments certainly fit the schema of a tool. Handed in, because the one judge of schemas belongs to calls.
Fits: TypeAlias = Callable[[Tool, JsonObject], bool]


def properties_of(schema: JsonObject | None) -> dict[str, JsonObject]:
    """The members of an object by name; those whose schema is no object are left out."""
    found = schema.get("properties") if isinstance(schema, dict) else None
    return {name: item for name, item in found.items() if isinstance(item, dict)} if isinstance(found, dict) else {}


def required_of(schema: JsonObject | None) -> list[str]:
    found = schema.get("required") if isinstance(schema, dict) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def types_of(schema: JsonObject) -> frozenset[str]:
    """The types that it names, also as plain alternatives; none if it does not say."""
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        for choice in choices if isinstance(choices, list) else ():
            names = [*names, choice.get("type")] if isinstance(choice, dict) else names
    return frozenset(name for name in names if isinstance(name, str))
