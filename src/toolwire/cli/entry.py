"""Start and end of the command: closed standard streams, Ctrl-C during import, unwritable output."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing or collections.abc takes longer than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits with its code."""
    open_closed_streams()
    try:
        # Importing the commands takes most of the time of a short one, and Ctrl-C may come meanwhile.
        from .app import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        drop_unwritten()
    sys.exit(code)


def open_closed_streams() -> None:
    """Opens /dev/null for standard streams that are closed, so that no other file gets their descriptors."""
    for name, mode in _STREAMS:  # in the order of their descriptors
        if getattr(sys, name) is None:
            stream = os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8", errors="backslashreplace")
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def drop_unwritten() -> None:
    """Discards output that cannot be written, so that Python does not report it again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
