"""Refusals, and file names as text that fits in one line."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import quote

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
# No byte that has a meaning in a path: not NUL, not "." and not "/".
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


class ToolRefused(Exception):
    """The tool cannot do this; the message is for the model. is_missing: there is no file at the path."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


@contextmanager
def os_errors_refused(path: str) -> Iterator[None]:
    """Turns an OSError into a ToolRefused that names the path as the model wrote it."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, "{path} cannot be used: " + (error.strerror or "unknown fault") + ".")
        home = ' "~" is not expanded: paths begin at the workspace.' if path.startswith("~") else ""
        message = reason.format(path=quote(path)) + home
        raise ToolRefused(message, is_missing=error.errno == errno.ENOENT) from error


def display_path(path: str) -> str:
    """Control characters, and bytes that are not UTF-8, become \\xNN."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return _UNPRINTABLE.sub(lambda found: "".join(f"\\x{byte:02x}" for byte in found.group().encode()), text)


def parse_name(text: str) -> str:
    """The inverse of display_path for one name. The result has no separator or dot that the text does not have."""
    return os.fsdecode(_ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), os.fsencode(text)))
