"""What a built-in exec requests, whichever of its forms it comes in, and how the tools of agent clients name the same thing.

Clients are not looked up by name: a tool counts by its own name, and an argument goes where the tool's schema has room for it. The
names are in builtin_tools.toml.
"""

from __future__ import annotations

import math
import re
import tomllib
from pkgutil import get_data
from typing import Any

import msgspec
from msgspec import Struct

from ..execs import Exec

_LINES = "content"  # without an output mode some tools list names instead of lines
_MAX_MILLISECONDS = 600_000
_SPECIAL = re.compile(r"[.^$*+?()\[\]{}|\\]")


class ToolRequest(Struct, frozen=True):
    """ability is a key of ABILITIES; values are arguments by the names used there, without None."""

    ability: str
    values: dict[str, Any]


class ExecForm(Struct, frozen=True):
    """Kinds of execs with the same fields. fields: the field of the message for each argument of the ability."""

    kinds: tuple[str, ...]
    ability: str
    fields: dict[str, str]


class Ability(Struct, frozen=True):
    """Something that clients can do, as builtin_tools.toml explains it."""

    tools: tuple[str, ...]
    parameters: dict[str, tuple[str, ...]]
    needed: tuple[str, ...]
    narrowing: tuple[str, ...] = ()


_TABLES = tomllib.loads((get_data(__package__, "builtin_tools.toml") or b"").decode())
EXECS = {kind: form for form in msgspec.convert(_TABLES["execs"], list[ExecForm]) for kind in form.kinds}
ABILITIES = msgspec.convert(_TABLES["abilities"], dict[str, Ability])
REQUIRED_DEFAULTS: dict[str, Any] = _TABLES["required_defaults"]


def tool_request(exec: Exec) -> ToolRequest | None:
    """None for kinds that no client tool can do."""
    form = EXECS.get(exec.kind)
    if form is None:
        return None
    needed = ABILITIES[form.ability].needed
    values = {
        name: getattr(exec.args, field)
        for name, field in form.fields.items()
        if name in needed or _is_set(exec.args, field)
    }
    match form.ability:
        case "shell":
            timeout = _milliseconds(exec.kind, values.pop("timeout", 0))
            values |= {"timeout": timeout} if timeout else {}
        case "write":
            values["content"] = _content(exec.args, values["content"])
        case "edit":
            values["edits"] = [(edit.old_text, edit.new_text) for edit in exec.args.edits]
        case "list":
            values["path"] = values["path"] or "."
        case "grep" if not values["pattern"] and exec.kind == "grep":
            bounds = {name: value for name, value in values.items() if name in ("path", "limit")}
            return ToolRequest("glob", {"pattern": values.get("include", "*"), **bounds})
        case "grep":
            if getattr(exec.args, "literal", False):
                values["pattern"] = _SPECIAL.sub(r"\\\g<0>", values["pattern"])
            values.setdefault("mode", _LINES)
    return ToolRequest(form.ability, values)


def _is_set(args: Any, field: str) -> bool:
    """A number may be 0 if it is given at all; text and flags count only if they are not empty."""
    value = getattr(args, field)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return (
        bool(args.HasField(field)) if is_number and args.DESCRIPTOR.fields_by_name[field].has_presence else bool(value)
    )


def _milliseconds(kind: str, timeout: float) -> int:
    """Timeouts are milliseconds, except for pi_bash, which has seconds. 0 for an invalid one."""
    timeout = timeout * 1000 if kind == "pi_bash" else timeout
    return int(min(timeout, _MAX_MILLISECONDS)) if 0 < timeout < math.inf else 0


def _content(args: Any, text: str) -> str | bytes:
    """The content to write; bytes if it is not UTF-8."""
    data: bytes = getattr(args, "file_bytes", b"")
    try:
        return data.decode() or text
    except UnicodeDecodeError:
        return data
