"""Prompts: text, images and files, as the parts of a user message."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from ..dialects.shared.media.types import sniff
from ..errors import BadRequest, quote
from ..types import Media, MediaKind, Message, Text

Prompt: TypeAlias = str | Text | Media | Sequence[str | Text | Media]

MAX_BYTES = 20 << 20  # of one image or file
_URLS = ("http://", "https://", "data:")
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio"}


def image(source: str | Path | bytes, *, detail: str | None = None) -> Media:
    """An image for a prompt: a path, the bytes, or an address (https or data). The provider fetches addresses, this program does not.

    Raises BadRequest if the file cannot be read, is too large, or is no image.
    """
    media = file(source)
    if media.data is not None and media.kind != "image":
        found = media.mime or "unknown data"
        raise BadRequest(f"{_label(source)}: found {found}; expected an image such as PNG, JPEG, GIF or WebP.")
    return Media(kind="image", mime=media.mime, data=media.data, url=media.url, detail=detail)


def file(source: str | Path | bytes, *, name: str = "", mime: str = "") -> Media:
    """A file for a prompt: a path, the bytes, or an address. Images and audio are recognised by their first bytes.

    mime and name are for bytes without a path. What each provider accepts is in docs/media.md; anything else becomes text or a note.
    Raises BadRequest if the file cannot be read or is too large.
    """
    if isinstance(source, str) and source.startswith(_URLS):
        return Media(kind="file", mime=mime, url=source, name=name)
    data = source if isinstance(source, bytes) else _read(Path(source))
    if len(data) > MAX_BYTES:
        raise BadRequest(f"{_label(source)}: found {len(data)} bytes; expected at most {MAX_BYTES}.")
    known = sniff(data) or mime or ("" if isinstance(source, bytes) else _type_by_name(Path(source).name))
    return Media(
        kind=_KINDS.get(known.partition("/")[0], "file"),
        mime=known,
        data=base64.b64encode(data).decode(),
        name=name or ("" if isinstance(source, bytes) else Path(source).name),
    )


def message_of(prompt: Prompt) -> Message:
    """The user message with the parts of the prompt. Raises BadRequest for anything else."""
    given = [prompt] if isinstance(prompt, str | Text | Media) else list(prompt)
    for one in given:
        if not isinstance(one, str | Text | Media):
            raise BadRequest(
                f"found {quote(one)} in the prompt; expected text, image(...) or file(...).",
                hint="Wrap a path: image(Path('chart.png')).",
            )
    return Message(role="user", parts=tuple(Text(text=one) if isinstance(one, str) else one for one in given))


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadRequest(f"{path}: this file cannot be read: {error.strerror or error}.") from None


def _type_by_name(name: str) -> str:
    import mimetypes

    return mimetypes.guess_type(name, strict=False)[0] or "text/plain"


def _label(source: str | Path | bytes) -> str:
    return "the data" if isinstance(source, bytes) else quote(str(source))
