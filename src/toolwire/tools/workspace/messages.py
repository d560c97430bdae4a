"""What a model is told: why something was refused, and file names as text that can stand in a line."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ...errors import quote

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
# No byte that means something in a path: not NUL, not "." and not "/".
_ESCAPED = re.compile(rb"\\x(0[1-9a-f]|1[0-9a-f]|7f|[89a-f][0-9a-f])")

_REASONS = {
    errno.ENOENT: "there is nothing at {path}; look with list or glob what there is.",
    errno.ENOTDIR: "a part of {path} is a file where a folder was expected; look with list what there is.",
    errno.EISDIR: "{path} is a folder, expected a file; look with list what is in it.",
    errno.EACCES: "{path} may not be touched: permission denied; ask the person to change its mode, or choose another.",
    errno.EPERM: "{path} may not be touched: permission denied; ask the person to change its mode, or choose another.",
    errno.ELOOP: "{path} became a link while it was being opened; try again.",
    errno.ENAMETOOLONG: "a name in {path} is longer than file names can be; use a shorter one.",
    errno.ENOSPC: "there is no space left on the device for {path}; ask the person to make room.",
    errno.EROFS: "{path} lies on a file system that can only be read; choose another place.",
    errno.EMFILE: "too many files are open at the moment for {path}; try again.",
    errno.ENFILE: "too many files are open at the moment for {path}; try again.",
    errno.EILSEQ: "a name in {path} has characters that this file system does not take; use another name.",
}


class Refused(Exception):
    """What was asked cannot be done; the text is the sentence for the model."""


@contextmanager
def explaining(path: str) -> Iterator[None]:
    """Faults of the operating system as refusals that name the path as the model wrote it."""
    try:
        yield
    except OSError as fault:
        reason = _REASONS.get(fault.errno or 0, "{path} cannot be used: " + (fault.strerror or "unknown fault") + ".")
        home = ' "~" is not expanded: paths begin at the workspace.' if path.startswith("~") else ""
        raise Refused(reason.format(path=quote(path)) + home) from fault


def shown(path: str) -> str:
    """A path of the file system as text: control characters, and bytes that are no UTF-8, as \\xNN."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return _UNPRINTABLE.sub(lambda found: "".join(f"\\x{byte:02x}" for byte in found.group().encode()), text)


def meant(name: str) -> str:
    """The name that was shown like this; it never has a separator or dots that the text did not have."""
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), os.fsencode(name)))


def size_of(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def fitting(lines: Iterable[str], characters: int) -> list[str]:
    """As many of these lines as fit."""
    kept = list[str]()
    for line in lines:
        characters -= len(line) + 1
        if characters < 0:
            break
        kept.append(line)
    return kept


def cut(line: str, characters: int) -> str:
    if len(line) <= characters:
        return line
    return f"{line[:characters]} [... {len(line) - characters:,} more characters in this line]"
