"""How much memory a process and all that it has started take, where the system tells."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MOST = 64  # processes that are looked at


def memory_of(pid: int) -> int:
    """Bytes in use, 0 where nobody tells."""
    waiting, total = [pid] if pid else [], 0
    for _ in range(_MOST):
        if not waiting:
            break
        folder = Path("/proc") / str(waiting.pop())
        with suppress(OSError, ValueError, IndexError):
            total += int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            waiting += map(int, (folder / "task" / folder.name / "children").read_text().split())
    return total
