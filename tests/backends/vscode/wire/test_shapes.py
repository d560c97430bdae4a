"""Frames as types and frames as the schema has them are the same frames."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from tests.backends.vscode.wire.agreed import SCHEMA
from toolwire.backends.vscode.wire import shapes as bridge
from toolwire.wire.exact_json import decode

DEFINITIONS = decode(SCHEMA.read_bytes())["$defs"]
# What the schema calls otherwise.
CALLED = {
    "Failure": "Failed",
    "TextPart": "Text",
    "CallPart": "Call",
    "DataPart": "Data",
    "ResultPart": "Result",
    "ThinkingPart": "Thinking",
    "OfferedTool": "Tool",
}
KINDS = [
    kind
    for kind in vars(bridge).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in (msgspec.Struct, bridge.UnknownFrame)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_members_are_those_of_the_schema(kind: Any) -> None:
    told = DEFINITIONS[CALLED.get(kind.__name__, kind.__name__)]
    config = kind.__struct_config__
    tag = {config.tag_field} if config.tag_field else set()
    fields = msgspec.structs.fields(kind)
    assert set(told["properties"]) == {field.name for field in fields} | tag
    assert set(told["required"]) == {field.name for field in fields if field.required} | tag
    if config.tag_field:
        assert told["properties"][config.tag_field] == {"const": config.tag}


@pytest.mark.parametrize("side", ["FromWindow", "FromGateway"])
def test_each_side_sends_the_same_kinds(side: str) -> None:
    told = {entry["$ref"].rpartition("/")[2] for entry in DEFINITIONS[side]["oneOf"]}
    kinds = {kind.__name__ for kind in get_args(getattr(bridge, side))}
    assert told == {CALLED.get(name, name) for name in kinds}
