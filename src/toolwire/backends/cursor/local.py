"""Built-in execs run here, on the owner's workspace, for clients that have no tools of their own.

Only what the owner listed, and only in the folder that he named: paths are walked by the workspace's own confinement, searches and
commands have its limits, and all of it runs in its threads. Whatever goes wrong is told in the exec's own result.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ...dialects.cursor.execs import Exec, answered, rejected
from ...errors import ConfigError, quote
from ...tools.workspace.confinement import Root
from ...tools.workspace.limits import Budget, Limits, off_loop
from ...tools.workspace.sandbox import Shell
from ...tools.workspace.sentences import Refused
from ...tools.workspace.shell import Runner
from . import local_files, local_listing, local_searching, local_shell

KINDS: dict[str, frozenset[str]] = {
    "read": frozenset({"read", "redacted_read", "pi_read"}),
    "list": frozenset({"ls", "pi_ls"}),
    "glob": frozenset({"grep", "pi_find"}),
    "grep": frozenset({"grep", "pi_grep"}),
    "write": frozenset({"write", "pi_write", "pi_edit"}),
    "shell": frozenset({"shell", "shell_stream", "mini_swe_agent_bash", "pi_bash"}),
}
_WORK = {
    "read": local_files.read,
    "write": local_files.write,
    "list": local_listing.list_tree,
    "glob": local_searching.glob,
    "grep": local_searching.grep,
}
_LIMITS = Limits()
# A remote service chooses the commands, and no person approves them.
_CONFINED = Shell(sandbox="required")


class LocalTools:
    """kinds are the abilities that the owner allows; exec_kinds the execs that they serve."""

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

    async def run(self, exec: Exec) -> list[bytes]:
        """The messages that answer it; what is not allowed is declined in the words of its kind."""
        kind = _kind(exec)
        if kind not in self._kinds:
            allowed = ", ".join(sorted(self._kinds)) or "nothing"
            return rejected(
                exec, f"{kind or exec.kind or 'this'} is not allowed in this workspace; allowed: {allowed}."
            )
        if kind == "shell":
            return answered(exec, *await local_shell.run(self._root, self._limits, self._runner, exec))

        def work(budget: Budget) -> Any:
            try:
                return _WORK[kind](self._root, self._limits, budget, exec)
            except Refused as refusal:
                return refusal

        result = await off_loop(work, self._limits.seconds)
        if isinstance(result, Refused):
            return answered(exec, local_files.failed(exec, str(result), is_missing=_is_missing(result)))
        return answered(exec, result)


def _kind(exec: Exec) -> str:
    if exec.kind == "grep":
        return "grep" if exec.args.pattern else "glob"
    return next((kind for kind, served in KINDS.items() if exec.kind in served), "")


def _is_missing(refusal: Refused) -> bool:
    return isinstance(refusal.__cause__ or refusal.__context__, FileNotFoundError)
