"""JSON as protobuf has it (google.protobuf.Value), and back.

All numbers are doubles there. So an integer comes back as one, but past 2**53 it may not be the same one: exact() tells beforehand.
Messages in messages may go about 100 deep before readers refuse them, and an object costs three of those: what lies deeper than
DEPTH goes as its JSON text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ....types import Json, JsonObject
from ....wire.exact_json import encode
from . import agent

DEPTH = 24
_WHOLE = 1e21  # below it, JavaScript writes a whole number as digits, and so do we


def to_value(value: Json) -> agent.Value:
    """What JSON cannot say either (NaN, infinity) is null."""
    made = agent.Value()
    _fill(made, value, DEPTH)
    return made


def to_struct(value: JsonObject) -> agent.Struct:
    made = agent.Struct()
    _fill_struct(made, value, DEPTH)
    return made


def from_value(value: agent.Value) -> Json:
    """A map has no order on the wire: its keys come sorted, so that the same value is always the same text."""
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            return _plain(value.number_value)
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return from_struct(value.struct_value)
        case "list_value":
            return [from_value(item) for item in value.list_value.values]
    return None


def from_struct(value: agent.Struct) -> JsonObject:
    return {key: from_value(value.fields[key]) for key in sorted(value.fields)}


def exact(value: Json, depth: int = DEPTH) -> bool:
    """Whether it comes back as the same JSON."""
    match value:
        case None | bool():
            return True
        case str():
            return _text(value) == value
        case int() | float() | Decimal():
            return _is_kept(value)
        case dict() | list() | tuple() if depth <= 0:
            return False
        case dict():
            return all(exact(key) and exact(item, depth - 1) for key, item in value.items())
        case list() | tuple():
            return all(exact(item, depth - 1) for item in value)
    return False


def _fill(made: agent.Value, value: Json, depth: int) -> None:
    """In place: a message that is handed over is copied, and what lies in it once for every level."""
    match value:
        case None:
            made.null_value = 0
        case bool():
            made.bool_value = value
        case str():
            made.string_value = _text(value)
        case int() | float() | Decimal():
            _fill_number(made, value)
        case dict() | list() | tuple() if depth <= 0:
            made.string_value = encode(value).decode("utf-8")
        case dict():
            made.struct_value.SetInParent()
            _fill_struct(made.struct_value, value, depth)
        case list() | tuple():
            made.list_value.SetInParent()
            for item in value:
                _fill(made.list_value.values.add(), item, depth - 1)
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON")


def _fill_struct(made: agent.Struct, value: JsonObject, depth: int) -> None:
    for key, item in value.items():
        _fill(made.fields[_text(key)], item, depth - 1)


def _fill_number(made: agent.Value, value: int | float | Decimal) -> None:
    try:
        number = float(value)
    except OverflowError:  # an integer of more than 308 digits
        number = math.inf
    if math.isfinite(number):
        made.number_value = number
    elif isinstance(value, int) or (isinstance(value, Decimal) and value.is_finite()):
        made.string_value = encode(value).decode()
    else:
        made.null_value = 0


def _plain(number: float) -> Json:
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < _WHOLE else number


def _is_kept(value: int | float | Decimal) -> bool:
    """A decimal is kept if the shortest way to write its double is the way that it was written."""
    try:
        number = float(value)
    except OverflowError:
        return False
    if not math.isfinite(number):
        return False
    return Decimal(repr(number)) == value if isinstance(value, Decimal) else number == value


def _text(value: str) -> str:
    """Lone halves of surrogate pairs, which no UTF-8 can hold, become the replacement character."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


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
