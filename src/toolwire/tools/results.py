"""The return value of a function as the output of a tool, and its exceptions as text."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from ..dialects.shared.media.types import sniff
from ..types import Media, Opaque, Text
from ..wire import exact_json as exact
from .base import Output

NOTHING = "(no output)"
_MAX_TEXT = 2000  # characters of an exception's message or of str() of an object
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_Part = Text | Media | Opaque


def output_of(value: object) -> Output:
    """Text and parts are passed on, bytes of an image become an image, None becomes NOTHING, anything else becomes JSON."""
    if isinstance(value, Output):
        return value
    if isinstance(value, _Part):
        return Output(parts=(value,))
    if isinstance(value, tuple | list) and any(isinstance(item, _Part) for item in value):
        return Output(parts=tuple(part for item in value for part in output_of(item).parts))
    if isinstance(value, bytes | bytearray | memoryview):
        return Output(parts=(_from_bytes(bytes(value)),))
    if value is None or value == "":
        return Output.of_text(NOTHING)
    if isinstance(value, str):
        return Output.of_text(str(value))
    return _as_json(value)


def describe_error(error: BaseException) -> str:
    """Class and message of an exception; a group with one exception counts as that one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    message = _shorten(str(error))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _from_bytes(data: bytes) -> Text | Media:
    if (mime := sniff(data)) in _IMAGES:
        return Media(kind="image", mime=mime, data=base64.b64encode(data).decode())
    try:
        return Text(text=data.decode() or NOTHING)
    except UnicodeDecodeError:
        return Text(text=f"({len(data)} bytes that are neither text nor an image)")


def _as_json(value: object) -> Output:
    if callable(write := getattr(value, "model_dump_json", None)):
        return Output.of_text(write())
    try:
        built = msgspec.to_builtins(value, enc_hook=_encode_unknown, str_keys=True)
        return Output.of_text(exact.encode(built).decode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError) as error:
        reason = _shorten(str(error)) or type(error).__name__
        return Output.of_text(f"It ran, but what it gave back cannot be expressed as JSON: {reason}", is_error=True)


def _encode_unknown(value: object) -> Any:
    """For objects that msgspec cannot encode: a pydantic model's data, the object's own text, or the name of its class."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    if type(value).__str__ is not object.__str__:
        return _shorten(str(value))
    return f"({type(value).__qualname__})"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}... ({len(text)} characters)"
