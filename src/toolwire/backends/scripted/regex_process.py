"""Searches regular expressions of clients in a separate process, for a limited time.

Python's engine backtracks: a short expression on a short text can take minutes, and a thread that runs it cannot be
stopped. A process can.
"""

from __future__ import annotations

import asyncio
import json
import sys
from weakref import WeakKeyDictionary

from ...subprocesses import close_pipes, kill_group, start

SECONDS = 5.0  # with the start of the process
_AT_ONCE = 4
# One line of JSON comes back: the text that was found, null, or {"error": why}.
_PROGRAM = """
import json, re, sys
request = json.loads(sys.stdin.buffer.read())
try:
    found = re.search(request["pattern"], request["text"])
    answer = found and found[0]
except (re.error, RecursionError, OverflowError, MemoryError) as fault:
    answer = {"error": str(fault) or type(fault).__name__}
sys.stdout.write(json.dumps(answer))
"""


class BadPattern(ValueError):
    """Not a regular expression, or one that takes too long."""


_free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def search(pattern: str, text: str, seconds: float = SECONDS) -> str | None:
    """The first match. Raises BadPattern, and OSError if no process can be started."""
    async with _free.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE)):
        process = await start(sys.executable, "-I", "-S", "-c", _PROGRAM, stderr=asyncio.subprocess.DEVNULL)
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate(json.dumps({"pattern": pattern, "text": text}).encode())
        except TimeoutError:
            raise BadPattern(f"it takes longer than {seconds:g} seconds") from None
        finally:
            if process.returncode is None:
                kill_group(process)
                close_pipes(process)
                await process.wait()
    return _found(output)


def _found(output: bytes) -> str | None:
    try:
        answer = json.loads(output)
    except ValueError:
        raise BadPattern("its process ended without an answer") from None
    if isinstance(answer, dict):
        raise BadPattern(str(answer.get("error")))
    return None if answer is None else str(answer)
