"""The memory of a process and of what it has started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from toolwire.backends.codex.process_memory import memory_of

pytestmark = pytest.mark.slow


def test_memory_that_nobody_tells_is_none() -> None:
    assert memory_of(0) == 0
    assert memory_of(1 << 30) == 0


@pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="there is no /proc here")
def test_what_it_has_started_counts() -> None:
    def alone() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    assert memory_of(os.getpid()) >= alone() * 0.9 > 1 << 20
    with subprocess.Popen(["sh", "-c", "sleep 60 & echo; wait"], stdout=subprocess.PIPE, process_group=0) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert memory_of(child.pid) > int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
        os.killpg(child.pid, 9)
