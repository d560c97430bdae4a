"""Cursor: the arguments of a call, in the order in which the model wrote them.

They come as a protobuf map, which loses its order when it is read; on the wire the entries still stand as they were written, so the
keys are read from there. What cannot be found there comes last, sorted: never lost, and the same each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .....types import Json, JsonObject
from .. import agent
from ..values import from_value

# Numbers of members, by the way from the server's message to the entries.
_EXEC, _MCP, _ARGS = 2, 11, 2
_KEY, _VALUE = 1, 2
_STRUCT, _LIST, _ITEMS = 5, 6, 1

_WIDTHS = {1: 8, 5: 4}  # of what is not written as a length and as many bytes


def arguments_of(args: agent.McpArgs, message: bytes) -> JsonObject:
    """message is the whole AgentServerMessage that args came in."""
    plain: JsonObject = {key: from_value(value) for key, value in args.args.items()}
    return _ordered_entries(plain, _last(_last(memoryview(message), _EXEC), _MCP), _ARGS)


def _ordered(value: Json, wire: memoryview) -> Json:
    if isinstance(value, dict):
        return _ordered_entries(value, _last(wire, _STRUCT), _ITEMS)
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        items = [item for number, item in _members(_last(wire, _LIST)) if number == _ITEMS]
        return [_ordered(item, items[place]) if place < len(items) else item for place, item in enumerate(value)]
    return value


def _ordered_entries(plain: JsonObject, wire: memoryview, place: int) -> JsonObject:
    ordered: JsonObject = {}
    for number, entry in _members(wire):
        if number != place:
            continue
        key = bytes(_last(entry, _KEY)).decode("utf-8", "replace")
        if key in plain:
            ordered[key] = _ordered(plain[key], _last(entry, _VALUE))
    missing = sorted(plain.keys() - ordered.keys())
    return ordered | {key: plain[key] for key in missing}


def _last(wire: memoryview, number: int) -> memoryview:
    """The member of this number; of several the last one counts."""
    found = memoryview(b"")
    for other, value in _members(wire):
        if other == number:
            found = value
    return found


def _members(wire: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Those with a length; the others are passed over, and at what is neither the reading ends."""
    place = 0
    while place < len(wire):
        tag, place = _varint(wire, place)
        kind = tag & 7
        if kind == 0:
            _, place = _varint(wire, place)
        elif kind == 2:
            size, place = _varint(wire, place)
            yield tag >> 3, wire[place : place + size]
            place += size
        elif kind in _WIDTHS:
            place += _WIDTHS[kind]
        else:
            return


def _varint(wire: Any, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(wire) and shift < 70:
        byte = wire[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return value, place
