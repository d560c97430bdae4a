"""Other programs: which are trusted, what of the environment they see, and that they end with all they have started."""

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

from .limits import Budget

_KEPT = re.compile(r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|XDG_RUNTIME_DIR")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|SESSION", re.IGNORECASE)
_MARK = "TOOLWIRE_COMMAND"
_TICK = 0.05  # seconds between two looks at whether it is time to stop
_LAST_BYTES = 0.2  # seconds for what was printed just before the end
_ROUNDS = 20
_PIECE = 1 << 16
_IS_LINUX = sys.platform == "linux"


class Ended(Struct, frozen=True, kw_only=True):
    """code is None if it was stopped; left_running: it had ended, and something it had started had not."""

    code: int | None
    left_running: bool = False


def program(name: str, root: str) -> str | None:
    """Where a program is, if it is none that a tool could have written."""
    found = shutil.which(name)
    if found is None or not os.path.isabs(found):
        return None
    for path in (found, os.path.realpath(found)):
        if Path(path).is_relative_to(root):
            return None
    return found


def environment(wanted: Sequence[str] = (), source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What programs see: what is needed to run at all and what the owner named; never what is named like a secret."""
    kept = {name: value for name, value in source.items() if _KEPT.fullmatch(name) or name in wanted}
    kept = {name: value for name, value in kept.items() if not is_secret(name)}
    return kept | {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def run(
    arguments: Sequence[str],
    budget: Budget,
    take: Callable[[bytes], bool],
    *,
    folder: str,
    variables: Mapping[str, str],
    files: Sequence[int] = (),
    with_strays: bool = False,
    errors: int = subprocess.STDOUT,
) -> Ended:
    """Run a program and hand over what it prints until it ends, take() has had enough or the budget is over.

    Its group is ended in any case; with_strays looks for what left the group, too.
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
            is_all = _hand_over(process, process.stdout.fileno(), budget, take)
            while is_all and not _has_exited(process) and not budget.is_over:
                time.sleep(_TICK / 10)
            is_running = not _has_exited(process)
        finally:
            left_running = _end(process, mark if with_strays else "")
    return Ended(code=None if is_running else process.returncode, left_running=left_running and not is_running)


def _hand_over(process: subprocess.Popen[bytes], pipe: int, budget: Budget, take: Callable[[bytes], bool]) -> bool:
    """Whether it was heard to its end: the end of its output, or its own while others still hold the pipe."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    last = float("inf")
    while not budget.is_over and time.monotonic() < last:
        if poll.poll(_TICK * 1000):
            piece = os.read(pipe, _PIECE)
            if not piece:
                return True
            if not take(piece):
                return False
        if last == float("inf") and _has_exited(process):
            last = time.monotonic() + _LAST_BYTES
    return not budget.is_over


def _has_exited(process: subprocess.Popen[bytes]) -> bool:
    """Without taking its status where that can be helped: until then its number, and its group's, is no other's."""
    if process.returncode is not None:
        return True
    if not _IS_LINUX:
        return process.poll() is not None
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _end(process: subprocess.Popen[bytes], mark: str) -> bool:
    """Kill its group and what left the group; whether anything but itself was there to be killed."""
    others = bool(mark) and _others_in(process.pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _kill_marked(mark) or others


def _others_in(group: int) -> bool:
    for number in _processes():
        with contextlib.suppress(OSError, ValueError):
            state, _, found = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[:3]
            if int(found) == group and number != group and state not in "ZX":
                return True
    return False


def _kill_marked(mark: str) -> bool:
    """What began a session of its own still has the environment it was started with."""
    was_any = False
    for _ in range(_ROUNDS if mark else 0):
        killed = [number for number in _processes() if _kill_if_marked(number, f"{_MARK}={mark}".encode())]
        if not killed:
            break
        was_any = True
        time.sleep(_TICK / 10)
    return was_any


def _kill_if_marked(number: int, mark: bytes) -> bool:
    try:
        handle = os.pidfd_open(number)
    except OSError:
        return False
    try:
        if mark not in Path(f"/proc/{number}/environ").read_bytes().split(b"\0"):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if _IS_LINUX else []
