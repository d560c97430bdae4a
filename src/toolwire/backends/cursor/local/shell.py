"""Commands in the workspace, as the results of the execs that ask for one."""

from __future__ import annotations

import re
from shlex import quote as word
from typing import Any

from msgspec import Struct

from ....tools.workspace.confinement import Root
from ....tools.workspace.limits import COMMANDS, Limits, off_loop
from ....tools.workspace.messages import Refused
from ....tools.workspace.shell import Command, Runner, Unconfined
from ..wire import agent
from ..wire.execs import Exec

_STATUS = re.compile(r"(?:(.*)\n)?\[((?:exit code (\d+)|ended by signal (\d+)|stopped).*)\]", re.DOTALL)
_SPARE = 10.0
OPT_OUT = 'Install bubblewrap on the machine of the gateway, or set sandbox = "auto" for this back end to run commands without it.'
_TIMED_OUT = 124  # as timeout(1) says it


class Ended(Struct, frozen=True):
    """What was printed, standard error with it; stopped: why it was not let go on."""

    text: str
    code: int
    stopped: str = ""


async def run(root: Root, limits: Limits, runner: Runner, exec: Exec) -> list[Any]:
    """One result, or the events of a stream."""
    try:
        command = Command(command=_command(root, exec), timeout_seconds=_seconds(exec))
        seconds = limits.command_seconds + _SPARE
        output = await off_loop(lambda budget: runner.run(budget, command), seconds, COMMANDS)
    except Unconfined as refusal:
        return [_refused(exec, f"{refusal} {OPT_OUT}")]
    except Refused as refusal:
        return [_refused(exec, str(refusal))]
    except OSError as fault:
        return [_refused(exec, f"the command could not be started: {fault.strerror or 'unknown fault'}.")]
    ended = _ended("".join(getattr(part, "text", "") for part in output.parts))
    if exec.kind == "shell_stream":
        return _stream(exec, ended)
    if exec.kind == "pi_bash":
        return [_pi(ended)]
    return [_result(exec, ended, runner.seconds(command))]


def _command(root: Root, exec: Exec) -> str:
    """Begun in the folder that was asked for, which must lie in the workspace."""
    folder = "" if exec.kind == "pi_bash" else exec.args.working_directory
    if not folder or not exec.args.command.strip():
        return str(exec.args.command)
    with root.folder(folder) as place:
        inside = "/".join(place.parts)
    return f"cd -- ./{word(inside)} || exit 1\n{exec.args.command}" if inside else str(exec.args.command)


def _seconds(exec: Exec) -> float | None:
    """Milliseconds, but for pi_bash; none given is what is usual."""
    if exec.kind == "pi_bash":
        return exec.args.timeout if exec.args.HasField("timeout") and exec.args.timeout > 0 else None
    given = [exec.args.timeout, exec.args.hard_timeout if exec.args.HasField("hard_timeout") else 0]
    return min((value / 1000 for value in given if value > 0), default=None)


def _ended(text: str) -> Ended:
    """The runner's last line says how it ended."""
    found = _STATUS.fullmatch(text)
    if found is None:
        return Ended(text, 1)
    printed = found[1] + "\n" if found[1] else ""
    if found[3]:
        return Ended(printed, int(found[3]))
    if found[4]:
        return Ended(printed, 128 + int(found[4]))
    return Ended(printed, _TIMED_OUT, found[2])


def _refused(exec: Exec, why: str) -> Any:
    if exec.kind == "pi_bash":
        return agent.PiBashExecResult(error=agent.PiBashExecError(error=why))
    about = {"command": exec.args.command, "working_directory": exec.args.working_directory}
    rejected = agent.ShellRejected(**about, reason=why)
    return agent.ShellStream(rejected=rejected) if exec.kind == "shell_stream" else agent.ShellResult(rejected=rejected)


def _stream(exec: Exec, ended: Ended) -> list[Any]:
    events = [agent.ShellStream(start=agent.ShellStreamStart())]
    if text := ended.text + (f"[{ended.stopped}]" if ended.stopped else ""):
        events.append(agent.ShellStream(stdout=agent.ShellStreamStdout(data=text)))
    last = agent.ShellStreamExit(code=ended.code, cwd=exec.args.working_directory, aborted=bool(ended.stopped))
    if _is_timeout(ended):
        last.abort_reason = agent.SHELL_ABORT_REASON_TIMEOUT
    return [*events, agent.ShellStream(exit=last)]


def _result(exec: Exec, ended: Ended, seconds: float) -> agent.ShellResult:
    about = {"command": exec.args.command, "working_directory": exec.args.working_directory}
    if _is_timeout(ended) and not ended.text:
        return agent.ShellResult(timeout=agent.ShellTimeout(**about, timeout_ms=int(seconds * 1000)))
    if ended.code == 0:
        return agent.ShellResult(success=agent.ShellSuccess(**about, exit_code=0, stdout=ended.text))
    failure = agent.ShellFailure(**about, exit_code=ended.code, stdout=ended.text, stderr=ended.stopped)
    failure.aborted = bool(ended.stopped)
    if _is_timeout(ended):
        failure.abort_reason = agent.SHELL_ABORT_REASON_TIMEOUT
    return agent.ShellResult(failure=failure)


def _pi(ended: Ended) -> agent.PiBashExecResult:
    if ended.code == 0:
        return agent.PiBashExecResult(success=agent.PiBashExecSuccess(output=ended.text))
    words = ended.stopped or f"exit code {ended.code}"
    return agent.PiBashExecResult(error=agent.PiBashExecError(error=f"{ended.text}[{words}]"))


def _is_timeout(ended: Ended) -> bool:
    return ended.stopped.startswith("stopped after")
