"""An app-server as a child process: lines on its standard input and output. close() leaves no process behind.

The npm package starts the real program from a script of node, so everything is done to the whole process group. Should this process
be killed, the child's standard input ends with it, and an app-server exits; one that hangs is ended by `watchdog.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .... import subprocesses as children
from ....errors import UpstreamError, quote
from ...sessions import SessionLost
from ..wire.names import skipped_tool

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # without a log handler the error is all there is

_CHUNK = 1 << 18
_STDERR_KEPT = 8192
_LONGEST_LINE = 4096  # of the log, that is read
_MOST_SKIPPED = 1000  # names of tools
_TOLD = 200  # characters of its end that stand in the log
_LEAVING = 2.0  # seconds after its input has ended
_ENDING = 1.0  # and after SIGTERM
_REAPING = 0.5  # between the end of its output and its own, so that we can tell how it ended
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_SECRET = re.compile(r"\bsk-[\w-]{6,}|\beyJ[\w-]{10,}[\w.-]*|(?i:bearer)\s+[\w.~+/-]+=*")
_LEAST_SECRET = 8  # anything shorter is a word that may stand there by chance
_REST_OF_WORD = re.compile(r"^\S+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


async def start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], secrets: Iterable[str] = ()
) -> ChildProcess:
    """Raises UpstreamError with what to do where the program cannot be started. secrets: what it knows beside its environment."""
    program = shutil.which(command[0], path=environment.get("PATH", os.defpath))
    if program is None:
        raise _not_started(
            f"{_named(command)} is {'not there, or no program' if os.sep in command[0] else 'not on PATH'}.",
            "Install it with `npm install -g @openai/codex`, or set command to where it is.",
        )
    try:
        found = os.path.abspath(program)  # it is found from where we are, and started somewhere else
        process = await children.start(found, *command[1:], folder=folder, environment=environment)
    except OSError as error:
        raise _not_started(
            f"{_named(command)} cannot be started: {error.strerror or 'unknown reason'}.",
            "Check that it is a program for this machine and that there is memory and room for it.",
        ) from None
    hidden = [*secrets, *(value for name, value in environment.items() if is_secret_name(name))]
    return ChildProcess(process, tuple(command), hidden)


def shown(command: Sequence[str]) -> str:
    """As one line, without the values of settings."""
    words = (f"{word.partition('=')[0]}=***" if "=" in word else word for word in command)
    return _SECRET.sub("***", " ".join(words))


def is_secret_name(name: str) -> bool:
    """Whether a value of this name must not be shown."""
    return _SECRET_NAME.search(name) is not None


class ChildProcess:
    """A AppServerChannel to a process that we have started."""

    def __init__(self, process: asyncio.subprocess.Process, command: tuple[str, ...], secrets: Iterable[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._command = command
        known = {secret for secret in secrets if len(secret) >= _LEAST_SECRET}
        self._secrets = sorted(known, key=len, reverse=True)  # one may be the beginning of another
        self._stderr = b""
        self._line = b""  # of the log, that has not ended yet
        self._skipped: frozenset[str] = frozenset()
        self._keeping = asyncio.create_task(self._keep_errors(process.stderr))
        self._closing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, line: bytes) -> None:
        if self._stdin.is_closing():  # asyncio would write a line into the log for each
            raise SessionLost(self.exit_reason())
        try:
            self._stdin.write(line)
            await self._stdin.drain()
        except (OSError, RuntimeError):  # RuntimeError: of a transport that is closed already
            await self._last_breath()
            raise SessionLost(self.exit_reason()) from None

    async def receive(self) -> bytes:
        data = b""
        with suppress(OSError):
            data = await self._stdout.read(_CHUNK)
        if not data:
            await self._last_breath()
            if self._closing is None:
                _log.warning("%s", self._obituary())
        return data

    def exit_reason(self) -> str:
        code = self._process.returncode
        if code is None:
            return "the app-server has closed its output."
        if code < 0:
            return f"the app-server was ended by signal {-code}."
        return f"the app-server has ended with code {code}."

    def skipped_tools(self) -> frozenset[str]:
        return self._skipped

    def last_output(self) -> str:
        """The end of what it wrote to standard error, without what must not be shown even to whoever reads the log."""
        text = _COLOUR.sub("", self._stderr.decode("utf-8", "replace"))
        if len(self._stderr) == _STDERR_KEPT:
            text = _REST_OF_WORD.sub("", text)  # what is left of a secret is not known as one
        for secret in self._secrets:
            text = text.replace(secret, "***")
        lines = (line.strip() for line in _SECRET.sub("***", text).splitlines())
        return " | ".join(filter(None, lines))[-_TOLD:]

    async def close(self) -> None:
        """In a task of its own, so that a cancelled caller does not interrupt it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        """End of input, SIGTERM, SIGKILL, each with its time; then whatever is left of the group."""
        self._stdin.close()
        draining = asyncio.create_task(self._drain())
        if not await children.wait_for_exit(self._process, _LEAVING):
            self._signal(signal.SIGTERM)
            await children.wait_for_exit(self._process, _ENDING)
        self._signal(signal.SIGKILL)
        await children.wait_for_exit(self._process, _ENDING)
        for task in (draining, self._keeping):
            task.cancel()
        await asyncio.gather(draining, self._keeping, return_exceptions=True)
        children.close_pipes(self._process)

    async def _drain(self) -> None:
        """Reads on: a process that is blocked on its output does not see the end of its input."""
        with suppress(OSError, RuntimeError):  # RuntimeError: somebody else is still reading
            while await self._stdout.read(_CHUNK):
                pass

    async def _last_breath(self) -> None:
        """Waits a moment for the exit code and the last output on standard error."""
        await children.wait_for_exit(self._process, _REAPING)
        await asyncio.wait([self._keeping], timeout=_REAPING)  # a grandchild may hold the pipe for longer

    def _signal(self, number: int) -> None:
        children.signal_group(self._process, number)

    async def _keep_errors(self, stderr: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while chunk := await stderr.read(_CHUNK):
                self._stderr = (self._stderr + chunk)[-_STDERR_KEPT:]
                self._read_log(chunk)

    def _read_log(self, chunk: bytes) -> None:
        *lines, rest = (self._line + chunk).split(b"\n")
        self._line = rest[:_LONGEST_LINE]
        for line in lines:
            if b"skipping" in line and len(self._skipped) < _MOST_SKIPPED:
                name = skipped_tool(_COLOUR.sub("", line[:_LONGEST_LINE].decode("utf-8", "replace")))
                self._skipped |= {name} if name else set()

    def _obituary(self) -> str:
        """For the log only: the command has paths of the owner, and the last output may be about any client."""
        said = self.last_output()
        told = f" Its last output was {quote(said)}." if said else ""
        return f"Codex, started as {quote(shown(self._command))}: {self.exit_reason()}{told}"


def _named(command: Sequence[str]) -> str:
    """Without the path, because clients read this."""
    return f"the command {quote(Path(command[0]).name)}"


def _not_started(why: str, hint: str) -> UpstreamError:
    return UpstreamError(why, status=502, code="codex_not_started", hint=hint)
