"""Ctrl-C: while an answer is under way it is a message, while a person types it is an exception."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def told(tell: Callable[[], None]) -> Iterator[None]:
    """Each Ctrl-C calls tell, and interrupts nothing: output and conversation stay whole."""
    with _handling(lambda number, frame: tell()):
        yield


@contextmanager
def raised() -> Iterator[None]:
    """Each Ctrl-C raises KeyboardInterrupt, also within told()."""
    with _handling(signal.default_int_handler):
        yield


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
