"""An app-server as a child process: lines on its standard input and output. close() leaves no process behind.

The npm package starts the real program from a Node.js script, so signals go to the whole process group. If this process is killed, the
child's standard input ends, and an app-server exits; one that hangs is killed by `watchdog.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .... import subprocesses
from ....errors import UpstreamError, quote
from ...sessions import SessionLost
from ..wire.names import skipped_tool

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # without a log handler the error is all there is

_CHUNK = 1 << 18
_MAX_STDERR = 8192
_MAX_LINE = 4096  # bytes of a line of its log
_MAX_SKIPPED = 1000  # names of tools
_MAX_LOGGED = 200  # characters of its last output in our log
_EXIT_SECONDS = 2.0  # after the end of its input
_REAP_SECONDS = 0.5  # between the end of its output and its exit, so that the exit code is known
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_SECRET = re.compile(r"\bsk-[\w-]{6,}|\beyJ[\w-]{10,}[\w.-]*|(?i:bearer)\s+[\w.~+/-]+=*")
_MIN_SECRET = 8  # characters; a shorter value may occur by chance
_REST_OF_WORD = re.compile(r"^\S+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


async def start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], secrets: Iterable[str] = ()
) -> ChildProcess:
    """Raises UpstreamError if the program cannot be started. secrets: those that it knows beside its environment."""
    program = shutil.which(command[0], path=environment.get("PATH", os.defpath))
    if program is None:
        raise _not_started(
            f"{_named(command)} is {'not there, or no program' if os.sep in command[0] else 'not on PATH'}.",
            "Install it with `npm install -g @openai/codex`, or set command to where it is.",
        )
    try:
        path = os.path.abspath(program)  # its working folder is another one
        process = await subprocesses.start(path, *command[1:], folder=folder, environment=environment)
    except OSError as error:
        raise _not_started(
            f"{_named(command)} cannot be started: {error.strerror or 'unknown reason'}.",
            "Check that it is a program for this machine, and that memory and disk are not full.",
        ) from None
    hidden = [*secrets, *(value for name, value in environment.items() if is_secret_name(name))]
    return ChildProcess(process, tuple(command), hidden)


def redact_command(command: Sequence[str]) -> str:
    """As one line, without the values of settings."""
    words = (f"{word.partition('=')[0]}=***" if "=" in word else word for word in command)
    return _SECRET.sub("***", " ".join(words))


def is_secret_name(name: str) -> bool:
    """Whether a value of this name must not be shown."""
    return _SECRET_NAME.search(name) is not None


class ChildProcess:
    """An AppServerChannel to a process that we have started."""

    def __init__(self, process: asyncio.subprocess.Process, command: tuple[str, ...], secrets: Iterable[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._command = command
        known = {secret for secret in secrets if len(secret) >= _MIN_SECRET}
        self._secrets = sorted(known, key=len, reverse=True)  # one may be the start of another
        self._stderr = b""
        self._line = b""  # the incomplete last line of its log
        self._skipped: frozenset[str] = frozenset()
        self._logging = asyncio.create_task(self._read_errors(process.stderr))
        self._closing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, line: bytes) -> None:
        if self._stdin.is_closing():  # asyncio would log each attempt
            raise SessionLost(self.exit_reason())
        try:
            self._stdin.write(line)
            await self._stdin.drain()
        except (OSError, RuntimeError):  # RuntimeError: the transport is closed
            await self._wait_for_exit()
            raise SessionLost(self.exit_reason()) from None

    async def receive(self) -> bytes:
        data = b""
        with suppress(OSError):
            data = await self._stdout.read(_CHUNK)
        if not data:
            await self._wait_for_exit()
            if self._closing is None:
                output = self.last_output()
                last = f" Its last output was {quote(output)}." if output else ""
                # Only for the log: the command has paths of the owner, and the output may be about any client.
                _log.warning(
                    "Codex, started as %s: %s%s", quote(redact_command(self._command)), self.exit_reason(), last
                )
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
        """The end of its standard error, without secrets."""
        text = _COLOUR.sub("", self._stderr.decode("utf-8", "replace"))
        if len(self._stderr) == _MAX_STDERR:
            text = _REST_OF_WORD.sub("", text)  # a partial secret is not recognised
        for secret in self._secrets:
            text = text.replace(secret, "***")
        lines = (line.strip() for line in _SECRET.sub("***", text).splitlines())
        return " | ".join(filter(None, lines))[-_MAX_LOGGED:]

    async def close(self) -> None:
        """In a task of its own, so that a cancelled caller does not interrupt it."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        draining = asyncio.create_task(self._drain())
        await subprocesses.stop(self._process, _EXIT_SECONDS)
        for task in (draining, self._logging):
            task.cancel()
        await asyncio.gather(draining, self._logging, return_exceptions=True)
        subprocesses.close_pipes(self._process)

    async def _drain(self) -> None:
        """A process that is blocked on its output does not see the end of its input."""
        with suppress(OSError, RuntimeError):  # RuntimeError: another task is still reading
            while await self._stdout.read(_CHUNK):
                pass

    async def _wait_for_exit(self) -> None:
        """Waits a moment for the exit code and the last output on standard error."""
        await subprocesses.wait_for_exit(self._process, _REAP_SECONDS)
        await asyncio.wait([self._logging], timeout=_REAP_SECONDS)  # a grandchild may hold the pipe for longer

    async def _read_errors(self, stderr: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while chunk := await stderr.read(_CHUNK):
                self._stderr = (self._stderr + chunk)[-_MAX_STDERR:]
                self._read_log(chunk)

    def _read_log(self, chunk: bytes) -> None:
        *lines, rest = (self._line + chunk).split(b"\n")
        self._line = rest[:_MAX_LINE]
        for line in lines:
            if b"skipping" in line and len(self._skipped) < _MAX_SKIPPED:
                name = skipped_tool(_COLOUR.sub("", line[:_MAX_LINE].decode("utf-8", "replace")))
                self._skipped |= {name} if name else set()


def _named(command: Sequence[str]) -> str:
    """Without the path, because clients read this."""
    return f"the command {quote(Path(command[0]).name)}"


def _not_started(why: str, hint: str) -> UpstreamError:
    return UpstreamError(why, code="codex_not_started", hint=hint)
