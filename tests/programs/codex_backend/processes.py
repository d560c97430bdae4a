"""The processes in /proc: their descendants, and which of them still run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """started distinguishes two processes with the same id."""

    pid: int
    parent: int
    state: str
    started: str
    command: str

    @property
    def is_zombie(self) -> bool:
        return self.state == "Z"


def everybody() -> list[Process]:
    found = (_process(int(entry.name)) for entry in _PROC.iterdir() if entry.name.isdigit())
    return [process for process in found if process]


def below(pid: int) -> list[Process]:
    """All descendants of this process."""
    every = everybody()
    family, is_growing = {pid}, True
    while is_growing:
        more = {process.pid for process in every if process.parent in family} - family
        family |= more
        is_growing = bool(more)
    return [process for process in every if process.pid in family and process.pid != pid]


def left_of(known: Iterable[Process]) -> list[Process]:
    """Those that still run; a zombie counts as ended."""
    now = {process.pid: process for process in everybody()}
    return [
        now[process.pid]
        for process in known
        if process.pid in now and now[process.pid].started == process.started and not now[process.pid].is_zombie
    ]


def living_in(folder: Path) -> list[Process]:
    """Running processes with the folder in their environment, in their arguments or as working directory."""
    return [process for process in everybody() if not process.is_zombie and _is_in(process.pid, str(folder))]


def eventually(claim: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if claim():
            return True
        time.sleep(0.05)
    return claim()


def _process(pid: int) -> Process | None:
    try:
        # The name is in parentheses and may contain anything, including spaces and parentheses.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        command = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return None
    return Process(pid, int(fields[1]), fields[0], fields[19], command)


def _is_in(pid: int, folder: str) -> bool:
    here = _PROC / str(pid)
    try:
        told = (here / "environ").read_bytes() + (here / "cmdline").read_bytes()
        return folder.encode() in told or str((here / "cwd").readlink()).startswith(folder)
    except OSError:
        return False
