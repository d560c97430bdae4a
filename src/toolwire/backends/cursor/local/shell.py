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
from ..wire.exec_results import command_results, failure, output
from ..wire.execs import Exec

OPT_OUT = 'Install bubblewrap on the machine of the gateway, or set sandbox = "auto" for this back end to run commands without it.'
_EXTRA_SECONDS = 10.0
_TIMEOUT_CODE = 124  # as of timeout(1)


async def run(root: Root, limits: Limits, runner: Runner, exec: Exec) -> list[Any]:
    """One result, or the events of a stream. Raises ToolRefused."""
    try:
        command, seconds = _command(root, exec), _timeout(exec)
        result = await off_loop(
            lambda budget: runner.run(budget, command, seconds), limits.command_seconds + _EXTRA_SECONDS, COMMANDS
        )
    except Unconfined as refusal:
        raise ToolRefused(f"{refusal} {OPT_OUT}") from None
    except OSError as error:
        raise ToolRefused(f"the command could not be started: {error.strerror or 'unknown fault'}.") from None
    stopped = render_status(result, limits) if result.stopped else ""
    stdout, code = render_output(result), _exit_code(result)
    is_timeout = result.stopped == "timeout"
    if exec.kind == "pi_bash":
        why = f"{stdout}[{stopped or f'exit code {code}'}]"
        return [output(exec, stdout) if code == 0 else failure(exec, why)]
    if exec.kind != "shell_stream" and is_timeout and not stdout:
        about = {"command": exec.args.command, "working_directory": exec.args.working_directory}
        return [agent.ShellResult(timeout=agent.ShellTimeout(**about, timeout_ms=int(result.limit * 1000)))]
    reason = agent.SHELL_ABORT_REASON_TIMEOUT if is_timeout else None
    return command_results(exec, stdout, code, why_stopped=stopped, is_aborted=bool(stopped), reason=reason)


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
