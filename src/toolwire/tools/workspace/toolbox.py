"""The tools of one workspace, as whoever runs tools wants them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from ...errors import ConfigError, quote
from ...types import JsonObject, Tool
from ..base import Output, Runnable
from . import definitions
from .confinement import Root
from .grep import Grep, grep
from .limits import COMMANDS, FILES, QUEUE_SECONDS, Budget, Limits, Pool, off_loop
from .list import Glob, List, glob, list_folder
from .messages import Refused
from .read import Read, read
from .sandbox import Shell
from .shell import Command, Runner
from .write import Edit, Write, edit, write

_Asked = TypeVar("_Asked")
_LIMITS = Limits()
_SPARE = 10.0  # seconds to end by itself before whoever runs it does

_FILE_TOOLS: dict[str, tuple[Tool, type[Any], Callable[[Root, Limits, Budget, Any], Output]]] = {
    "read": (definitions.READ, Read, read),
    "list": (definitions.LIST, List, list_folder),
    "glob": (definitions.GLOB, Glob, glob),
    "grep": (definitions.GREP, Grep, grep),
    "write": (definitions.WRITE, Write, write),
    "edit": (definitions.EDIT, Edit, edit),
}


def workspace(
    root: Path,
    *,
    allow: Collection[str] = ("read", "list", "glob", "grep"),
    shell: bool | Shell = False,
    limits: Limits = _LIMITS,
) -> list[Runnable]:
    """The allowed ones of read, list, glob, grep, write and edit, and shell if it is switched on, all confined to root."""
    for name in allow:
        if name not in _FILE_TOOLS:
            hint = "set shell for it" if name == "shell" else f"expected some of {', '.join(_FILE_TOOLS)}"
            raise ConfigError(f"allow holds {quote(name)}; {hint}.")
    place = Root(root)
    tools: list[Runnable] = [_file_tool(place, limits, name) for name in _FILE_TOOLS if name in allow]
    if shell:
        runner = Runner(place, limits, shell if isinstance(shell, Shell) else Shell())
        tools.append(
            _WorkspaceTool(
                definitions.SHELL, Command, runner.run, limits.command_seconds, COMMANDS, changes_things=True
            )
        )
    return tools


def _file_tool(root: Root, limits: Limits, name: str) -> Runnable:
    tool, asked, work = _FILE_TOOLS[name]
    changes_things = name in ("write", "edit")

    def bound(budget: Budget, arguments: Any) -> Output:
        return work(root, limits, budget, arguments)

    return _WorkspaceTool(tool, asked, bound, limits.seconds, FILES, changes_things=changes_things)


class _WorkspaceTool(Generic[_Asked]):
    def __init__(
        self,
        tool: Tool,
        asked: type[_Asked],
        work: Callable[[Budget, _Asked], Output],
        seconds: float,
        pool: Pool,
        *,
        changes_things: bool,
    ) -> None:
        self.tool = tool
        self.changes_things = changes_things
        self.timeout = seconds + _SPARE + QUEUE_SECONDS
        self._asked = asked
        self._work = work
        self._seconds = seconds
        self._pool = pool

    async def run(self, arguments: JsonObject) -> Output:
        try:
            asked = msgspec.convert(_whole_numbers(arguments), self._asked)
            return await off_loop(lambda budget: self._work(budget, asked), self._seconds, self._pool)
        except msgspec.ValidationError as fault:
            return Output.of_text(f"the arguments do not fit: {fault}.", is_error=True)
        except Refused as refusal:
            return Output.of_text(str(refusal), is_error=True)


def _whole_numbers(arguments: JsonObject) -> JsonObject:
    """2.0 is an integer to a schema; some back ends make every number a float."""
    return {name: int(value) if _is_whole(value) else value for name, value in arguments.items()}


def _is_whole(value: object) -> bool:
    return isinstance(value, float | Decimal) and value % 1 == 0
