"""The tool that runs a command: in the root, for so long, with so much output, and nothing of it stays behind."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext

from msgspec import Struct

from ..base import Output
from .confinement import Root
from .limits import Budget, Limits
from .messages import Refused
from .programs import Ended, environment, program, run
from .repository import protected
from .sandbox import Shell, Walls, walls

USUAL_SECONDS = 120.0


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: str
    timeout_seconds: float | None = None


class Unconfined(Refused):
    """A sandbox is required, and there is none."""


class Kept:
    """The beginning and the end of what was printed; never more in memory than was allowed."""

    def __init__(self, most: int, flood: int) -> None:
        self._half = most // 2
        self._flood = flood
        self._head = bytearray()
        self._tail = bytearray()
        self._tail_size = 0

    @property
    def size(self) -> int:
        return len(self._head) + self._tail_size

    def take(self, piece: bytes) -> bool:
        room = self._half - len(self._head)
        self._head += piece[:room] if room > 0 else b""
        rest = piece[max(room, 0) :]
        self._tail += rest
        self._tail_size += len(rest)
        if len(self._tail) > 2 * self._half:
            del self._tail[: len(self._tail) - self._half]
        return self.size <= self._flood

    def text(self) -> str:
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        left_out = self._tail_size - len(tail)
        if not left_out:
            return _decoded(bytes(self._head) + tail)
        return f"{_decoded(bytes(self._head))}\n[... {left_out:,} bytes left out ...]\n{_decoded(tail)}"


class Runner:
    """Commands in one root; whether there are walls around them is found out once, when the first is run."""

    def __init__(self, root: Root, limits: Limits, shell: Shell) -> None:
        self._root = root
        self._limits = limits
        self._shell = shell
        self._walls: Walls | None = None
        self._lock = threading.Lock()

    @property
    def confinement(self) -> str:
        """Whether commands are confined, and why not; "" before the first was run."""
        return "" if self._walls is None else _walled(self._walls)

    def seconds(self, asked: Command) -> float:
        wanted = USUAL_SECONDS if asked.timeout_seconds is None else asked.timeout_seconds
        return min(max(wanted, 0.1), self._limits.command_seconds)

    def run(self, budget: Budget, asked: Command) -> Output:
        self._require_sane(asked.command)
        bash = program("bash", self._root.path)
        if bash is None:
            raise Refused("there is no bash on this machine, so no command can be run.")
        around = self._find_walls(bash, budget)
        budget = budget.shortened(self.seconds(asked))
        kept = Kept(self._limits.command_output_bytes, self._limits.command_flood_bytes)
        variables = environment(self._shell.environment) | around.variables
        started = time.monotonic()
        with protected(self._root.path) if around.arguments else nullcontext(()) as mounts:
            ended = run(
                [*around.arguments, *mounts, bash, "-c", asked.command],
                budget,
                kept.take,
                folder=self._root.path,
                variables=variables,
                with_strays=True,
            )
        budget.check()
        took = time.monotonic() - started
        status = [self._fate(ended, kept, asked), f"{took:.1f} s", _walled(around)]
        if ended.left_running:
            status.append("what it had left running in the background was ended")
        text = kept.text()
        return Output.of_text(f"{text}{_break_after(text)}[{'; '.join(status)}]", is_error=ended.code is None)

    def _require_sane(self, command: str) -> None:
        if len(command.encode("utf-8", "replace")) > self._limits.command_characters:
            most = self._limits.command_characters
            raise Refused(f"the command has more than {most:,} characters; write a script to a file and run that.")
        if "\0" in command or any("\ud800" <= letter <= "\udfff" for letter in command):
            raise Refused("the command holds a NUL or half a character (a lone surrogate); leave that out.")
        if not command.strip():
            raise Refused("the command is empty; write what bash is to run.")

    def _find_walls(self, bash: str, budget: Budget) -> Walls:
        with self._lock:
            if self._walls is None:
                self._walls = walls(self._shell, self._root.path, bash, budget)
        if self._walls.why_not and self._shell.sandbox == "required":
            raise Unconfined(f"commands may run only in a sandbox, and there is none: {self._walls.why_not}.")
        return self._walls

    def _fate(self, ended: Ended, kept: Kept, asked: Command) -> str:
        if ended.code is None and kept.size > self._limits.command_flood_bytes:
            return f"stopped because it printed more than {self._limits.command_flood_bytes:,} bytes; print less"
        if ended.code is None:
            return (
                f"stopped after {self.seconds(asked):g} seconds; ask for more with timeout_seconds, or do less at once"
            )
        return f"exit code {ended.code}" if ended.code >= 0 else f"ended by signal {-ended.code}"


def _walled(around: Walls) -> str:
    return f"not sandboxed: {around.why_not}" if around.why_not else "sandboxed"


def _decoded(output: bytes) -> str:
    return output.decode("utf-8", "replace").replace("\0", "\ufffd")


def _break_after(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"
