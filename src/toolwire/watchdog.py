"""Kills child programs that outlive this process: a small shell reads a pipe and kills the registered process groups when the pipe closes.

Most child programs exit when their input ends. One that hangs does not, and `kill -9` gives this process no chance to end it. The shell needs no
threads, no `preexec_fn` and no Linux features, and the pipe closes however this process ends. Programs get two seconds to exit by
themselves; then their whole process group gets SIGKILL.
"""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
from contextlib import suppress
from threading import Lock

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())

_SHELL = "/bin/sh"
_ROUNDS = 10  # fifths of a second
# Groups that have ended are dropped five times a second, so that a reused group id is not hit.
_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r what group; do
    left=
    for known in $groups; do [ "$known" = "$group" ] || left="$left $known"; done
    groups=$left
    [ "$what" = remove ] || groups="$groups $group"
done
rounds=$1
while [ "$rounds" -gt 0 ]; do
    rounds=$((rounds - 1))
    left=
    for group in $groups; do kill -s 0 -- "-$group" && left="$left $group"; done
    groups=$left
    [ -n "$groups" ] || exit 0
    sleep 0.2
done
for group in $groups; do kill -s KILL -- "-$group"; done
"""


class Watchdog:
    """Thread-safe. The shell starts with the first group; if that fails, no group is watched and a warning is logged.

    rounds: fifths of a second that groups get to end by themselves.
    """

    def __init__(self, shell: str = _SHELL, rounds: int = _ROUNDS) -> None:
        self._command = (shell, "-c", _SCRIPT, shell, str(rounds))
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._is_possible = os.name == "posix"

    @property
    def groups(self) -> frozenset[int]:
        return frozenset(self._groups)

    @property
    def pid(self) -> int:
        """The process id of the shell; 0 if it is not running."""
        return self._process.pid if self._process is not None else 0

    def add(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            self._send("add", group)

    def remove(self, group: int) -> None:
        """Call this when the group has ended or before it is sent SIGKILL."""
        with self._lock:
            if group in self._groups:
                self._groups.discard(group)
                self._send("remove", group)

    def close(self) -> None:
        """The shell kills the groups that are still registered."""
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """For a forked process: the shell belongs to its parent."""
        self._lock = Lock()
        self._groups.clear()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # it is not our child
            if process.stdin is not None:
                process.stdin.close()

    def _send(self, what: str, group: int) -> None:
        if not self._is_possible:
            return
        try:
            if self._process is None:
                raise BrokenPipeError
            self._write(f"{what} {group}\n")
        except BrokenPipeError:
            self._start()

    def _start(self) -> None:
        """Start the shell, again if it was killed, and send it every group."""
        self._stop()
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
            self._write("".join(f"add {group}\n" for group in self._groups))
        except OSError as error:
            self._process, self._is_possible = None, False
            _log.warning(
                "hung child programs will outlive a killed gateway: %s cannot be started (%s).",
                self._command[0],
                error.strerror or "unknown reason",
            )

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
            process.wait()

    def _write(self, lines: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(lines.encode())


WATCHDOG = Watchdog()
atexit.register(WATCHDOG.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WATCHDOG.forget)
