"""Images, files and foreign parts: data URLs both ways, and the words that stand for what a dialect cannot show."""

from __future__ import annotations

from typing import Any

from ..types import Json, Loss, Media, Opaque, Part, Text
from ..wire.exact import encode

_SHOWN = 4000
_DEEP = 20


def split_data_url(url: str) -> tuple[str, str] | None:
    """("image/png", base64) of a data URL, or None if it is another kind of address."""
    if not url.startswith("data:"):
        return None
    head, comma, data = url.partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    return head[len("data:") : -len(";base64")].split(";")[0], data


def data_url(media: Media) -> str | None:
    """The address of a medium: its url, or its data as one."""
    if media.url is not None:
        return media.url
    if media.data is not None:
        return f"data:{media.mime or 'application/octet-stream'};base64,{media.data}"
    return None


def from_url(kind: Any, url: str, **members: Any) -> Media:
    """A medium behind a url; a data URL is taken apart."""
    split = split_data_url(url)
    if split is None:
        return Media(kind=kind, url=url, **members)
    return Media(kind=kind, mime=split[0], data=split[1], **members)


def placeholder(media: Media, where: str, losses: list[Loss], why: str) -> str:
    """Words in the place of a medium that this dialect cannot carry; the loss is recorded."""
    losses.append(Loss(f"media.{media.kind}", where, why))
    name = media.name or media.url or media.file_id or media.mime or "unnamed"
    return f"[{media.kind} not shown: {name[:200]}]"


def opaque_text(part: Opaque, where: str, losses: list[Loss]) -> str:
    """A foreign part as words: its title, source and texts, or its JSON where it has none."""
    kind = str(part.value.get("type", "part"))
    losses.append(Loss(f"part.{kind}", where, "rendered as text"))
    words = _words(part.value, 0)
    return "\n".join(words)[:_SHOWN] if words else encode(part.value).decode()[:_SHOWN]


def text_of(parts: tuple[Part, ...], where: str, losses: list[Loss]) -> str:
    """Only the words: texts joined by line breaks, foreign parts as words; media are the caller's to place."""
    texts = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, Opaque):
            texts.append(opaque_text(part, where, losses))
    return "\n".join(texts)


def _words(value: Json, depth: int) -> list[str]:
    found: list[str] = []
    if depth > _DEEP:
        return found
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("title", "source", "text", "url", "tool_name") and isinstance(item, str):
                found.append(item)
            elif key in ("content", "source", "document") and isinstance(item, dict | list):
                found += _words(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            found += _words(item, depth + 1)
    return found
