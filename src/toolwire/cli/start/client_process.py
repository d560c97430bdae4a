"""Runs a client in this terminal: it gets the signals, and its exit code is ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, TypeAlias

from ...errors import ConfigError

# A terminal sends SIGINT and SIGQUIT to the client as well, SIGTERM and SIGHUP come to us alone.
_FROM_TERMINAL = ("SIGINT", "SIGQUIT", "SIGBREAK")
_FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None
_BY_SIGNAL = 128  # the exit code of a shell for a program that a signal ended, plus the number


def run_client(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Returns its exit code; 128 plus the number of the signal that ended it."""
    with _Signals() as signals:
        try:
            process = subprocess.Popen(command, env=dict(environ))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise ConfigError(f"this program cannot be started: {reason}.", where=command[0]) from None
        signals.forward_to(process)
        code = process.wait()
    return _BY_SIGNAL - code if code < 0 else code


class _Signals:
    """Handlers until the client has ended. A signal before its start is forwarded after it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._former: dict[int, _Handler] = {}

    def __enter__(self) -> _Signals:
        for name in (*_FROM_TERMINAL, *_FORWARDED):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def forward_to(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        for number in self._early:
            process.send_signal(number)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if signal.Signals(number).name in _FROM_TERMINAL and _is_foreground():
            return  # the client has it already
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


def _is_foreground() -> bool:
    """Whether the keys of a terminal send signals to our process group, and so to the client."""
    if not hasattr(os, "tcgetpgrp"):
        return True  # Windows: the console
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and os.tcgetpgrp(stream.fileno()) == os.getpgrp():
                return True
        except (OSError, ValueError):
            continue
    return False
