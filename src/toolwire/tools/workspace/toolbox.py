"""The tools of one workspace. Each tool is a class: its fields are the arguments, its docstring is the description for the model."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Executor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ...errors import ConfigError, quote
from ...types import JsonObject, Tool
from .. import docstrings
from ..base import Output, Runnable
from . import files, folders, render
from .confinement import Root, Scope
from .grep import Mode, Search, grep
from .limits import COMMANDS, FILES, QUEUE_SECONDS, Budget, Limits, off_loop
from .messages import ToolRefused
from .sandbox import Shell
from .shell import Runner

_LIMITS = Limits()
_EXTRA_SECONDS = 10.0  # for a tool to end by itself before the caller's own time limit ends it
_MODES: tuple[Mode, ...] = ("lines", "files", "count")

_Positive = Annotated[int, Meta(ge=1)]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of one tool for files; null is the same as absent."""

    def run(self, scope: Scope) -> Output:
        raise NotImplementedError

    def preview(self, scope: Scope) -> files.FilePreview | None:
        """The change of a file that run() would make."""
        return None


class Read(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Read a file of the workspace. Text comes with a number and a tab before each line (they are not part of the file); long
    files come in pieces, and a note says with which offset to go on. PNG, JPEG, GIF and WebP images are shown as images.

    Args:
        path: Path relative to the workspace root, or an absolute path inside it.
        offset: Number of the first line to read, counted from 1. Default: 1.
        limit: How many lines to read. Default: as many as are allowed at once.
    """

    path: str
    offset: _Positive | None = None
    limit: _Positive | None = None

    def run(self, scope: Scope) -> Output:
        return render.render_file(files.read(scope, self.path, self.offset, self.limit), scope.limits)


class ListFolder(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show a folder of the workspace as a tree, with sizes. Folders end with /, links are shown and not followed; what is ignored
    by .gitignore is named but not opened.

    Args:
        path: Folder to look in, relative to the workspace root. Default: the root itself.
        depth: How many levels to show. Default: 2.
        include_ignored: Also open folders that .gitignore files leave out. Default: false.
    """

    path: str | None = None
    depth: _Positive | None = None
    include_ignored: bool | None = None

    def run(self, scope: Scope) -> Output:
        tree = folders.list_tree(scope, self.path or ".", self.depth, with_ignored=bool(self.include_ignored))
        return Output.of_text(render.render_tree(tree, scope.limits))


class Glob(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Find files of the workspace by name, newest first. * and ? stand for characters of one name, ** for any folders, {a,b} for
    either. A pattern without a slash, such as "*.py", finds files at any depth; one with a slash, such as "src/**/*.py", is a path
    from the folder that is searched.

    Args:
        pattern: What to find, such as "*.py" or "src/**/test_*.{js,ts}".
        path: Folder to look in, relative to the workspace root. Default: the root itself.
        include_ignored: Also look at what .gitignore files leave out. Default: false.
    """

    pattern: str
    path: str | None = None
    include_ignored: bool | None = None

    def run(self, scope: Scope) -> Output:
        found = folders.find_files(scope, self.pattern, self.path or ".", with_ignored=bool(self.include_ignored))
        return Output.of_text(render.render_found_files(found, scope.limits))


class Grep(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Search the text files of the workspace, line by line, for a regular expression. Gives path:line:text for each line that
    matches and path-line-text for lines around it.

    Args:
        pattern: Regular expression; write a backslash before characters such as . ( ) [ { that are meant literally.
        path: File or folder to search, relative to the workspace root. Default: the root itself.
        glob: Search only files that this pattern finds, such as "*.ts" or "src/**/*.py".
        ignore_case: Take upper and lower case for the same. Default: false.
        context: How many lines to show before and after each match, at most 20. Default: 0.
        mode: What to give: "lines", "files" (only the paths) or "count" (matching lines of each file). Default: "lines".
        include_ignored: Also look at what .gitignore files leave out. Default: false.
    """

    pattern: str
    path: str | None = None
    glob: str | None = None
    ignore_case: bool | None = None
    context: Annotated[int, Meta(ge=0)] | None = None
    mode: Annotated[str, Meta(extra_json_schema={"enum": list(_MODES)})] | None = None
    include_ignored: bool | None = None

    def run(self, scope: Scope) -> Output:
        mode = next((mode for mode in _MODES if mode == (self.mode or "lines")), None)
        if mode is None:
            raise ToolRefused(f'mode is {quote(self.mode)}, expected "lines", "files" or "count".')
        search = Search(
            pattern=self.pattern,
            path=self.path or ".",
            globs=(self.glob,) if self.glob else (),
            mode=mode,
            ignore_case=bool(self.ignore_case),
            context=self.context or 0,
            with_ignored=bool(self.include_ignored),
        )
        return Output.of_text(render.render_matches(grep(scope, search), mode, scope.limits))


class Write(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Write a whole file of the workspace as UTF-8: make a new one, with the folders it needs, or replace one. To change a part
    of a file use edit.

    Args:
        path: Path relative to the workspace root, or an absolute path inside it.
        content: The whole content of the file.
    """

    path: str
    content: str

    def run(self, scope: Scope) -> Output:
        return Output.of_text(render.render_written(files.write(scope, self.path, self.content)))

    def preview(self, scope: Scope) -> files.FilePreview | None:
        return files.preview_write(scope, self.path, self.content)


class Edit(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replace a passage in a file of the workspace. old_text must be in the file exactly once, to the character, with its
    indentation and without line numbers; with replace_all every occurrence is replaced.

    Args:
        path: Path relative to the workspace root, or an absolute path inside it.
        old_text: The passage to replace, exactly as it is in the file, with enough lines around it to be unique.
        new_text: What stands there instead; empty to delete the passage.
        replace_all: Replace every occurrence. Default: false.
    """

    path: str
    old_text: str
    new_text: str
    replace_all: bool | None = None

    def run(self, scope: Scope) -> Output:
        changes = [(self.old_text, self.new_text)]
        done = files.edit(scope, self.path, changes, everywhere=bool(self.replace_all))
        return Output.of_text(render.render_edited(done))

    def preview(self, scope: Scope) -> files.FilePreview | None:
        change = (self.old_text, self.new_text)
        return files.preview_edit(scope, self.path, change, everywhere=bool(self.replace_all))


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run a command with bash in the workspace root, without input. Gives what it prints, and its exit code at the end. Each
    command begins anew: folder and variables are not kept, and what it leaves running in the background is ended.

    Args:
        command: What bash is to run, such as: python -m pytest -q tests/test_a.py
        timeout_seconds: Seconds after which the command is stopped. Default: 120.
    """

    command: str
    timeout_seconds: Annotated[float, Meta(gt=0)] | None = None


_FILE_TOOLS: dict[str, type[Arguments]] = {
    "read": Read,
    "list": ListFolder,
    "glob": Glob,
    "grep": Grep,
    "write": Write,
    "edit": Edit,
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

    def run_file_tool(budget: Budget, arguments: Any) -> Output:
        output: Output = arguments.run(Scope(place, limits, budget))
        return output

    def preview_file_tool(budget: Budget, arguments: Any) -> files.FilePreview | None:
        change: files.FilePreview | None = arguments.preview(Scope(place, limits, budget))
        return change

    tools: list[Runnable] = [
        _WorkspaceTool(name, arguments, run_file_tool, limits.seconds, FILES, preview_file_tool)
        for name, arguments in _FILE_TOOLS.items()
        if name in allow
    ]
    if shell:
        runner = Runner(place, limits, shell if isinstance(shell, Shell) else Shell())

        def run_command(budget: Budget, asked: Any) -> Output:
            return render.render_command(runner.run(budget, asked.command, asked.timeout_seconds), limits)

        tools.append(_WorkspaceTool("shell", Command, run_command, limits.command_seconds, COMMANDS))
    return tools


def tool_of(name: str, arguments: type[Struct]) -> Tool:
    """The tool as models see it. null, which is the same as an absent argument, is not in the schema."""
    documented = docstrings.parse(arguments.__doc__)
    schema = msgspec.json.schema(arguments)["$defs"][arguments.__name__]
    properties = {
        member: {**about.get("anyOf", [about])[0], "description": documented.parameters[member]}
        for member, about in schema["properties"].items()
    }
    return Tool(
        name=name,
        description=" ".join(documented.description.split()),
        schema={
            "type": "object",
            "properties": properties,
            "required": schema["required"],
            "additionalProperties": False,
        },
    )


class _WorkspaceTool:
    def __init__(
        self,
        name: str,
        arguments: type[Struct],
        work: Callable[[Budget, Any], Output],
        seconds: float,
        pool: Executor,
        preview: Callable[[Budget, Any], files.FilePreview | None] | None = None,
    ) -> None:
        self.tool = tool_of(name, arguments)
        self.changes_things = name not in ("read", "list", "glob", "grep")
        self.timeout = seconds + _EXTRA_SECONDS + QUEUE_SECONDS
        self._arguments = arguments
        self._work = work
        self._seconds = seconds
        self._pool = pool
        self._preview = preview

    async def preview(self, arguments: JsonObject) -> files.FilePreview | None:
        """The change of a file that the call would make; None for other tools, and if the call would fail."""
        preview = self._preview
        if preview is None:
            return None
        try:
            parsed = self._parse(arguments)
            return await off_loop(lambda budget: preview(budget, parsed), self._seconds, self._pool)
        except (msgspec.ValidationError, ToolRefused):
            return None

    def _parse(self, arguments: JsonObject) -> Struct:
        # 2.0 is an integer to a schema; some back ends make every number a float.
        whole = {name: int(value) for name, value in arguments.items() if _is_integer(value)}
        return msgspec.convert({**arguments, **whole}, self._arguments)

    async def run(self, arguments: JsonObject) -> Output:
        try:
            parsed = self._parse(arguments)
            return await off_loop(lambda budget: self._work(budget, parsed), self._seconds, self._pool)
        except msgspec.ValidationError as error:
            return Output.of_text(f"the arguments do not fit: {error}.", is_error=True)
        except ToolRefused as refusal:
            return Output.of_text(str(refusal), is_error=True)


def _is_integer(value: object) -> bool:
    return isinstance(value, float | Decimal) and value % 1 == 0
