"""Taking wire JSON apart by hand: each look-up checks the type and names the field when it is wrong."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeGuard

from ..errors import BadRequest, quote
from ..types import Extra, JsonObject
from .exact_json import BadJson, decode

_MOST = 1 << 53  # tokens; clients cannot represent larger integers
_KINDS: dict[type, str] = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    Decimal: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def body_object(body: bytes) -> JsonObject:
    if not body.strip():
        raise BadRequest("the body is empty; expected a JSON object.", code="invalid_json")
    try:
        value = decode(body)
    except BadJson as fault:
        raise BadRequest(f"the body is not valid JSON: {fault}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise BadRequest(f"the body is {kind_of(value)}; expected a JSON object.", code="invalid_json")
    return value


def kind_of(value: object) -> str:
    """The name of the JSON type of a value."""
    return _KINDS.get(type(value), type(value).__name__)


def wrong(where: str, found: object, expected: str) -> BadRequest:
    """The error for a field of the wrong type or value."""
    shown = f"{quote(found)}" if isinstance(found, str) else kind_of(found)
    return BadRequest(f"found {shown}; expected {expected}.", where=where)


def missing(where: str, expected: str) -> BadRequest:
    return BadRequest(f"it is missing; expected {expected}.", where=where, code="missing_field")


def need_text(owner: JsonObject, key: str, where: str) -> str:
    value = owner.get(key)
    if type(value) is str:
        return value
    path = f"{where}.{key}" if where else key
    raise missing(path, "a string") if key not in owner else wrong(path, value, "a string")


def need_name(owner: JsonObject, key: str, where: str) -> str:
    """A string that must not be empty: an id or a name."""
    value = need_text(owner, key, where)
    if not value:
        raise BadRequest("it is empty; expected a non-empty string.", where=f"{where}.{key}" if where else key)
    return value


def need_object(value: object, where: str) -> JsonObject:
    if isinstance(value, dict):
        return value
    raise wrong(where, value, "an object")


def need_list(owner: JsonObject, key: str, where: str) -> list[Any]:
    value = owner.get(key)
    if isinstance(value, list):
        return value
    path = f"{where}.{key}" if where else key
    raise missing(path, "an array") if key not in owner else wrong(path, value, "an array")


def text_or_none(owner: JsonObject, key: str, where: str = "") -> str | None:
    value = owner.get(key)
    if value is None or isinstance(value, str):
        return value
    raise wrong(f"{where}.{key}" if where else key, value, "a string")


def text_in(owner: JsonObject, key: str) -> str:
    """A string member; "" if it is missing or of another type."""
    value = owner.get(key)
    return value if isinstance(value, str) else ""


def flag_or_none(owner: JsonObject, key: str, where: str = "") -> bool | None:
    value = owner.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise wrong(f"{where}.{key}" if where else key, value, "true or false")


def number_or_none(owner: JsonObject, key: str, where: str = "") -> int | Decimal | None:
    value = owner.get(key)
    if value is None or (isinstance(value, int | Decimal | float) and not isinstance(value, bool)):
        return value  # type: ignore[return-value] # float only from callers that build dicts by hand
    raise wrong(f"{where}.{key}" if where else key, value, "a number")


def numbers(owner: JsonObject, *keys: str) -> JsonObject:
    """The members among these keys that are not null; all must be numbers."""
    found: JsonObject = {}
    for key in keys:
        value = owner.get(key)
        if isinstance(value, int | Decimal | float) and not isinstance(value, bool):
            found[key] = value
        elif value is not None:
            raise wrong(key, value, "a number")
    return found


def count_or_none(owner: JsonObject, key: str, where: str = "", least: int = 0) -> int | None:
    value = owner.get(key)
    if isinstance(value, Decimal) and -(10**12) < value < 10**12 and value == value.to_integral_value():
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= least):
        return value
    raise wrong(f"{where}.{key}" if where else key, value, f"an integer of at least {least}")


def count_of(value: object) -> int:
    """A token count of a back end; 0 if it is none."""
    if type(value) is int:
        return value if 0 <= value < _MOST else 0
    if isinstance(value, Decimal) and 0 <= value < _MOST and value == value.to_integral_value():
        return int(value)
    return 0


def is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST


def object_or_none(owner: JsonObject, key: str, where: str = "") -> JsonObject | None:
    value = owner.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise wrong(f"{where}.{key}" if where else key, value, "an object")


def list_or_none(owner: JsonObject, key: str, where: str = "") -> list[Any] | None:
    value = owner.get(key)
    if value is None or isinstance(value, list):
        return value
    raise wrong(f"{where}.{key}" if where else key, value, "an array")


def unread(owner: JsonObject, key: str, known: frozenset[str]) -> JsonObject:
    """{key: the members of owner[key] that are not in known}, {} where there are none: for members that are read in part."""
    value = owner.get(key)
    more = {name: item for name, item in value.items() if name not in known} if isinstance(value, dict) else {}
    return {key: more} if more else {}


def rest(owner: JsonObject, known: frozenset[str], dialect: str) -> Extra:
    """Members that are not in known, under the dialect's name, as the extra of a value."""
    if owner.keys() <= known:
        return {}
    return {dialect: {key: value for key, value in owner.items() if key not in known}}
