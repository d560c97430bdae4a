"""What a running tool may know of the call that it serves, and say while it runs.

Whoever runs tools puts a Context in place with serving(); it follows into the tasks and threads that begin there. A tool that nobody
told of a call has one all the same, which says nothing to anybody.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from msgspec import Struct

_log = logging.getLogger("toolwire.tools")


class Progress(Struct, frozen=True, kw_only=True):
    """How far a tool has come; done and total are in its own units."""

    message: str = ""
    done: float | None = None
    total: float | None = None


class Context:
    """One call, as the function that serves it sees it; every method may be called from any thread.

    cancelled is set when nobody waits for the result any more: a function in a thread cannot be stopped, only asked.
    emit gets the progress, in the thread of the loop; failed gets what a function raised, which the model sees without its traceback.
    """

    def __init__(
        self,
        call_id: str = "",
        *,
        emit: Callable[[Progress], None] | None = None,
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.call_id = call_id
        self.cancelled = threading.Event()
        self._emit = emit
        self._failed = failed
        self._loop = _running_loop()

    def progress(self, message: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Tells how far it is; nothing happens where nobody listens."""
        if self._emit is None:
            return
        progress = Progress(message=message, done=done, total=total)
        if self._loop is None or self._loop is _running_loop():
            self._emit(progress)
            return
        with suppress(RuntimeError):  # the loop has ended, and with it whoever listened
            self._loop.call_soon_threadsafe(self._emit, progress)

    def failed(self, error: BaseException) -> None:
        """Hands on what the tool raised, traceback and all."""
        if self._failed is not None:
            self._failed(error)
        else:
            _log.info("A tool raised %s.", type(error).__name__, exc_info=error)


_current: ContextVar[Context | None] = ContextVar("toolwire_tool_context", default=None)


def current() -> Context:
    """The context of the call that runs here, or an empty one."""
    return _current.get() or Context()


@contextmanager
def serving(context: Context) -> Iterator[Context]:
    """Everything that runs inside serves this call."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
