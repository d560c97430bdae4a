"""Cursor's built-in execs, run in the owner's workspace for clients without tools of their own.

Only the kinds that the owner lists run, and only in the folder that the owner names, with the confinement, the limits and the threads of the
workspace tools. Every error becomes a result of the exec.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from shlex import quote as quote_word
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ....calls.validation import LocalCall
from ....config.file import BackendConfig
from ....errors import ConfigError, quote
from ....tools.workspace.confinement import Root, Scope
from ....tools.workspace.limits import COMMANDS, Budget, Limits, off_loop
from ....tools.workspace.messages import ToolRefused
from ....tools.workspace.programs import find_program
from ....tools.workspace.render import render_output, render_status
from ....tools.workspace.sandbox import Shell, find_sandbox
from ....tools.workspace.shell import CommandResult, Runner, Unconfined
from ...base import Confinement
from ..wire import agent
from ..wire.builtin_tools.requests import EXECS, ToolRequest, tool_request
from ..wire.execs import LOCAL_TOOLS, Exec, answered, command_results, failure, output, rejected
from .files import WORK

_ALLOWED_BY = {"edit": "write"}
KINDS = {
    tool: frozenset(kind for kind, form in EXECS.items() if _ALLOWED_BY.get(form.ability, form.ability) == tool)
    for tool in LOCAL_TOOLS
}
KINDS["glob"] |= {"grep"}  # without a pattern it finds names
_LIMITS = Limits()
_TRIAL_SECONDS = 20.0
OPT_OUT = 'Install bubblewrap on the machine of the gateway, or set sandbox = "auto" for this back end to run commands without it.'
_EXTRA_SECONDS = 10.0
_TIMEOUT_CODE = 124  # as of timeout(1)

Outcome: TypeAlias = Literal["ok", "failed", "refused"]
# A remote service chooses the commands, and no person approves them.
_CONFINED = Shell(sandbox="required")


class LocalResult(Struct, frozen=True):
    """The messages that answer an exec, and the record of the call."""

    messages: list[bytes]
    call: LocalCall


class LocalTools:
    """kinds are the tools that the owner allows; exec_kinds the execs that they serve."""

    def __init__(
        self,
        workspace: Path,
        kinds: Collection[str] = tuple(KINDS),
        *,
        limits: Limits = _LIMITS,
        shell: Shell = _CONFINED,
    ) -> None:
        for kind in kinds:
            if kind not in KINDS:
                raise ConfigError(f"local_tools holds {quote(kind)}; expected some of {', '.join(KINDS)}.")
        self._root = Root(workspace)
        self._kinds = frozenset(kinds)
        self._limits = limits
        self._runner = Runner(self._root, limits, shell)
        self.exec_kinds = frozenset[str]().union(*(KINDS[kind] for kind in self._kinds))

    async def run(self, exec: Exec) -> LocalResult:
        """A tool that is not allowed is declined in a result of its kind."""
        began = time.monotonic()
        request = tool_request(exec)
        kind = "" if request is None else _ALLOWED_BY.get(request.ability, request.ability)
        name = kind or exec.kind or "unknown"
        outcome: Outcome = "refused"
        try:
            if request is None or kind not in self._kinds:
                allowed = ", ".join(sorted(self._kinds)) or "nothing"
                raise ToolRefused(f"{name} is not allowed in this workspace; allowed: {allowed}.")
            results = await self._results(exec, request)
            messages, outcome = answered(exec, *results), _outcome(results[-1])
        except ToolRefused as refusal:
            messages = rejected(exec, str(refusal))
        confinement = self._runner.confinement if kind == "shell" else ""
        seconds = time.monotonic() - began
        return LocalResult(messages, LocalCall(name=name, outcome=outcome, seconds=seconds, confinement=confinement))

    async def _results(self, exec: Exec, request: ToolRequest) -> list[Any]:
        if request.ability == "shell":
            return await self._run_command(exec)

        def work(budget: Budget) -> Any:
            try:
                return WORK[request.ability](Scope(self._root, self._limits, budget), exec, request.values)
            except ToolRefused as refusal:
                return failure(exec, str(refusal), is_missing=refusal.is_missing)

        return [await off_loop(work, self._limits.seconds)]

    async def _run_command(self, exec: Exec) -> list[Any]:
        """One result, or the events of a stream. Raises ToolRefused."""
        try:
            command, seconds = _command(self._root, exec), _timeout(exec)
            result = await off_loop(
                lambda budget: self._runner.run(budget, command, seconds),
                self._limits.command_seconds + _EXTRA_SECONDS,
                COMMANDS,
            )
        except Unconfined as refusal:
            raise ToolRefused(f"{refusal} {OPT_OUT}") from None
        except OSError as error:
            raise ToolRefused(f"the command could not be started: {error.strerror or 'unknown fault'}.") from None
        stopped = render_status(result, self._limits) if result.stopped else ""
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


def confinement(config: BackendConfig) -> Confinement | None:
    """Tries what commands of the service can do on this machine; None if it may run none."""
    if "shell" not in config.local_tools:
        return None
    root = Root(Path(config.workspace or "."))
    bash = find_program("bash", root.path) or "bash"
    why_not = find_sandbox(Shell(sandbox=config.sandbox), root.path, bash, Budget(_TRIAL_SECONDS)).why_not
    if not why_not:
        return Confinement(text=f"commands of the service are confined to {root.path} by bubblewrap.")
    if config.sandbox == "required":
        text = f"commands of the service are refused: a sandbox is required, and {why_not}."
        return Confinement(text=text, is_refused=True, hint=OPT_OUT)
    return Confinement(text=f"commands of the service run WITHOUT a sandbox ({why_not}): they can do what you can.")


def _outcome(result: Any) -> Outcome:
    """Of a result, or of the last event of a stream."""
    oneof = "event" if "event" in result.DESCRIPTOR.oneofs_by_name else "result"
    member = result.WhichOneof(oneof)
    if member == "exit":
        return "ok" if result.exit.code == 0 else "failed"
    return "ok" if member == "success" else "refused" if member == "rejected" else "failed"


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
