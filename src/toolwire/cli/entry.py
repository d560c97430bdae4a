"""Where the command begins and ends: streams that somebody closed, an interrupt while it loads, output that cannot be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

INTERRUPTED = 130
_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    open_closed_streams()
    try:
        # The commands take most of the time that a short one needs to load, and Ctrl-C may come within it.
        from .app import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        drop_unwritten()
    sys.exit(code)


def open_closed_streams() -> None:
    """A stream that was closed before the start is None, and the next file that is opened would get its number: it becomes an empty one."""
    for name, mode in _STREAMS:  # in this order each gets the number it should have
        if getattr(sys, name) is None:
            stream = os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8", errors="backslashreplace")
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def drop_unwritten() -> None:
    """What nobody can be given goes nowhere; Python would complain about it once more when it flushes at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
