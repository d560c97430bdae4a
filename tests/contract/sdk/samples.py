"""Values of the official SDKs' types: with the required members only, or with one optional member more."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from tests.contract.sdk.types import is_object, literals, members, plain

MARK = "mark_value"
PNG = "iVBORw0KGgo="
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
_DEEP = 6
ITEM_IDS = {
    "message": "msg_1",
    "function_call": "fc_1",
    "custom_tool_call": "ctc_1",
    "reasoning": "rs_1",
    "mcp_approval_request": "mcpr_1",
    "tool_use": "toolu_1",
    "server_tool_use": "toolu_1",
    "mcp_tool_use": "toolu_1",
}
# Members that a variant needs in practice, whatever its type says, and values that can be found again.
FIXED: dict[str, dict[str, Any]] = {
    "function_call_output": {"call_id": "call_1"},
    "tool_search_call": {"call_id": "call_1", "execution": "client"},
    "tool_search_output": {"call_id": "call_1", "execution": "client"},
    "computer_call_output": {
        "output": {"type": "computer_screenshot", "image_url": "https://host.example/mark_value.png"}
    },
    "message": {"content": MARK},
    "web_search_call": {"action": {"type": "search", "query": MARK}},
    "configuration_update": {
        "text": {"format": {"type": "json_schema", "name": MARK, "schema": {"type": "object", "title": MARK}}}
    },
    "reasoning": {"encrypted_content": MARK},
    "function": {"function": {"name": MARK, "parameters": SCHEMA}},
    "web_search_tool_result": {
        "content": [{"type": "web_search_result", "title": MARK, "url": "https://a", "encrypted_content": "e"}]
    },
    "apply_patch_call_output": {"output": MARK},
    "input_image": {"image_url": "https://host.example/mark_value.png"},
    "input_file": {"filename": "mark_value.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
    "file": {"file": {"filename": "mark_value.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
    "tool_search": {"execution": "client", "description": MARK},
    "local_shell_call_output": {"id": "x_1"},
    "redacted_thinking": {"data": MARK},
    "compaction": {"content": MARK, "encrypted_content": MARK},
    "tool_result": {"content": MARK},
    "mcp_tool_result": {"content": MARK},
    "tool_addition": {
        "tool": {"type": "tool_definition", "definition": {"name": MARK, "input_schema": {"type": "object"}}}
    },
    "tool_removal": {"tool": {"type": "tool_reference", "name": "weather"}},
    "assistant": {"content": MARK},
}
# Members whose value must mean something, by name.
_VALUES: dict[str, Any] = {
    "arguments": '{"path":"mark_value"}',
    "data": PNG,
    "media_type": "image/png",
    "image_url": "https://host.example/mark_value.png",
    "file_url": "https://host.example/mark_value.pdf",
    "file_data": f"data:image/png;base64,{PNG}",
    "url": "https://host.example/mark_value",
    "call_id": "call_1",
    "tool_use_id": "toolu_1",
    "tool_call_id": "call_1",
    "approval_request_id": "mcpr_1",
    "parameters": SCHEMA,
    "input_schema": SCHEMA,
    "output_schema": {"type": "object", "title": MARK},
    "schema": SCHEMA,
}


def sample(kind: Any, tag: str) -> dict[str, Any]:
    """An object with its required members."""
    return _object(kind, tag, {name: value for name, value in FIXED.get(tag, {}).items() if name in members(kind)}, 0)


def optional_members(kind: Any, tag: str) -> Iterator[tuple[str, Any]]:
    """Each optional member with a value that is not its default."""
    for name, member in members(kind).items():
        if not member.is_required and name not in ("type", "role"):
            yield name, ITEM_IDS.get(tag, "x_1") if name == "id" else value_of(member.hint, name, 0)


def _object(kind: Any, tag: str, fixed: dict[str, Any], depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, member in members(kind).items():
        if name in fixed:
            made[name] = fixed[name]
        elif name == "type" and literals(member.hint):
            made[name] = tag if tag in literals(member.hint) else literals(member.hint)[0]
        elif member.is_required:
            made[name] = ITEM_IDS.get(tag, "x_1") if name == "id" else value_of(member.hint, name, depth + 1)
    return made | {name: value for name, value in fixed.items() if name not in made}


def value_of(hint: Any, name: str, depth: int) -> Any:
    hint = plain(hint)
    if name in _VALUES and not is_object(hint) and get_origin(hint) is not Literal and str in (hint, *get_args(hint)):
        return _VALUES[name]
    if name in _VALUES and isinstance(_VALUES[name], dict):
        return _VALUES[name]
    if get_origin(hint) is Literal:
        return get_args(hint)[-1]
    if is_object(hint):
        return {} if depth > _DEEP else _object(hint, "", {}, depth)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {"mark_key": MARK}
    if hint is object or hint is Any:
        return {"mark_key": MARK}
    if origin is not None and isinstance(origin, type) and _is_list(origin):
        return [value_of(inner[0], name, depth + 1)] if inner and depth <= _DEEP else []
    if inner:  # a union: an object says most, then a list, then text
        return value_of(_richest([one for one in inner if plain(one) is not NoneType]), name, depth)
    return {bool: True, int: 13, float: 0.123}.get(hint, MARK)


def _is_list(origin: type) -> bool:
    return origin is list or (issubclass(origin, Sequence) and origin is not str) or origin.__name__ == "Iterable"


def _richest(hints: list[Any]) -> Any:
    found = [hint for hint in hints if is_object(plain(hint))]
    if found:  # with most required members; failures only if there is nothing else
        return max(found, key=lambda one: ("Error" not in plain(one).__name__, _size(plain(one))))
    return next((hint for hint in hints if get_origin(plain(hint)) is not Literal), hints[0])


def _size(kind: Any) -> int:
    return sum(member.is_required for member in members(kind).values())


def marks_in(value: Any) -> bool:
    return MARK in json.dumps(value)
