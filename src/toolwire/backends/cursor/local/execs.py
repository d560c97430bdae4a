"""Cursor's built-in execs, run in the owner's workspace for clients without tools of their own.

Only the kinds that the owner lists run, and only in the folder that the owner names, with the confinement, the limits and the threads of the
workspace tools. Every error becomes a result of the exec.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ....calls.validation import LocalCall
from ....config.file import BackendConfig
from ....errors import ConfigError, quote
from ....tools.workspace.confinement import Root, Scope
from ....tools.workspace.limits import Budget, Limits, off_loop
from ....tools.workspace.messages import ToolRefused
from ....tools.workspace.programs import find_program
from ....tools.workspace.sandbox import Shell, find_sandbox
from ....tools.workspace.shell import Runner
from ...base import Confinement
from ..wire.builtin_tools.requests import ToolRequest, tool_request
from ..wire.exec_results import failure
from ..wire.execs import Exec, answered, rejected
from . import shell as local_shell
from .files import WORK

KINDS: dict[str, frozenset[str]] = {
    "read": frozenset({"read", "redacted_read", "pi_read"}),
    "list": frozenset({"ls", "pi_ls"}),
    "glob": frozenset({"grep", "pi_find"}),
    "grep": frozenset({"grep", "pi_grep"}),
    "write": frozenset({"write", "pi_write", "pi_edit"}),
    "delete": frozenset({"delete"}),
    "shell": frozenset({"shell", "shell_stream", "mini_swe_agent_bash", "pi_bash"}),
}
_ALLOWED_BY = {"edit": "write"}
_LIMITS = Limits()
_TRIAL_SECONDS = 20.0

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
            return await local_shell.run(self._root, self._limits, self._runner, exec)

        def work(budget: Budget) -> Any:
            try:
                return WORK[request.ability](Scope(self._root, self._limits, budget), exec, request.values)
            except ToolRefused as refusal:
                return failure(exec, str(refusal), is_missing=refusal.is_missing)

        return [await off_loop(work, self._limits.seconds)]


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
        return Confinement(text=text, is_refused=True, hint=local_shell.OPT_OUT)
    return Confinement(text=f"commands of the service run WITHOUT a sandbox ({why_not}): they can do what you can.")


def _outcome(result: Any) -> Outcome:
    """Of a result, or of the last event of a stream."""
    oneof = "event" if "event" in result.DESCRIPTOR.oneofs_by_name else "result"
    member = result.WhichOneof(oneof)
    if member == "exit":
        return "ok" if result.exit.code == 0 else "failed"
    return "ok" if member == "success" else "refused" if member == "rejected" else "failed"
