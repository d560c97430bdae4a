"""One passage of a file in place of another, on bytes: what is not replaced stays as it was, whatever it is."""

from __future__ import annotations

from msgspec import Struct

from ...dialects.shared.media.types import UTF16
from .messages import Refused

_LISTED = 10
_COUNTED = 10_000


class Edited(Struct, frozen=True, kw_only=True):
    data: bytes
    count: int
    line: int  # where the first replaced passage began


def replaced(data: bytes, old_text: str, new_text: str, *, everywhere: bool, most: int) -> Edited:
    """The one passage that is old_text, or all of them, replaced; a sentence about how many there are if it is not one."""
    old, new = _in_line_ends_of(data, encoded(old_text, "old_text"), encoded(new_text, "new_text"))
    if data.startswith(UTF16):
        raise Refused("the file is UTF-16, expected UTF-8; write it anew with write, or leave it.")
    if not old:
        raise Refused("old_text is empty, expected the passage to replace; to make a new file use write.")
    if old == new:
        raise Refused("old_text and new_text are the same, so nothing would change.")
    places = _places(data, old)
    if not places:
        raise Refused(f"old_text is not in the file: found 0 matches, expected 1.{_near(data, old)}")
    if len(places) > 1 and not everywhere:
        raise Refused(
            f"old_text is ambiguous: found {len(places):,} matches, in lines {_listed(data, places)}; expected 1. "
            "Add lines around the passage that is meant, or set replace_all."
        )
    count = data.count(old)
    if len(data) + count * (len(new) - len(old)) > most:
        raise Refused(f"the file would have more than {most:,} bytes; make smaller changes.")
    return Edited(data=data.replace(old, new), count=count, line=_line(data, places[0]))


def encoded(text: str, name: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused(
            f"{name} holds half a character (a lone surrogate), which UTF-8 cannot; write it in full."
        ) from None


def _in_line_ends_of(data: bytes, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Models write LF. In a file of CRLF both get that; in a mixed one only where old_text is not there as it is."""
    crlf = data.count(b"\r\n")
    if not crlf or (crlf < data.count(b"\n") and old in data):
        return old, new
    return _crlf(old), _crlf(new)


def _crlf(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def _places(data: bytes, old: bytes) -> list[int]:
    """Where it begins, overlaps included: of "aa" in "aaa" nobody knows which was meant."""
    places, at = list[int](), data.find(old)
    while at >= 0 and len(places) < _COUNTED:
        places.append(at)
        at = data.find(old, at + 1)
    return places


def _line(data: bytes, place: int) -> int:
    return data.count(b"\n", 0, place) + 1


def _listed(data: bytes, places: list[int]) -> str:
    lines = ", ".join(str(_line(data, place)) for place in places[:_LISTED])
    return f"{lines} and more" if len(places) > _LISTED else lines


def _near(data: bytes, old: bytes) -> str:
    """Where the same lines stand with other white space, which is what goes wrong most."""
    wanted = _stripped(old).strip(b"\n")
    present = _stripped(data)
    at = (b"\n" + present + b"\n").find(b"\n" + wanted + b"\n") if wanted else -1
    if at < 0:
        return " Read the file again and copy the passage exactly, without line numbers."
    line = _line(present, at)
    return f" The same with other white space begins in line {line}: copy it exactly, with its indentation."


def _stripped(text: bytes) -> bytes:
    return b"\n".join(line.strip() for line in text.split(b"\n"))
