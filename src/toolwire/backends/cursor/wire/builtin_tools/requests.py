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
