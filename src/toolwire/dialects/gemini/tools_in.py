"""Gemini: tools in, and the choice among them."""

from __future__ import annotations

from typing import Any

from ...errors import BadRequest
from ...types import JsonObject, Source, Tool, ToolChoice
from ...wire.fields import list_or_none, need_name, need_object, object_or_none, rest, text_or_none, wrong
from .shapes import NAME, camel

_DECLARATION = frozenset({"name", "description", "parameters", "parametersJsonSchema"})
_CONFIG = "toolConfig.functionCallingConfig"
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})


def tools_in(top: JsonObject) -> tuple[Tool, ...]:
    """One entry may declare functions and name tools of the provider as well."""
    found: list[Tool] = []
    listed = top.get("tools")
    for index, given in enumerate([listed] if isinstance(listed, dict) else list_or_none(top, "tools") or []):
        where = f"tools[{index}]"
        item = camel(need_object(given, where))
        for number, declared in enumerate(list_or_none(item, "functionDeclarations", where) or []):
            found.append(_function(declared, f"{where}.functionDeclarations[{number}]"))
        found += [
            Tool(name=key, kind="hosted", source=Source(NAME, {key: value}))
            for key, value in item.items()
            if key != "functionDeclarations" and value is not None
        ]
    return tuple(found)


def choice_in(config: JsonObject | None) -> ToolChoice | None:
    """config is the tool config, its members named as in answers."""
    if config is None or (given := object_or_none(config, "functionCallingConfig", "toolConfig")) is None:
        return None
    calling = camel(given)
    mode = (text_or_none(calling, "mode", _CONFIG) or "AUTO").upper()
    names = tuple(list_or_none(calling, "allowedFunctionNames", _CONFIG) or ())
    if not all(isinstance(name, str) and name for name in names):
        raise wrong(f"{_CONFIG}.allowedFunctionNames", list(names), "an array of names")
    source = Source(NAME, given)
    match mode:
        case "NONE":
            return ToolChoice(mode="none", source=source)
        case "ANY" if len(names) == 1:
            return ToolChoice(mode="named", names=names, source=source)
        case "ANY" if names:
            return ToolChoice(mode="allowed", names=names, is_required=True, source=source)
        case "ANY":
            return ToolChoice(mode="required", source=source)
        case "VALIDATED" if names:
            return ToolChoice(mode="allowed", names=names, source=source)
        case "AUTO" | "VALIDATED" | "MODE_UNSPECIFIED":
            return ToolChoice(mode="auto", source=source)
        case _:
            raise wrong(f"{_CONFIG}.mode", mode, "one of AUTO, ANY, NONE, VALIDATED")


def schema_of(value: JsonObject, where: str) -> JsonObject:
    """A schema in the API's own form as JSON Schema: types in small letters, null among the types, numbers as numbers."""
    try:
        schema: JsonObject = _schema(value)
    except RecursionError:
        raise BadRequest("it nests too deep; expected a schema that people could read.", where=where) from None
    return schema


def _schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = camel(value)
    written: JsonObject = {}
    for key, item in value.items():
        if key == "properties" and isinstance(item, dict):
            written[key] = {name: _schema(inner) for name, inner in item.items()}
        elif key in ("items", "anyOf", "additionalProperties", "prefixItems"):
            written[key] = _schema(item)
        elif key == "type" and isinstance(item, str):
            written[key] = item.lower()
        elif key in _COUNTS and isinstance(item, str) and item.isascii() and item.isdigit() and len(item) < 16:
            written[key] = int(item)
        elif key == "example":
            written["examples"] = [item]
        elif key not in ("nullable", "propertyOrdering"):
            written[key] = item
    return _nullable(written) if value.get("nullable") is True else written


def _nullable(schema: JsonObject) -> JsonObject:
    if isinstance(kind := schema.get("type"), str):
        schema = {**schema, "type": [kind, "null"]}
        if isinstance(allowed := schema.get("enum"), list) and None not in allowed:
            schema["enum"] = [*allowed, None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]} if schema else schema


def _function(given: Any, where: str) -> Tool:
    item = camel(need_object(given, where))
    schema = object_or_none(item, "parametersJsonSchema", where)
    own = object_or_none(item, "parameters", where)
    if schema is None:
        schema = {"type": "object", "properties": {}} if own is None else schema_of(own, f"{where}.parameters")
    return Tool(
        name=need_name(item, "name", where),
        description=text_or_none(item, "description", where),
        schema=schema,
        extra=rest(item, _DECLARATION, NAME),
        source=Source(NAME, given),
    )
