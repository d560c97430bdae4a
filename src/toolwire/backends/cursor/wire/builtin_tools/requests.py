"""What a built-in exec asks for, whichever of its several forms it comes in."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ..execs import Exec

SHELLS = frozenset({"shell", "shell_stream", "mini_swe_agent_bash", "pi_bash"})
READS = frozenset({"read", "redacted_read", "pi_read"})
WRITES = frozenset({"write", "pi_write"})
_LINES = "content"  # of tools with a choice, some show names where nothing is chosen
_MOST_MILLISECONDS = 600_000
_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\]")


class Wish(Struct, frozen=True):
    """ability is a name of the table; values are arguments by the table's names, and none of them is None."""

    ability: str
    values: dict[str, Any]


def wish_of(exec: Exec) -> Wish | None:
    """None for kinds that no tool of a client stands for."""
    args = exec.args
    if exec.kind in SHELLS:
        return _wish("shell", **_command(exec))
    if exec.kind in READS:
        return _wish("read", path=args.path, first=_given(args, "offset"), limit=_given(args, "limit"))
    if exec.kind in WRITES:
        return _wish("write", path=args.path, content=content_of(exec))
    match exec.kind:
        case "pi_edit":
            return _wish("edit", path=args.path, edits=[(edit.old_text, edit.new_text) for edit in args.edits])
        case "ls" | "pi_ls":
            return _wish("list", path=args.path or ".")
        case "grep":
            return _grep(args) if args.pattern else _wish("glob", pattern=args.glob or "*", **_bounds(args))
        case "pi_grep":
            return _pi_grep(args)
        case "pi_find":
            return _wish("glob", pattern=args.pattern, path=args.path or None, limit=_given(args, "limit"))
        case "delete":
            return _wish("delete", path=args.path)
        case "fetch":
            return _wish("fetch", url=args.url)
    return None


def content_of(exec: Exec) -> str | bytes:
    """What is to be written; bytes where it is no text."""
    if exec.kind == "pi_write":
        return str(exec.args.content)
    data: bytes = exec.args.file_bytes
    if not data:
        return str(exec.args.file_text)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _wish(ability: str, **values: Any) -> Wish:
    return Wish(ability, {name: value for name, value in values.items() if value is not None})


def _given(args: Any, name: str) -> Any:
    return getattr(args, name) if args.HasField(name) else None


def _command(exec: Exec) -> dict[str, Any]:
    """Times are milliseconds, but for pi_bash, which counts seconds."""
    args = exec.args
    if exec.kind == "pi_bash":
        seconds = args.timeout if args.HasField("timeout") and 0 < args.timeout < _MOST_MILLISECONDS else 0
        return {"command": args.command, "timeout": min(int(seconds * 1000), _MOST_MILLISECONDS) or None}
    timeout = min(args.timeout, _MOST_MILLISECONDS) if args.timeout > 0 else None
    workdir, background = args.working_directory or None, args.is_background or None
    return {"command": args.command, "workdir": workdir, "timeout": timeout, "background": background}


def _grep(args: Any) -> Wish:
    return _wish(
        "grep",
        pattern=args.pattern,
        include=args.glob or None,
        ignore_case=args.case_insensitive or None,
        mode=args.output_mode or _LINES,
        before=_given(args, "context_before"),
        after=_given(args, "context_after"),
        context=_given(args, "context"),
        type=args.type or None,
        multiline=args.multiline or None,
        **_bounds(args),
    )


def _bounds(args: Any) -> dict[str, Any]:
    return {"path": args.path or None, "limit": _given(args, "head_limit")}


def _pi_grep(args: Any) -> Wish:
    return _wish(
        "grep",
        pattern=_SPECIAL.sub(r"\\\g<0>", args.pattern) if args.literal else args.pattern,
        path=args.path or None,
        include=args.glob or None,
        ignore_case=args.ignore_case or None,
        mode=_LINES,
        context=_given(args, "context"),
        limit=_given(args, "limit"),
    )


class Ability(Struct, frozen=True, kw_only=True):
    """One thing that clients can do: the names of tools for it, and for each argument the names of parameters.

    needed: what must find a place; narrowing: what would make the answer wrong if it got lost, so that a tool without room for it
    is not asked at all. Anything else is left out where there is no room.
    """

    tools: tuple[str, ...]
    parameters: dict[str, tuple[str, ...]]
    needed: tuple[str, ...]
    narrowing: tuple[str, ...] = ()


_PATH = ("filePath", "file_path", "absolute_path", "path", "target_file", "filepath", "file", "filename", "paths")
_FOLDER = (
    "path",
    "dir_path",
    "directory",
    "dir",
    "directory_path",
    "relative_workspace_path",
    "absolute_path",
    "dirPath",
)
_SEARCHED = ("path", "dir_path", "directory", "cwd", "base_path", "target_directory", "search_path")
_BACKGROUND = ("run_in_background", "is_background", "isBackground", "background")

ABILITIES: dict[str, Ability] = {
    "shell": Ability(
        tools=(
            "bash",
            "shell",
            "exec_command",
            "shell_command",
            "local_shell",
            "run_shell_command",
            "run_in_terminal",
            "execute_command",
            "run_terminal_command",
            "run_terminal_cmd",
            "run_command",
            "run_commands",
            "terminal",
            "container.exec",
        ),
        parameters={
            "command": ("command", "cmd", "commands", "script"),
            "workdir": ("workdir", "working_directory", "cwd", "dir_path", "directory", "working_dir"),
            "timeout": ("timeout_ms", "timeoutMs", "yield_time_ms", "timeout", "timeout_seconds", "timeout_sec"),
            "background": _BACKGROUND,
            "room": ("max_output_tokens",),
        },
        needed=("command",),
    ),
    "read": Ability(
        tools=("read", "read_file", "view_file", "readfile", "open_file", "view"),
        parameters={
            "path": _PATH,
            "first": ("offset", "startLine", "start_line", "line_start", "startLineNumberBaseZero"),
            "limit": ("limit", "line_count", "max_lines"),
            "last": ("endLine", "end_line", "line_end", "endLineNumberBaseZero"),
        },
        needed=("path",),
    ),
    "write": Ability(
        tools=("write", "write_file", "create_file", "write_to_file", "writefile", "create_new_file", "create"),
        parameters={
            "path": _PATH,
            "content": ("content", "contents", "file_text", "text", "code_edit", "file_content"),
        },
        needed=("path", "content"),
    ),
    "edit": Ability(
        tools=(
            "edit",
            "multiedit",
            "multi_edit",
            "replace_string_in_file",
            "replace",
            "str_replace",
            "edit_file",
            "single_find_and_replace",
        ),
        parameters={
            "path": _PATH,
            "old": ("oldString", "old_string", "oldText", "old_text", "old_str", "search"),
            "new": ("newString", "new_string", "newText", "new_text", "new_str", "replace"),
            "edits": ("edits", "replacements"),
        },
        needed=("path",),
    ),
    "list": Ability(
        tools=("list", "ls", "list_directory", "list_dir", "list_files", "listdir"),
        parameters={"path": _FOLDER},
        needed=("path",),
    ),
    "grep": Ability(
        tools=("grep", "grep_search", "search_file_content", "ripgrep", "search_files", "rg", "grep_files"),
        parameters={
            "pattern": ("pattern", "query", "regex", "regexp"),
            "path": _SEARCHED,
            "include": ("include", "glob", "includePattern", "include_pattern", "file_pattern"),
            "ignore_case": ("ignore_case", "-i", "case_insensitive", "ignoreCase"),
            "mode": ("output_mode",),
            "before": ("-B", "context_before"),
            "after": ("-A", "context_after"),
            "context": ("-C", "context"),
            "limit": ("head_limit", "limit", "max_results", "maxResults"),
        },
        needed=("pattern",),
        narrowing=("path", "include", "type", "multiline"),
    ),
    "glob": Ability(
        tools=("glob", "file_search", "find", "find_files", "glob_file_search", "glob_search"),
        parameters={
            "pattern": ("pattern", "glob_pattern", "query", "glob", "globPattern"),
            "path": _SEARCHED,
            "limit": ("limit", "max_results", "maxResults"),
        },
        needed=("pattern",),
        narrowing=("path",),
    ),
    "delete": Ability(
        tools=("delete", "delete_file", "remove_file", "deletefile"), parameters={"path": _PATH}, needed=("path",)
    ),
    "fetch": Ability(
        tools=("webfetch", "web_fetch", "fetch_webpage", "fetch", "fetch_url", "read_url_content"),
        parameters={"url": ("url", "urls", "uri")},
        needed=("url",),
    ),
}

# What tools demand besides, and what does no harm as an answer: a word for people, the plain way, to be asked first.
DEMANDED: dict[str, Any] = {
    "description": "Asked for by the model",
    "explanation": "Asked for by the model",
    "goal": "Asked for by the model",
    "instruction": "Asked for by the model",
    "reason": "Asked for by the model",
    "prompt": "Give back the text of the page, whole and unchanged.",
    "format": "markdown",
    "requires_approval": True,
    "isRegexp": True,
    "is_regexp": True,
    "is_regex": True,
    "replace_all": False,
    "replaceAll": False,
    "expected_replacements": 1,
    "recursive": False,
    "mode": "sync",
    **dict.fromkeys(_BACKGROUND, False),
}
