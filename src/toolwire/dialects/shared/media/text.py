"""Placeholders for media that a dialect cannot carry, and foreign parts as text and media."""

from __future__ import annotations

import re

from ....types import Json, JsonObject, Loss, Media, Opaque, Part, Text
from ....wire.exact_json import encode
from .data import from_data, from_url, size_of

_SHOWN = 4000
_DEEP = 20
_LONG = 400  # characters of a string in JSON that is shown only for want of anything better
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_SAID = frozenset({"title", "source", "text", "url", "tool_name", "context", "content"})
_DEEPER = "[deeper values not shown]"
_INSIDE = frozenset({"content", "source", "document"})


def placeholder(media: Media, where: str, losses: list[Loss], why: str) -> str:
    """Text instead of a medium that this dialect cannot carry; the loss is recorded."""
    losses.append(Loss(f"media.{media.kind}", where, why))
    return f"[{media.kind} not shown: {describe(media)}]"


def describe(media: Media) -> str:
    """Name, address, type and size of a medium, as far as they are known."""
    facts = [media.name, (media.url or "")[:200], media.file_id or "", media.mime]
    if media.data is not None:
        facts.append(in_units(size_of(media)))
    return ", ".join(_CONTROL.sub(" ", fact)[:200] for fact in facts if fact) or "unnamed"


def in_units(size: int) -> str:
    """A number of bytes for people."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1000:.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def render(part: Opaque, where: str, losses: list[Loss]) -> list[Text | Media]:
    """A foreign part as title, source, texts and images in its own order (H101), or as JSON if it has none of these."""
    kind = str(part.value.get("type", "part"))[:60]
    pieces: list[Text | Media] = []
    _gather(part.value, 0, pieces)
    losses.append(Loss(f"part.{kind}", where, "rendered as text"))
    return _joined(pieces) if pieces else [Text(text=_as_json(part.value))]


def opaque_text(part: Opaque, where: str, losses: list[Loss]) -> str:
    """The same as text only: images become placeholders."""
    pieces = render(part, where, losses)
    return "\n".join(
        piece.text if isinstance(piece, Text) else placeholder(piece, where, losses, "only text is allowed here")
        for piece in pieces
    )


def text_of(parts: tuple[Part, ...], where: str, losses: list[Loss]) -> str:
    """Texts joined by line breaks, foreign parts as text; without media, which the caller handles."""
    texts = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Opaque):
            texts.append(opaque_text(part, where, losses))
    return "\n".join(texts)


def _gather(value: Json, depth: int, found: list[Text | Media]) -> None:
    if depth > _DEEP:
        found.append(Text(text=_DEEPER))
        return
    if isinstance(value, list):
        for item in value:
            _gather(item, depth + 1, found)
    if not isinstance(value, dict):
        return
    if depth and (medium := _medium_in(value)) is not None:
        found.append(medium)
        return
    for key, item in value.items():
        if key in _SAID and isinstance(item, str) and item:
            found.append(Text(text=item))
        elif key in _INSIDE and isinstance(item, dict | list):
            _gather(item, depth + 1, found)


def _medium_in(value: JsonObject) -> Media | None:
    """A picture or file inside a foreign part, in any of the forms that the dialects and MCP have for one."""
    kind = "image" if "image" in str(value.get("type", "")) else "file"
    match value:
        case {"source": {"type": "base64", "data": str(data), "media_type": str(mime)}}:
            return Media(kind="image" if kind == "image" else "file", mime=mime, data=data)
        case {"source": {"type": "url", "url": str(url)}} if kind == "image":
            return from_url("image", url)
        case {"source": {"type": "file", "file_id": str(file_id)}}:
            return Media(kind="image" if kind == "image" else "file", file_id=file_id)
        case {"image_url": str(url)} | {"image_url": {"url": str(url)}}:
            return from_url("image", url)
        case {"file_data": str(data)}:
            return from_data("file", data, name=str(value.get("filename") or ""))
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return Media(kind="image", mime=mime, data=data)
    return None


def _joined(pieces: list[Text | Media]) -> list[Text | Media]:
    """Neighbouring texts as one, a line each."""
    whole: list[Text | Media] = []
    lines: list[str] = []
    for piece in pieces:
        if isinstance(piece, Text):
            lines.append(piece.text)
            continue
        if lines:
            whole.append(Text(text="\n".join(lines)))
            lines = []
        whole.append(piece)
    return [*whole, Text(text="\n".join(lines))] if lines else whole


def _as_json(value: JsonObject) -> str:
    text = encode(_short(value, 0)).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} [{len(text) - _SHOWN} more characters not shown]"


def _short(value: Json, depth: int) -> Json:
    if isinstance(value, str) and len(value) > _LONG:
        return f"{value[:_LONG]} [{len(value) - _LONG} more characters not shown]"
    if depth > _DEEP:
        return _DEEPER if isinstance(value, dict | list) else value
    if isinstance(value, dict):
        return {key: _short(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item, depth + 1) for item in value]
    return value
