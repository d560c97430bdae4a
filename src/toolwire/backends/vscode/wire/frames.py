"""VS Code bridge: decodes and encodes frames.

A decoder ignores unknown members, parts and roles, so that either side may be newer; a frame of an unknown type becomes an UnknownFrame.
Numbers are exact: integers of any length, decimals as they were written.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any, Final, get_args

import msgspec

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
    """Raises only BadWindowFrame."""
    frame: FromWindow | UnknownFrame = _decoded(text, FromWindow, _WINDOW)
    return frame


def decode_gateway(text: str | bytes) -> FromGateway | UnknownFrame:
    """Raises only BadWindowFrame."""
    frame: FromGateway | UnknownFrame = _decoded(text, FromGateway, _GATEWAY)
    return frame


def encode(frame: FromWindow | FromGateway) -> str:
    """Raises BadWindowFrame if JSON cannot express it, or it nests too deep."""
    try:
        try:
            return encode_json(frame).decode()
        except UnicodeEncodeError:  # a lone surrogate: slower, by plain values
            return encode_json(msgspec.to_builtins(frame, builtin_types=(Decimal,))).decode()
    except BadJson as fault:
        raise BadWindowFrame(f"the frame cannot be written: {fault}.") from None


def loses_digits(value: Json) -> bool:
    """Whether an integer in it is too long. Not recursive, because it may nest deep."""
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
    with suppress(msgspec.ValidationError, RecursionError):
        return msgspec.convert(value, union)
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
    """Without what only a newer version knows."""
    known = dict(value)
    if isinstance(messages := value.get("messages"), list):
        known["messages"] = [_known_parts(one, _PARTS) for one in messages if not _is_newer(one, "role", _ROLES)]
    return {**known, **_known_parts(known, _PARTS)}


def _known_parts(owner: Json, kinds: frozenset[str]) -> Json:
    parts = owner.get("parts") if isinstance(owner, dict) else None
    if not isinstance(parts, list):
        return owner
    # Only a result has parts inside.
    return {**owner, "parts": [_known_parts(part, _INNER) for part in parts if not _is_newer(part, "t", kinds)]}


def _is_newer(owner: Json, key: str, known: frozenset[str]) -> bool:
    """It has a type that this version does not know. Without a type it is invalid, not newer."""
    kind = owner.get(key) if isinstance(owner, dict) else None
    return isinstance(kind, str) and kind not in known
