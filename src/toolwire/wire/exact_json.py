"""JSON without loss: integers of any length, decimals as written, lone surrogates, a bound on depth.

msgspec does the work. Where it refuses what JSON allows (escaped lone surrogates) the standard library steps in; both keep every digit.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

import msgspec

from ..types import JsonObject

_T = TypeVar("_T")


class BadJson(ValueError):
    """The text is not JSON, or nests deeper than the interpreter can follow."""


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadJson("a number has an exponent beyond any use") from None


_decoder = msgspec.json.Decoder(float_hook=_decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


def decode(data: bytes | str) -> Any:
    """Numbers with a fraction or exponent come back as Decimal, integers exact."""
    try:
        return _decoder.decode(data)
    except RecursionError:
        raise BadJson("it nests too deep") from None
    except UnicodeDecodeError:
        raise BadJson(_not_utf8(data)) from None
    except UnicodeEncodeError:
        return _decode_slowly(data, None)
    except msgspec.DecodeError as error:
        return _decode_slowly(data, error)


def typed_decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]:
    """A reader for documents that are as documented, which keeps the digits of what it does not know, too. Raises msgspec's errors."""
    return msgspec.json.Decoder(kind, float_hook=_decimal)


encode_or_raise = _encoder.encode  # without a Python frame; raises UnicodeEncodeError for lone surrogates


def encode(value: Any) -> bytes:
    """Compact JSON; msgspec.Raw passes as it is."""
    try:
        return _encoder.encode(value)
    except RecursionError:
        raise BadJson("it nests too deep") from None
    except UnicodeEncodeError:
        return _encode_slowly(value)


def object_of(text: str) -> JsonObject | None:
    """The object that this text is, or None if it is anything else."""
    try:
        value = decode(text)
    except BadJson:
        return None
    return value if isinstance(value, dict) else None


def _decode_slowly(data: bytes | str, error: msgspec.DecodeError | None) -> Any:
    """Escaped lone surrogates are legal JSON that msgspec refuses; other errors keep msgspec's message."""
    escape = "\\ud" if isinstance(data, str) else b"\\ud"
    lowered = data.lower()
    if error is not None and escape not in lowered:  # type: ignore[operator] # both are str or both are bytes
        raise BadJson(_plain(str(error)))
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        return json.loads(text, parse_float=_decimal, parse_constant=_refuse)
    except BadJson:
        raise
    except UnicodeDecodeError:
        raise BadJson(_not_utf8(data)) from None
    except (ValueError, RecursionError) as fault:
        raise BadJson(_plain(str(fault))) from None


def _encode_slowly(value: Any) -> bytes:
    try:
        return _written(value).encode("ascii")
    except RecursionError:
        raise BadJson("it nests too deep") from None


def _refuse(name: str) -> Any:
    raise BadJson(f"{name} is not JSON")


def _not_utf8(data: bytes | str) -> str:
    """With the position in the whole text: msgspec counts from the start of the current string."""
    try:
        data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        return f"it is not UTF-8 at byte {error.start}"
    return "it is not UTF-8"


def _plain(words: str) -> str:
    return words.removeprefix("JSON is malformed: ") or "it is not JSON"


def _written(value: Any) -> str:
    """ASCII JSON for values that UTF-8 cannot hold: only strings with lone surrogates come this way."""
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{_written(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_written, value)) + "]"
        case str():
            return json.dumps(value)
        case msgspec.Raw():
            return json.dumps(json.loads(bytes(value))) if not bytes(value).isascii() else bytes(value).decode("ascii")
        case _:
            return _encoder.encode(value).decode("ascii")
