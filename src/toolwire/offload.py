"""Work on large inputs, in threads beside the event loop.

To read a body of 40 MB takes a quarter of a second, and to compile the schemas in it may take many. On the event loop every other request
would wait for that. Python runs one thread at a time, but it changes threads every few milliseconds, and between two calls into C, so the
loop goes on while a thread works. Small inputs stay on the loop: handing over costs about a tenth of a millisecond.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

LARGE = 1 << 20  # bytes of JSON, which take the loop a few milliseconds
_THREADS = 2  # each competes with the loop for the interpreter, so more would only make others wait


async def offload(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """What the function returns or raises. When this is cancelled, the function runs on to its end, and nobody gets its result."""
    return await asyncio.get_running_loop().run_in_executor(_executor(), lambda: function(*args, **kwargs))


@cache
def _executor() -> ThreadPoolExecutor:
    """Made with the first work, so a process may fork before it."""
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="toolwire-offload")
