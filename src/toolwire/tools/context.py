"""The context of a tool call: its id, its progress, whether it is cancelled, and what the program passes to its tools.

The program that runs tools sets a Context with serving(); tasks and threads that start inside inherit it. Without serving() a tool gets a context
that has no call id and drops progress.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, cast

from msgspec import Struct

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default, which typing has from Python 3.13 on

    DepsT = TypeVar("DepsT", default=Any)
else:
    from typing import TypeVar

    DepsT = TypeVar("DepsT")

_log = logging.getLogger("toolwire.tools")


class Progress(Struct, frozen=True, kw_only=True):
    """Progress of a tool; done and total are in the tool's own units."""

    message: str = ""
    done: float | None = None
    total: float | None = None


class Context(Generic[DepsT]):
    """One call; all methods are thread-safe.

    deps is what the program passed as `deps=` to the agent. `Context[Database]` as the hint of a parameter declares its type; the agent
    checks it before the first request.

    cancelled is set when the call is cancelled: a function in a thread cannot be stopped, it must check. emit receives progress, in the
    thread of the event loop. failed receives the exception of the function; the model sees it without its traceback.
    """

    def __init__(
        self,
        call_id: str = "",
        *,
        emit: Callable[[Progress], None] | None = None,
        failed: Callable[[BaseException], None] | None = None,
        deps: DepsT | None = None,
    ) -> None:
        self.call_id = call_id
        self.deps = cast(DepsT, deps)  # None only if the program has passed none
        self.cancelled = threading.Event()
        self._emit = emit
        self._failed = failed
        self._loop = _running_loop()

    def progress(self, message: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Report progress; dropped if the context has no emit."""
        if self._emit is None:
            return
        progress = Progress(message=message, done=done, total=total)
        if self._loop is None or self._loop is _running_loop():
            self._emit(progress)
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._emit, progress)

    def failed(self, error: BaseException) -> None:
        """Report the exception of the tool, with its traceback."""
        if self._failed is not None:
            self._failed(error)
        else:
            _log.info("A tool raised %s.", type(error).__name__, exc_info=error)


_current: ContextVar[Context[Any] | None] = ContextVar("toolwire_tool_context", default=None)


def current() -> Context[Any]:
    """The context of the current call, or an empty one."""
    return _current.get() or Context()


@contextmanager
def serving(context: Context[Any]) -> Iterator[Context[Any]]:
    """Set the context for everything that runs inside."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def is_task_cancelled() -> bool:
    """Whether a CancelledError comes from a cancellation of the current task, not from something inside it."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
