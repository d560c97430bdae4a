"""Edits TOML line by line: replaces a key, adds it to its table or removes it. Every other line stays as it is.

Only keys on one line are changed. The result is parsed again and compared, so that a file with another form (inline tables, values over
several lines) is refused and never damaged.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from ...config import toml_lines
from ...errors import ConfigError
from .client import Setting, merge

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEY = re.compile(r"""\s*(?:[^"'=\#\s]|"(?:[^"\\]|\\.)*"|'[^']*'|[ \t])+=[ \t]*""")
_COMMENT = re.compile(r"""(?:[^"'\#]|"(?:[^"\\]|\\.)*"|'[^']*')*?([ \t]*\#.*)?\r?""")


def apply_settings(text: str, settings: Sequence[Setting]) -> str:
    """Raises ConfigError if the text is not TOML or cannot be changed safely."""
    before = _parse(text)
    expected = merge(before, settings)
    for setting in settings:
        text = _put(text, tuple(str(step) for step in setting.path), setting.value, setting.is_default)
    if _parse(text) != expected:
        raise _unsafe()
    return text


def _put(text: str, path: tuple[str, ...], value: Any, is_default: bool) -> str:
    """Sets an object member by member, so that other members of its table stay."""
    if isinstance(value, dict):
        for key, inner in value.items():
            text = _put(text, (*path, key), inner, is_default)
        return text
    found = _lookup(_parse(text), path)
    if found == value or (is_default and found is not None):
        return text
    lines = text.split("\n")
    end = "\r" if "\r\n" in text else ""
    places = toml_lines.key_lines(text)
    if found is not None:
        _replace(lines, places[path] - 1, value)
    elif _header(lines, places, path[:-1]) is not None or len(path) == 1:
        at = _after_keys(lines, places, _header(lines, places, path[:-1]))
        lines.insert(at, f"{_key(path[-1])} = {_format(value)}{end}")
    else:
        _append(lines, [f"[{'.'.join(_key(part) for part in path[:-1])}]", f"{_key(path[-1])} = {_format(value)}"], end)
    return "\n".join(lines)


def _replace(lines: list[str], at: int, value: Any) -> None:
    """Removes the line if the value is None."""
    key = _KEY.match(lines[at])
    if key is None or not _is_whole(lines[at]):
        raise _unsafe()
    if value is None:
        del lines[at]
        return
    comment = _COMMENT.fullmatch(lines[at], key.end())
    tail = (comment.group(1) or "") if comment else ""
    lines[at] = f"{key.group()}{_format(value)}{tail}" + ("\r" if lines[at].endswith("\r") and "\r" not in tail else "")


def _header(lines: list[str], places: Any, table: tuple[str, ...]) -> int | None:
    """The index of the [table] line, if there is one."""
    if not table or table not in places:
        return None
    at = int(places[table]) - 1
    try:
        parsed = tomllib.loads(lines[at].strip()) if lines[at].lstrip().startswith("[") else {}
    except ValueError:
        return None
    return at if _lookup(parsed, table) == {} else None


def _after_keys(lines: list[str], places: Any, header: int | None) -> int:
    """The line for a new key of this table (None: top level): after its first block of keys."""
    if header is not None:
        at = header + 1
    else:
        top = [line for path, line in places.items() if len(path) == 1 and not lines[line - 1].lstrip().startswith("[")]
        if not top:
            return _before_tables(lines, places)
        at = min(top) - 1
    while (
        at < len(lines) and "=" in lines[at] and not lines[at].lstrip().startswith(("#", "[")) and _is_whole(lines[at])
    ):
        at += 1
    return at


def _before_tables(lines: list[str], places: Any) -> int:
    """The line of the first table or the comment above it; the end of a file without tables."""
    if not places:
        return len(lines) - 1 if not lines[-1].strip() else len(lines)
    at = int(min(places.values())) - 1
    while at and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _append(lines: list[str], added: list[str], end: str) -> None:
    while lines and not lines[-1].strip():
        lines.pop()
    if lines:
        lines[-1] = lines[-1].rstrip("\r") + end
        lines.append(end)
    lines += [*(line + end for line in added), ""]


def _is_whole(line: str) -> bool:
    """Whether this line is a key with its whole value."""
    try:
        return bool(tomllib.loads(line.strip()))
    except ValueError:
        return False


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, ValueError) else "values are nested too deeply"
        raise ConfigError(f"this is not TOML: {why}.") from None


def _lookup(data: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        data = data.get(part) if isinstance(data, dict) else None
    return data


def _key(part: str) -> str:
    return part if _BARE.fullmatch(part) else json.dumps(part)


def _format(value: Any) -> str:
    """Strings, booleans, whole numbers and lists of them look the same in JSON."""
    return json.dumps(value, ensure_ascii=False)


def _unsafe() -> ConfigError:
    message = "this file has these settings in a form that cannot be changed safely (several lines, inline tables)."
    return ConfigError(message, hint="Change it by hand; without --write the settings are only shown.")
