"""Which processes there are, by what /proc tells; tests that need it skip where there is none."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest


def marked(mark: str) -> list[int]:
    """Running processes with this text in their environment, zombies left out (they have none)."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("there is no /proc here")
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and mark.encode() in (Path("/proc") / name / "environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def zombies() -> list[int]:
    """Children of this process that nobody has waited for."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if not children.exists():
        pytest.skip("there is no /proc here")
    return [int(pid) for pid in children.read_text().split() if "Z" in _state(int(pid))]


def all_gone(mark: str, seconds: float = 3.0) -> bool:
    deadline = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not marked(mark)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
