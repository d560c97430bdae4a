"""Find objects that only the garbage collector can free."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import FrameType, TracebackType

from toolwire.types import Request


def held_by_cycles(work: Callable[[], object]) -> list[str]:
    """Frames, tracebacks, errors and requests in reference cycles after work(): each of them keeps a request body in memory."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        work()
        gc.collect()
        kinds = FrameType | TracebackType | BaseException | Request
        return [repr(found)[:200] for found in gc.garbage if isinstance(found, kinds)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.collect()
        if was_enabled:
            gc.enable()
