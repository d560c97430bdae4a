"""What a built-in exec requests, whichever of its forms it comes in, and how the tools of agent clients name the same thing.

Clients are not looked up by name: a tool counts by its own name, and an argument goes where the tool's schema has room for it. The
first name that exists wins.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ..execs import Exec

_SHELL_KINDS = frozenset({"shell", "shell_stream", "mini_swe_agent_bash", "pi_bash"})
_READ_KINDS = frozenset({"read", "redacted_read", "pi_read"})
_WRITE_KINDS = frozenset({"write", "pi_write"})
_LINES = "content"  # without an output mode some tools list names instead of lines
_MAX_MILLISECONDS = 600_000
_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\]")


class ToolRequest(Struct, frozen=True):
    """ability is a key of ABILITIES; values are arguments by the names used there, without None."""

    ability: str
    values: dict[str, Any]


class Ability(Struct, frozen=True):
    """Something that clients can do: names of tools for it, and names of parameters for each argument.

    needed: arguments without which the call makes no sense. narrowing: arguments without which the result would be wrong, so that a tool
    without a parameter for them is not used. Other arguments are dropped where there is no parameter.
    """

    tools: tuple[str, ...]
    parameters: dict[str, tuple[str, ...]]
    needed: tuple[str, ...]
    narrowing: tuple[str, ...] = ()


def _ability(tools: str, parameters: dict[str, str], needed: str, narrowing: str = "") -> Ability:
    """From names separated by spaces."""
    split = {name: tuple(places.split()) for name, places in parameters.items()}
    return Ability(tuple(tools.split()), split, tuple(needed.split()), tuple(narrowing.split()))


_PATH = "filePath file_path absolute_path path target_file filepath file filename paths"
_FOLDER = "path dir_path directory dir directory_path relative_workspace_path absolute_path dirPath"
_SEARCHED = "path dir_path directory cwd base_path target_directory search_path"
_BACKGROUND = "run_in_background is_background isBackground background"

ABILITIES: dict[str, Ability] = {
    "shell": _ability(
        "bash shell exec_command shell_command local_shell run_shell_command run_in_terminal execute_command "
        "run_terminal_command run_terminal_cmd run_command run_commands terminal container.exec",
        {
            "command": "command cmd commands script",
            "workdir": "workdir working_directory cwd dir_path directory working_dir",
            "timeout": "timeout_ms timeoutMs yield_time_ms timeout timeout_seconds timeout_sec",
            "background": _BACKGROUND,
            "max_output": "max_output_tokens",
        },
        needed="command",
    ),
    "read": _ability(
        "read read_file view_file readfile open_file view",
        {
            "path": _PATH,
            "first": "offset startLine start_line line_start startLineNumberBaseZero",
            "limit": "limit line_count max_lines",
            "last": "endLine end_line line_end endLineNumberBaseZero",
        },
        needed="path",
    ),
    "write": _ability(
        "write write_file create_file write_to_file writefile create_new_file create",
        {"path": _PATH, "content": "content contents file_text text code_edit file_content"},
        needed="path content",
    ),
    "edit": _ability(
        "edit multiedit multi_edit replace_string_in_file replace str_replace edit_file single_find_and_replace",
        {
            "path": _PATH,
            "old": "oldString old_string oldText old_text old_str search",
            "new": "newString new_string newText new_text new_str replace",
            "edits": "edits replacements",
        },
        needed="path",
    ),
    "list": _ability("list ls list_directory list_dir list_files listdir", {"path": _FOLDER}, needed="path"),
    "grep": _ability(
        "grep grep_search search_file_content ripgrep search_files rg grep_files",
        {
            "pattern": "pattern query regex regexp",
            "path": _SEARCHED,
            "include": "include glob includePattern include_pattern file_pattern",
            "ignore_case": "ignore_case -i case_insensitive ignoreCase",
            "mode": "output_mode",
            "before": "-B context_before",
            "after": "-A context_after",
            "context": "-C context",
            "limit": "head_limit limit max_results maxResults",
        },
        needed="pattern",
        narrowing="path include type multiline",
    ),
    "glob": _ability(
        "glob file_search find find_files glob_file_search glob_search",
        {
            "pattern": "pattern glob_pattern query glob globPattern",
            "path": _SEARCHED,
            "limit": "limit max_results maxResults",
        },
        needed="pattern",
        narrowing="path",
    ),
    "delete": _ability("delete delete_file remove_file deletefile", {"path": _PATH}, needed="path"),
    "fetch": _ability(
        "webfetch web_fetch fetch_webpage fetch fetch_url read_url_content", {"url": "url urls uri"}, needed="url"
    ),
}

# Other parameters that tools require, with harmless values: a text for people, the plain mode, an approval dialog.
REQUIRED_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("description", "explanation", "goal", "instruction", "reason"), "Asked for by the model"),
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
    **dict.fromkeys(_BACKGROUND.split(), False),
}


def tool_request(exec: Exec) -> ToolRequest | None:
    """None for kinds that no client tool can do."""
    args = exec.args
    if exec.kind in _SHELL_KINDS:
        return _request("shell", **_command(exec))
    if exec.kind in _READ_KINDS:
        return _request("read", path=args.path, first=_optional(args, "offset"), limit=_optional(args, "limit"))
    if exec.kind in _WRITE_KINDS:
        return _request("write", path=args.path, content=content_to_write(exec))
    match exec.kind:
        case "pi_edit":
            return _request("edit", path=args.path, edits=[(edit.old_text, edit.new_text) for edit in args.edits])
        case "ls" | "pi_ls":
            return _request("list", path=args.path or ".")
        case "grep":
            return _grep(args) if args.pattern else _request("glob", pattern=args.glob or "*", **_bounds(args))
        case "pi_grep":
            return _pi_grep(args)
        case "pi_find":
            return _request("glob", pattern=args.pattern, path=args.path or None, limit=_optional(args, "limit"))
        case "delete":
            return _request("delete", path=args.path)
        case "fetch":
            return _request("fetch", url=args.url)
    return None


def content_to_write(exec: Exec) -> str | bytes:
    """Bytes if it is not UTF-8."""
    if exec.kind == "pi_write":
        return str(exec.args.content)
    data: bytes = exec.args.file_bytes
    if not data:
        return str(exec.args.file_text)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _request(ability: str, **values: Any) -> ToolRequest:
    return ToolRequest(ability, {name: value for name, value in values.items() if value is not None})


def _optional(args: Any, name: str) -> Any:
    return getattr(args, name) if args.HasField(name) else None


def _command(exec: Exec) -> dict[str, Any]:
    """Timeouts are milliseconds, except for pi_bash, which has seconds."""
    args = exec.args
    if exec.kind == "pi_bash":
        seconds = args.timeout if args.HasField("timeout") and 0 < args.timeout < _MAX_MILLISECONDS else 0
        return {"command": args.command, "timeout": min(int(seconds * 1000), _MAX_MILLISECONDS) or None}
    timeout = min(args.timeout, _MAX_MILLISECONDS) if args.timeout > 0 else None
    workdir, background = args.working_directory or None, args.is_background or None
    return {"command": args.command, "workdir": workdir, "timeout": timeout, "background": background}


def _grep(args: Any) -> ToolRequest:
    return _request(
        "grep",
        pattern=args.pattern,
        include=args.glob or None,
        ignore_case=args.case_insensitive or None,
        mode=args.output_mode or _LINES,
        before=_optional(args, "context_before"),
        after=_optional(args, "context_after"),
        context=_optional(args, "context"),
        type=args.type or None,
        multiline=args.multiline or None,
        **_bounds(args),
    )


def _bounds(args: Any) -> dict[str, Any]:
    return {"path": args.path or None, "limit": _optional(args, "head_limit")}


def _pi_grep(args: Any) -> ToolRequest:
    return _request(
        "grep",
        pattern=_SPECIAL.sub(r"\\\g<0>", args.pattern) if args.literal else args.pattern,
        path=args.path or None,
        include=args.glob or None,
        ignore_case=args.ignore_case or None,
        mode=_LINES,
        context=_optional(args, "context"),
        limit=_optional(args, "limit"),
    )
