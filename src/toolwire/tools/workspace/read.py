"""The tool that reads a file: text with line numbers, images as images, anything else by its type and size."""

from __future__ import annotations

from base64 import b64encode
from codecs import BOM_UTF8

from msgspec import Struct

from ...dialects.shared.media.types import UTF16, looks_like_text, sniffed, type_of
from ...errors import quote
from ...types import Media, Text
from ..base import Output
from .confinement import Root, contents
from .limits import Budget, Limits
from .messages import Refused, cut, size_of

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_HEAD = 3000


class Read(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    path: str
    offset: int | None = None
    limit: int | None = None


def read(root: Root, limits: Limits, budget: Budget, asked: Read) -> Output:
    with root.file(asked.path) as (place, file):
        data = contents(file, limits.file_bytes, asked.path)
    head = data[:_HEAD]
    if (mime := sniffed(head)) in _IMAGES and not looks_like_text(head):
        return _image(place.inside, mime, data, limits)
    if not head.startswith(UTF16) and (b"\0" in data or (mime and not looks_like_text(head))):
        kind = type_of("", place.name, head)
        return Output.of_text(
            f"{place.inside} is a binary file ({kind}, {size_of(len(data))}); "
            "only text and images (PNG, JPEG, GIF, WebP) can be shown."
        )
    text, notes = decoded(data)
    return Output.of_text(_numbered(text, notes, limits, asked))


def decoded(data: bytes) -> tuple[str, list[str]]:
    """A text and what is to be known about its bytes."""
    if data.startswith(UTF16):
        return data.decode("utf-16", "replace"), ["the file is UTF-16; edit takes UTF-8 only"]
    notes = list[str]()
    if data.startswith(BOM_UTF8):
        data = data[len(BOM_UTF8) :]
        notes.append("the file begins with a byte order mark, which is not shown; edit keeps it")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        notes.append("bytes that are no UTF-8 are shown as \ufffd; edit keeps them where they are not in old_text")
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        notes.append("lines end with CRLF; edit keeps that")
    return text, notes


def _image(name: str, mime: str, data: bytes, limits: Limits) -> Output:
    about = f"{name}: {mime}, {size_of(len(data))}"
    if len(data) > limits.image_bytes:
        most = size_of(limits.image_bytes)
        return Output.of_text(
            f"{about}; images of more than {most} are not shown. Look at a smaller one.", is_error=True
        )
    media = Media(kind="image", mime=mime, data=b64encode(data).decode(), name=name.rpartition("/")[2])
    return Output(parts=(Text(text=about), media))


def _numbered(text: str, notes: list[str], limits: Limits, asked: Read) -> str:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    first = max(asked.offset or 1, 1)
    if lines and first > len(lines):
        raise Refused(
            f"{quote(asked.path)} has {len(lines):,} lines, found offset {first:,}; begin at an earlier line."
        )
    most = min(max(asked.limit or limits.lines, 1), limits.lines)
    shown, room = list[str](), limits.output_characters
    for number, line in enumerate(lines[first - 1 : first - 1 + most], first):
        shown.append(f"{number:>6}\t{cut(line, limits.line_characters)}")
        room -= len(shown[-1]) + 1
        if room < 0 and len(shown) > 1:
            shown.pop()
            break
    last = first - 1 + len(shown)
    if not lines:
        notes = ["the file is empty", *notes]
    elif last < len(lines):
        notes = [f"lines {first:,} to {last:,} of {len(lines):,}; go on with offset {last + 1}", *notes]
    return "\n".join([*shown, *(f"[{note}]" for note in notes)])
