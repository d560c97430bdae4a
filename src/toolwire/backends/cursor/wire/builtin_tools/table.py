"""What agent clients call their tools, and what those tools call their arguments.

Nobody is looked up by the name of a client: a tool counts by its own name, and an argument goes where the tool's own schema has
room for it. The first name that is there wins.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


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
