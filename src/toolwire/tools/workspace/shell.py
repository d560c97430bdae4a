"""Run a command in the root, with a time-out, a bounded output and no process left behind."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from typing import Literal

from msgspec import Struct

from .confinement import Root
from .limits import Budget, Limits
from .messages import ToolRefused
from .programs import find_program, program_environment, run
from .sandbox import Sandbox, Shell, find_sandbox, git_mounts

DEFAULT_SECONDS = 120.0


class Unconfined(ToolRefused):
    """A sandbox is required, and there is none."""


class CommandResult(Struct, frozen=True, kw_only=True):
    """head is standard output and standard error; if they are too long, left_out bytes are missing between head and tail.

    code is negative for a signal, None if the command was stopped. limit: the time-out in seconds. left_running: the command left children running, which were killed.
    """

    head: str
    tail: str
    left_out: int
    code: int | None
    stopped: Literal["", "timeout", "flood"]
    limit: float
    seconds: float
    confinement: str
    left_running: bool


class Runner:
    """Runs commands in one root; the first one finds out whether there is a sandbox."""

    def __init__(self, root: Root, limits: Limits, shell: Shell) -> None:
        self._root = root
        self._limits = limits
        self._shell = shell
        self._sandbox: Sandbox | None = None
        self._lock = threading.Lock()

    @property
    def confinement(self) -> str:
        """Whether commands are sandboxed, and why not; "" before the first one."""
        return "" if self._sandbox is None else self._sandbox.description

    def run(self, budget: Budget, command: str, seconds: float | None = None) -> CommandResult:
        self._check(command)
        bash = find_program("bash", self._root.path)
        if bash is None:
            raise ToolRefused("there is no bash on this machine, so no command can be run.")
        sandbox = self._find_sandbox(bash, budget)
        limit = min(max(DEFAULT_SECONDS if seconds is None else seconds, 0.1), self._limits.command_seconds)
        budget = budget.shortened(limit)
        output = BoundedOutput(self._limits.command_output_bytes, self._limits.command_flood_bytes)
        started = time.monotonic()
        with git_mounts(self._root.path) if sandbox.arguments else nullcontext(()) as mounts:
            ended = run(
                [*sandbox.arguments, *mounts, bash, "-c", command],
                budget,
                output.feed,
                folder=self._root.path,
                variables=program_environment(self._shell.environment) | sandbox.variables,
                with_strays=True,
            )
        budget.check()
        head, tail, left_out = output.parts()
        return CommandResult(
            head=head,
            tail=tail,
            left_out=left_out,
            code=ended.code,
            stopped="" if ended.code is not None else "flood" if output.is_flood else "timeout",
            limit=limit,
            seconds=time.monotonic() - started,
            confinement=sandbox.description,
            left_running=ended.left_running,
        )

    def _check(self, command: str) -> None:
        if len(command.encode("utf-8", "replace")) > self._limits.command_characters:
            most = self._limits.command_characters
            raise ToolRefused(f"the command has more than {most:,} characters; write a script to a file and run that.")
        if "\0" in command or any("\ud800" <= letter <= "\udfff" for letter in command):
            raise ToolRefused("the command holds a NUL or half a character (a lone surrogate); leave that out.")
        if not command.strip():
            raise ToolRefused("the command is empty; write what bash is to run.")

    def _find_sandbox(self, bash: str, budget: Budget) -> Sandbox:
        with self._lock:
            if self._sandbox is None:
                self._sandbox = find_sandbox(self._shell, self._root.path, bash, budget)
        if self._sandbox.why_not and self._shell.sandbox == "required":
            raise Unconfined(f"commands may run only in a sandbox, and there is none: {self._sandbox.why_not}.")
        return self._sandbox


class BoundedOutput:
    """The beginning and the end of an output, with a bound on memory. More than `flood` bytes stop the command."""

    def __init__(self, most: int, flood: int) -> None:
        self._half = most // 2
        self._flood = flood
        self._head = bytearray()
        self._tail = bytearray()
        self._tail_size = 0

    @property
    def size(self) -> int:
        return len(self._head) + self._tail_size

    @property
    def is_flood(self) -> bool:
        return self.size > self._flood

    def feed(self, data: bytes) -> bool:
        """Whether more is accepted."""
        room = self._half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        rest = data[max(room, 0) :]
        self._tail += rest
        self._tail_size += len(rest)
        if len(self._tail) > 2 * self._half:
            del self._tail[: len(self._tail) - self._half]
        return not self.is_flood

    def parts(self) -> tuple[str, str, int]:
        """The beginning, the end, and how many bytes are missing between them; the beginning is all if none are."""
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        left_out = self._tail_size - len(tail)
        if not left_out:
            return _decode(bytes(self._head) + tail), "", 0
        return _decode(bytes(self._head)), _decode(tail), left_out


def _decode(output: bytes) -> str:
    return output.decode("utf-8", "replace").replace("\0", "\ufffd")
