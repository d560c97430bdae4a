"""JSON as protobuf has it (google.protobuf.Value), and back.

All numbers are doubles there. An integer beyond 2**53 may change; is_exact() checks that beforehand. Readers refuse messages nested
about 100 deep, and an object costs three levels: what lies deeper than MAX_DEPTH is sent as its JSON text.

The arguments of a call come as a protobuf map, which loses the order of its keys when it is decoded. arguments_of() decodes them as a
list of entries, in the order in which the model wrote them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal

from ....types import Json, JsonObject
from ....wire.exact_json import encode
from . import agent

MAX_DEPTH = 24
_INTEGER_LIMIT = 1e21  # below it JavaScript writes a whole number as digits, and so do we


def to_value(value: Json) -> agent.Value:
    """NaN and infinity become null, as in JSON."""
    made = agent.Value()
    _fill(made, value, MAX_DEPTH)
    return made


def from_value(value: agent.Value | agent.OrderedValue) -> Json:
    """Keys of a Value are sorted, because a map has no order: equal values become equal text."""
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            number = value.number_value
            if not math.isfinite(number):
                return None
            return int(number) if number.is_integer() and abs(number) < _INTEGER_LIMIT else number
        case "bool_value":
            return value.bool_value
        case "struct_value":
            if isinstance(value, agent.OrderedValue):
                return _members(value.struct_value.fields)
            fields = value.struct_value.fields
            return {key: from_value(fields[key]) for key in sorted(fields)}
        case "list_value":
            return [from_value(item) for item in value.list_value.values]
    return None


def arguments_of(message: bytes) -> JsonObject:
    """The arguments of the call in an AgentServerMessage, in the model's order."""
    return _members(agent.OrderedServerMessage.FromString(message).exec_server_message.mcp_args.args)


def is_exact(value: Json, depth: int = MAX_DEPTH) -> bool:
    """Whether the same JSON comes back."""
    match value:
        case None | bool():
            return True
        case str():
            return valid_utf8(value) == value
        case int() | float() | Decimal():
            return _is_exact_number(value)
        case dict() | list() | tuple() if depth <= 0:
            return False
        case dict():
            return all(is_exact(key) and is_exact(item, depth - 1) for key, item in value.items())
        case list() | tuple():
            return all(is_exact(item, depth - 1) for item in value)
    return False


def valid_utf8(text: str) -> str:
    """Surrogate pairs joined, and halves of them replaced: JSON may contain them, protobuf must not."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _fill(made: agent.Value, value: Json, depth: int) -> None:
    """In place: protobuf copies a message that is assigned, once for every level."""
    match value:
        case None:
            made.null_value = 0
        case bool():
            made.bool_value = value
        case str():
            made.string_value = valid_utf8(value)
        case int() | float() | Decimal():
            _fill_number(made, value)
        case dict() | list() | tuple() if depth <= 0:
            made.string_value = encode(value).decode("utf-8")
        case dict():
            made.struct_value.SetInParent()
            for key, item in value.items():
                _fill(made.struct_value.fields[valid_utf8(key)], item, depth - 1)
        case list() | tuple():
            made.list_value.SetInParent()
            for item in value:
                _fill(made.list_value.values.add(), item, depth - 1)
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON")


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


def _is_exact_number(value: int | float | Decimal) -> bool:
    """A decimal is exact if it is the shortest text of its double."""
    try:
        number = float(value)
    except OverflowError:
        return False
    if not math.isfinite(number):
        return False
    return Decimal(repr(number)) == value if isinstance(value, Decimal) else number == value


def _members(entries: Iterable[agent.OrderedEntry]) -> JsonObject:
    return {entry.key: from_value(entry.value) for entry in entries}
