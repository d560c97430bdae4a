"""Child programs of the tools: which ones are trusted, what they see of the environment, and that they end with all their children.

The watchdog ends their process groups if this process is killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ...watchdog import WATCHDOG
from .limits import Budget

_PASSED_ON = re.compile(r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|XDG_RUNTIME_DIR")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|SESSION", re.IGNORECASE)
_MARK = "TOOLWIRE_COMMAND"
_TICK = 0.05  # seconds between two checks of the budget
_LAST_OUTPUT = 0.2  # seconds to read output after the program has exited
_KILL_ROUNDS = 20
_READ_SIZE = 1 << 16
_IS_LINUX = sys.platform == "linux"


class Ended(Struct, frozen=True, kw_only=True):
    """code is None for a program that was stopped; left_running: it exited, and a child was still running."""

    code: int | None
    left_running: bool = False


def find_program(name: str, root: str) -> str | None:
    """The path of a program; None if it is inside the root, where a tool could have written it."""
    found = shutil.which(name)
    if found is None or not os.path.isabs(found):
        return None
    if any(Path(path).is_relative_to(root) for path in (found, os.path.realpath(found))):
        return None
    return found


def program_environment(wanted: Sequence[str] = (), source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a program needs to run and what the owner named, without variables that are named like secrets."""
    passed = {name: value for name, value in source.items() if _PASSED_ON.fullmatch(name) or name in wanted}
    passed = {name: value for name, value in passed.items() if not is_secret(name)}
    return passed | {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def run(
    arguments: Sequence[str],
    budget: Budget,
    feed: Callable[[bytes], bool],
    *,
    folder: str,
    variables: Mapping[str, str],
    files: Sequence[int] = (),
    with_strays: bool = False,
    errors: int = subprocess.STDOUT,
) -> Ended:
    """Run a program and feed its output to feed() until it exits, feed() returns False or the budget is over.

    Its process group is killed in any case; with_strays also finds children that left the group.
    """
    mark = secrets.token_hex(16)
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        cwd=folder,
        env={**variables, _MARK: mark},
        pass_fds=files,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        is_running = True
        try:
            WATCHDOG.add(process.pid)
            is_drained = _read_output(process, process.stdout.fileno(), budget, feed)
            while is_drained and not _has_exited(process) and not budget.is_over:
                time.sleep(_TICK / 10)
            is_running = not _has_exited(process)
        finally:
            left_running = _kill(process, mark if with_strays else "")
    return Ended(code=None if is_running else process.returncode, left_running=left_running and not is_running)


def _read_output(process: subprocess.Popen[bytes], pipe: int, budget: Budget, feed: Callable[[bytes], bool]) -> bool:
    """Whether the output was read to its end, or until the program exited while a child still holds the pipe."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    last = float("inf")
    while not budget.is_over and time.monotonic() < last:
        if poll.poll(_TICK * 1000):
            data = os.read(pipe, _READ_SIZE)
            if not data:
                return True
            if not feed(data):
                return False
        if last == float("inf") and _has_exited(process):
            last = time.monotonic() + _LAST_OUTPUT
    return not budget.is_over


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Leaves the process unreaped where possible, so that its id and its group's are not reused before the group is killed."""
    if process.returncode is not None:
        return True
    if not _IS_LINUX:
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill(process: subprocess.Popen[bytes], mark: str) -> bool:
    """Kill the group and the processes with the mark; whether there was any besides the program itself."""
    has_children = bool(mark) and _has_children(process.pid)
    WATCHDOG.remove(process.pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _kill_marked(mark) or has_children


def _has_children(group: int) -> bool:
    for pid in _pids():
        with contextlib.suppress(OSError, ValueError):
            state, _, found = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
            if int(found) == group and pid != group and state not in "ZX":
                return True
    return False


def _kill_marked(mark: str) -> bool:
    """A process that started a session of its own still has the environment of its parent."""
    has_killed = False
    for _ in range(_KILL_ROUNDS if mark else 0):
        if not [pid for pid in _pids() if _kill_if_marked(pid, f"{_MARK}={mark}".encode())]:
            break
        has_killed = True
        time.sleep(_TICK / 10)
    return has_killed


def _kill_if_marked(pid: int, mark: bytes) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if mark not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if _IS_LINUX else []
