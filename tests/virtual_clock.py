"""An event loop with a clock of its own, for code without I/O and threads: sleeps and timeouts end at once, in their order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class _VirtualLoop(asyncio.SelectorEventLoop):
    """Moves its clock to the next timer whenever no task is ready."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self.now


class _Selector(selectors.SelectSelector):
    def __init__(self, loop: _VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("no task is ready and no timer is set: the test would wait for ever.")
        if not ready:
            self._loop.now += timeout or 0.0
        return ready


def run_virtually(main: Coroutine[Any, Any, _Result]) -> tuple[_Result, float]:
    """The result, and the seconds that passed on the clock of the loop."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        result = runner.run(main)
        return result, runner.get_loop().time()
