"""Threads for work on large inputs, which would block the event loop.

Decoding a body of 40 MB takes a quarter of a second, and compiling its schemas may take several. On the event loop every other request
would wait. Python runs one thread at a time, but switches every few milliseconds and between calls into C, so the event loop keeps
running. Small inputs stay on the loop, because the switch to a thread costs about 0.1 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

LARGE = 1 << 20  # bytes of JSON, a few milliseconds of decoding
_THREADS = 2  # each competes with the event loop for the interpreter


async def offload(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Run the function in a thread. On cancellation the function runs to its end and its result is dropped."""
    return await asyncio.get_running_loop().run_in_executor(_executor(), lambda: function(*args, **kwargs))


@cache
def _executor() -> ThreadPoolExecutor:
    """Created on first use, so that a process may fork before."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="toolwire-offload")
