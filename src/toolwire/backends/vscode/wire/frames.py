"""VS Code bridge: frames read and written.

A reader passes over members, parts and roles that it does not know, so that either side may be newer; a frame of a type that it does
not know comes back as UnknownFrame. Numbers are exact: integers of any length, decimals as they were written.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from ....errors import quote
from ....types import Json, JsonObject
from ....wire.exact_json import BadJson
from ....wire.exact_json import decode as decode_json
from ....wire.exact_json import encode as encode_json
from .shapes import FromGateway, FromWindow, Part, UnknownFrame

MAX_FRAME: Final = 32 << 20  # bytes


WHOLE: Final = 2**53  # integers up to here survive JavaScript
DIGITS: Final = "numbers are doubles in VS Code: integers beyond 2**53 lose digits"


class BadWindowFrame(ValueError):
    """Not a frame of this protocol. The text has nothing secret or long."""


def decode_window(text: str | bytes) -> FromWindow | UnknownFrame:
    """Raises BadWindowFrame, and nothing else, for what is no frame of a window."""
    frame: FromWindow | UnknownFrame = _decoded(text, FromWindow, _WINDOW)
    return frame


def decode_gateway(text: str | bytes) -> FromGateway | UnknownFrame:
    """Raises BadWindowFrame, and nothing else, for what is no frame of the gateway."""
    frame: FromGateway | UnknownFrame = _decoded(text, FromGateway, _GATEWAY)
    return frame


def encode(frame: FromWindow | FromGateway) -> str:
    """Raises BadWindowFrame where it holds what JSON cannot, or nests too deep."""
    try:
        return _written(frame).decode()
    except BadJson as fault:
        raise BadWindowFrame(f"the frame cannot be written: {fault}.") from None


def loses_digits(value: Json) -> bool:
    """Whether an integer in it is too long. Not recursive: it may be nested as deep as JSON may."""
    waiting: list[Json] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, int) and abs(value) > WHOLE:
            return True
    return False


def _written(frame: Struct) -> bytes:
    try:
        return encode_json(frame)
    except UnicodeEncodeError:  # half of a surrogate pair somewhere, for which there is a slow way, for plain values
        return encode_json(msgspec.to_builtins(frame, builtin_types=(Decimal,)))


def _tags(union: Any) -> frozenset[str]:
    return frozenset(str(kind.__struct_config__.tag) for kind in get_args(union))


_WINDOW = _tags(FromWindow)
_GATEWAY = _tags(FromGateway)
_PARTS = _tags(Part)
_INNER = frozenset({"text", "data"})
_ROLES = frozenset({"user", "assistant", "system"})


def _decoded(text: str | bytes, union: Any, tags: frozenset[str]) -> Any:
    value = _object(text)
    kind = value.get("type")
    if not isinstance(kind, str):
        raise BadWindowFrame('the frame has no "type"; expected a text there.')
    if kind not in tags:
        return UnknownFrame(type=kind[:60])
    try:
        return msgspec.convert(value, union)
    except (msgspec.ValidationError, RecursionError):
        return _convert_known(value, union, kind)


def _convert_known(value: JsonObject, union: Any, kind: str) -> Any:
    """Again, without what only a newer version knows."""
    try:
        return msgspec.convert(_known(value), union)
    except msgspec.ValidationError as fault:
        raise BadWindowFrame(f"the frame {quote(kind)} is not as expected: {quote(str(fault))}.") from None
    except RecursionError:
        raise BadWindowFrame(f"the frame {quote(kind)} nests too deep.") from None


def _object(text: str | bytes) -> JsonObject:
    if len(text) > MAX_FRAME:
        raise BadWindowFrame(f"the frame takes {len(text)} bytes; {MAX_FRAME} is the most.")
    try:
        value = decode_json(text)
    except BadJson as fault:
        raise BadWindowFrame(f"the frame is not JSON: {quote(str(fault))}.") from None
    if not isinstance(value, dict):
        raise BadWindowFrame("the frame is JSON, but not an object.")
    return value


def _known(value: JsonObject) -> JsonObject:
    known = dict(value)
    if isinstance(messages := value.get("messages"), list):
        known["messages"] = [_known_parts(one, _is_part) for one in messages if not _is_newer(one, "role", _ROLES)]
    return {**known, **_known_parts(known, _is_part)}


def _known_parts(owner: Json, is_known: Callable[[Json], bool]) -> Json:
    parts = owner.get("parts") if isinstance(owner, dict) else None
    if not isinstance(parts, list):
        return owner
    kept = [part for part in parts if is_known(part)]
    return {**owner, "parts": [_known_parts(part, _is_inner) if _is_result(part) else part for part in kept]}


def _is_newer(owner: Json, key: str, known: frozenset[str]) -> bool:
    """It has a type that this version does not know. Without a type it is invalid, not newer."""
    said = owner.get(key) if isinstance(owner, dict) else None
    return isinstance(said, str) and said not in known


def _is_part(part: Json) -> bool:
    return not _is_newer(part, "t", _PARTS)


def _is_inner(part: Json) -> bool:
    return not _is_newer(part, "t", _INNER)


def _is_result(part: Json) -> bool:
    return isinstance(part, dict) and part.get("t") == "result"
