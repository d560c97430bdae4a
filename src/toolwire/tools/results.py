"""What a function gave back, as the model will read it."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from ..types import Media, Opaque, Text
from ..wire import exact_json as exact
from .base import Output

NOTHING = "(no output)"
_LONGEST = 2000  # characters of what an exception or an object says of itself
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_Part = Text | Media | Opaque


def output_of(value: object) -> Output:
    """Text stays text, parts stay parts, an image is shown, nothing is said so, anything else is JSON."""
    if isinstance(value, Output):
        return value
    if isinstance(value, _Part):
        return Output(parts=(value,))
    if isinstance(value, tuple | list) and any(isinstance(item, _Part) for item in value):
        return Output(parts=tuple(part for item in value for part in output_of(item).parts))
    if isinstance(value, bytes | bytearray | memoryview):
        return Output(parts=(_of_bytes(bytes(value)),))
    if value is None or value == "":
        return Output.of_text(NOTHING)
    if isinstance(value, str):
        return Output.of_text(str(value))
    return _of_json(value)


def described(error: BaseException) -> str:
    """Kind and words of an exception, without its traceback; a group with one inside is that one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    words = _shortened(str(error))
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _of_bytes(data: bytes) -> Text | Media:
    mime = next((mime for start, mime in _IMAGES if data.startswith(start)), "")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        mime = "image/webp"
    if mime:
        return Media(kind="image", mime=mime, data=base64.b64encode(data).decode())
    try:
        return Text(text=data.decode() or NOTHING)
    except UnicodeDecodeError:
        return Text(text=f"({len(data)} bytes that are neither text nor an image)")


def _of_json(value: object) -> Output:
    if callable(write := getattr(value, "model_dump_json", None)):
        return Output.of_text(write())
    try:
        built = msgspec.to_builtins(value, enc_hook=_built, str_keys=True)
        return Output.of_text(exact.encode(built).decode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError) as error:
        reason = _shortened(str(error)) or type(error).__name__
        return Output.of_text(f"It ran, but what it gave back cannot be told as JSON: {reason}", is_error=True)


def _built(value: object) -> Any:
    """For what msgspec does not know: a model of pydantic, an object that can say what it is, or the name of its type."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    if type(value).__str__ is not object.__str__:
        return _shortened(str(value))
    return f"({type(value).__qualname__})"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
