"""Cursor: what a tool gave back, as words and images, for a run that waits for it and for a history."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable

from .....dialects.shared.media.data import BadMedia, settled, text_in
from .....dialects.shared.media.text import described, placeholder, rendered
from .....dialects.shared.media.types import is_text
from .....types import Loss, Media, Opaque, Part, Text, ToolResult
from .. import agent

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_INLINE = 400_000  # characters of a text file that are told


def mcp_result(result: ToolResult) -> agent.McpResult:
    """A failure is a success that says so: the error member stands for a fault of ours, and ends the turn."""
    content = [_item(piece) for piece in told(result.parts, "", [])]
    return agent.McpResult(
        success=agent.McpSuccess(content=content or [_item("")], is_error=result.is_error),
    )


def told(parts: Iterable[Part], where: str, losses: list[Loss]) -> list[str | Media]:
    """Words, and images as plain base64. Never raises: what cannot be shown is named."""
    pieces: list[str | Media] = []
    for part in parts:
        match part:
            case Text():
                pieces.append(sendable(part.text))
            case Media():
                pieces.append(_medium(part, where, losses))
            case Opaque():
                pieces += told(rendered(part, where, losses), where, losses)
    return pieces


def sendable(text: str) -> str:
    """The same text as UTF-8 can have it: a half of a surrogate pair becomes a replacement character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def image_bytes(image: Media) -> bytes:
    """Of one that told() has given."""
    return b64decode(image.data or "")


def _medium(given: Media, where: str, losses: list[Loss]) -> str | Media:
    try:
        media = settled(given)
    except BadMedia:
        return sendable(placeholder(given, where, losses, "its data is broken"))
    if media.kind == "image" and media.data is not None and media.mime in IMAGE_TYPES:
        return media
    if media.kind == "file" and media.data is not None and is_text(media.mime):
        text = text_in(media) or ""
        losses.append(Loss("media.file", where, "written as text"))
        more = f"\n[{len(text) - _INLINE} more characters not shown]" if len(text) > _INLINE else ""
        return sendable(f"[file: {described(media)}]\n{text[:_INLINE]}{more}")
    return sendable(placeholder(media, where, losses, "a result has room for words and images as data only"))


def _item(piece: str | Media) -> agent.McpToolResultContentItem:
    if isinstance(piece, str):
        return agent.McpToolResultContentItem(text=agent.McpTextContent(text=piece))
    image = agent.McpImageContent(data=image_bytes(piece), mime_type=piece.mime)
    return agent.McpToolResultContentItem(image=image)
