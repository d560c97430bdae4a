"""Results of MCP tools as parts, and arguments in a form that the SDK can send.

Results are read by attributes, never by the SDK's classes, so this module does not import the SDK.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from ...errors import quote
from ...types import Json, Media, MediaKind, Text
from ...wire import exact_json as exact
from ..base import Output
from ..plain import plain, whole
from ..results import NOTHING

_LONG = 100  # characters of a text that is not worth sending twice


def output_of(result: Any) -> Output:
    """The parts of a CallToolResult in order. What structured content has beyond them is added as JSON."""
    parts = [_part(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and not _is_repeated(structured, result.content, parts):
        text = exact.encode(_without_texts(structured, parts)).decode("utf-8", "surrogatepass")
        parts.append(Text(text=text))
    parts = [part for part in parts if not isinstance(part, Text) or part.text]
    return Output(parts=tuple(parts) or (Text(text=NOTHING),), is_error=result.is_error)


def sendable(value: Json) -> Json:
    """Without decimals and lone surrogates; ValueError if a number is larger than any float."""
    return _without_surrogates(plain(value))


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value


def _part(block: Any) -> Text | Media:
    match block.type:
        case "text":
            return Text(text=block.text)
        case "image" | "audio":
            return _media(block.type, block.mime_type, block.data, "")
        case "resource":
            return _resource(block.resource)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return Text(text=f"[resource {block.title or block.name} at {block.uri}]{about}")
        case _:
            return Text(text=f"[a part of the kind {quote(block.type)}, which cannot be shown]")


def _resource(resource: Any) -> Text | Media:
    if (text := getattr(resource, "text", None)) is not None:
        return Text(text=f"[resource {resource.uri}]\n{text}")
    mime = resource.mime_type or ""
    family = mime.partition("/")[0]
    kind: MediaKind = "image" if family == "image" else "audio" if family == "audio" else "file"
    return _media(kind, mime, resource.blob, PurePosixPath(str(resource.uri)).name)


def _media(kind: MediaKind, mime: str, data: str, name: str) -> Text | Media:
    """A provider would refuse the whole conversation for data that is not base64."""
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Text(text=f"[{kind} whose data could not be read]")
    if not data:
        return Text(text=f"[{kind} without data]")
    return Media(kind=kind, mime=mime, data=data, name=name)


def _is_repeated(structured: Json, blocks: Sequence[Any], parts: Sequence[Text | Media]) -> bool:
    """Whether the content has the value: as JSON in a text, or as the only member of an object, whole or item by item. The Python SDK
    wraps it in `result`, the reference server for files in `content`, also for images."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    parsed = [_parse(text) for text in texts]
    wanted = whole(structured)
    if wanted in parsed:
        return True
    if not isinstance(wanted, dict) or len(wanted) != 1:
        return False
    (inner,) = wanted.values()
    return (
        inner in parsed
        or inner in (*texts, "\n".join(texts), "".join(texts))
        or inner == parsed
        or inner == list(texts)
        or _is_copy(inner, blocks)
    )


def _is_copy(value: Json, blocks: Sequence[Any]) -> bool:
    """Whether the value is a list with the content blocks themselves."""
    if not isinstance(value, list) or len(value) != len(blocks):
        return False
    return all(
        isinstance(item, dict)
        and block.type in ("text", "image", "audio")
        and item.get("type") == block.type
        and all(item.get(name) == getattr(block, name, None) for name in ("text", "data"))
        for item, block in zip(value, blocks, strict=True)
    )


def _without_texts(structured: Json, parts: Sequence[Text | Media]) -> Json:
    """Without long members that are already there as a text of their own."""
    if not isinstance(structured, dict):
        return structured
    texts = {part.text for part in parts if isinstance(part, Text) and len(part.text) >= _LONG}
    others = {name: value for name, value in structured.items() if not isinstance(value, str) or value not in texts}
    return others or structured


def _parse(text: str) -> Json:
    try:
        return whole(exact.decode(text))
    except ValueError:
        return text
