"""Commands in the workspace as results of Cursor's execs."""

from __future__ import annotations

from shlex import quote as quote_word
from typing import Any

from ....tools.workspace.confinement import Root
from ....tools.workspace.limits import COMMANDS, Limits, off_loop
from ....tools.workspace.messages import ToolRefused
from ....tools.workspace.render import render_output, render_status
from ....tools.workspace.shell import CommandResult, Runner, Unconfined
from ..wire import agent
from ..wire.execs import Exec

OPT_OUT = 'Install bubblewrap on the machine of the gateway, or set sandbox = "auto" for this back end to run commands without it.'
_EXTRA_SECONDS = 10.0
_TIMEOUT_CODE = 124  # as of timeout(1)


async def run(root: Root, limits: Limits, runner: Runner, exec: Exec) -> list[Any]:
    """One result, or the events of a stream."""
    try:
        command, seconds = _command(root, exec), _timeout(exec)
        result = await off_loop(
            lambda budget: runner.run(budget, command, seconds), limits.command_seconds + _EXTRA_SECONDS, COMMANDS
        )
    except Unconfined as refusal:
        return [_rejected(exec, f"{refusal} {OPT_OUT}")]
    except ToolRefused as refusal:
        return [_rejected(exec, str(refusal))]
    except OSError as error:
        return [_rejected(exec, f"the command could not be started: {error.strerror or 'unknown fault'}.")]
    stopped = render_status(result, limits) if result.stopped else ""
    if exec.kind == "shell_stream":
        return _stream(exec, result, stopped)
    if exec.kind == "pi_bash":
        return [_pi_result(result, stopped)]
    return [_result(exec, result, stopped)]


def _command(root: Root, exec: Exec) -> str:
    """The command, preceded by cd where the exec names a folder, which must be in the workspace."""
    folder = "" if exec.kind == "pi_bash" else exec.args.working_directory
    if not folder or not exec.args.command.strip():
        return str(exec.args.command)
    with root.folder(folder) as place:
        inside = "/".join(place.parts)
    return f"cd -- ./{quote_word(inside)} || exit 1\n{exec.args.command}" if inside else str(exec.args.command)


def _timeout(exec: Exec) -> float | None:
    """In seconds; the execs have milliseconds, except for pi_bash."""
    if exec.kind == "pi_bash":
        return exec.args.timeout if exec.args.HasField("timeout") and exec.args.timeout > 0 else None
    given = [exec.args.timeout, exec.args.hard_timeout if exec.args.HasField("hard_timeout") else 0]
    return min((value / 1000 for value in given if value > 0), default=None)


def _exit_code(result: CommandResult) -> int:
    if result.code is None:
        return _TIMEOUT_CODE
    return result.code if result.code >= 0 else 128 - result.code


def _rejected(exec: Exec, why: str) -> Any:
    if exec.kind == "pi_bash":
        return agent.PiBashExecResult(error=agent.PiBashExecError(error=why))
    rejected = agent.ShellRejected(**_about(exec), reason=why)
    return agent.ShellStream(rejected=rejected) if exec.kind == "shell_stream" else agent.ShellResult(rejected=rejected)


def _stream(exec: Exec, result: CommandResult, stopped: str) -> list[Any]:
    events = [agent.ShellStream(start=agent.ShellStreamStart())]
    if text := render_output(result) + (f"[{stopped}]" if stopped else ""):
        events.append(agent.ShellStream(stdout=agent.ShellStreamStdout(data=text)))
    last = agent.ShellStreamExit(code=_exit_code(result), cwd=exec.args.working_directory, aborted=bool(stopped))
    if result.stopped == "timeout":
        last.abort_reason = agent.SHELL_ABORT_REASON_TIMEOUT
    return [*events, agent.ShellStream(exit=last)]


def _result(exec: Exec, result: CommandResult, stopped: str) -> agent.ShellResult:
    about, code, stdout = _about(exec), _exit_code(result), render_output(result)
    if result.stopped == "timeout" and not stdout:
        return agent.ShellResult(timeout=agent.ShellTimeout(**about, timeout_ms=int(result.limit * 1000)))
    if code == 0:
        return agent.ShellResult(success=agent.ShellSuccess(**about, exit_code=0, stdout=stdout))
    failure = agent.ShellFailure(**about, exit_code=code, stdout=stdout, stderr=stopped, aborted=bool(stopped))
    if result.stopped == "timeout":
        failure.abort_reason = agent.SHELL_ABORT_REASON_TIMEOUT
    return agent.ShellResult(failure=failure)


def _pi_result(result: CommandResult, stopped: str) -> agent.PiBashExecResult:
    output, code = render_output(result), _exit_code(result)
    if code == 0:
        return agent.PiBashExecResult(success=agent.PiBashExecSuccess(output=output))
    return agent.PiBashExecResult(error=agent.PiBashExecError(error=f"{output}[{stopped or f'exit code {code}'}]"))


def _about(exec: Exec) -> dict[str, Any]:
    return {"command": exec.args.command, "working_directory": exec.args.working_directory}
