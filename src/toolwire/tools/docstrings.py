"""Parser for docstrings in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

from msgspec import Struct

_PARAMETERS = {"args", "arguments", "parameters", "params", "attributes", "fields"}
_PARAMETERS |= {"keyword args", "keyword arguments", "other parameters"}
_RETURNS = {"returns", "return", "yields", "yield"}
_IGNORED = {"raises", "raise", "exceptions", "warns", "see also", "references", "todo"}
_PROSE = {"example", "examples", "note", "notes", "warning", "warnings", "important", "tip", "hint"}
_SECTIONS = _PARAMETERS | _RETURNS | _IGNORED | _PROSE

_FIELD_PARAMETERS = {"param", "parameter", "arg", "argument", "key", "keyword", "ivar"}
_FIELDS = _FIELD_PARAMETERS | _RETURNS | _IGNORED | {"type", "rtype", "vartype", "except", "exception"}

_RULE = re.compile(r"^[-=]{3,}\s*$")
_GOOGLE = re.compile(r"^\*{0,2}([A-Za-z_]\w*)\s*(?:\(.*?\))?\s*:(?:\s+(.*)|)$")
# The part after the colon is the type, which the signature already has; the second group is empty.
_NUMPY = re.compile(r"^(\*{0,2}[A-Za-z_]\w*(?:\s*,\s*\*{0,2}[A-Za-z_]\w*)*)\s*(?::.*)?()$")
_FIELD = re.compile(r"^:([a-z]+)(?:\s+([^:]*?))?\s*:(?:\s+(.*)|)$")


class Docstring(Struct, frozen=True, kw_only=True):
    """description leaves out parameters and exceptions and includes the return value."""

    description: str = ""
    parameters: dict[str, str] = {}


def parse(text: str | None) -> Docstring:
    """Consumes a section, a field or a line of prose at a time."""
    lines = inspect.cleandoc(text or "").splitlines()
    prose: list[str] = []
    returns: list[str] = []
    parameters: dict[str, str] = {}
    at = 0
    while at < len(lines):
        first, at = at, at + 1
        field = _FIELD.match(lines[first])
        if (title := _title(lines, first)) is not None:
            is_numpy = not lines[first].rstrip().endswith(":")
            start = at = first + (2 if is_numpy else 1)
            while at < len(lines) and _title(lines, at) is None and (is_numpy or _is_indented(lines[at])):
                at += 1
            if title in _PARAMETERS:
                parameters |= _parameters(lines[start:at], _NUMPY if is_numpy else _GOOGLE)
            elif title in _RETURNS:
                returns += lines[start:at]
            elif title in _PROSE:
                prose += lines[first:at]
        elif field is not None and field[1] in _FIELDS:
            while at < len(lines) and lines[at] and _is_indented(lines[at]):
                at += 1
            about = [field[3] or "", *lines[first + 1 : at]]
            if field[1] in _RETURNS:
                returns += about
            elif field[1] in _FIELD_PARAMETERS and (words := (field[2] or "").split()):
                parameters[words[-1].lstrip("*\\")] = _join(about)
        else:
            prose.append(lines[first])
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
    result = f"Returns: {_join(returns)}" if _join(returns) else ""
    return Docstring(description="\n\n".join(filter(None, (description, result))), parameters=parameters)


def _title(lines: Sequence[str], at: int) -> str | None:
    """The title of the section that starts here, in lower case."""
    line = lines[at].rstrip()
    if line.endswith(":") and line[:-1].lower() in _SECTIONS:
        return line[:-1].lower()
    if line.lower() in _SECTIONS and at + 1 < len(lines) and _RULE.match(lines[at + 1]):
        return line.lower()
    return None


def _is_indented(line: str) -> bool:
    return not line or line[0].isspace()


def _parameters(body: Sequence[str], item: re.Pattern[str]) -> dict[str, str]:
    """One entry for each item; its continuation lines are indented deeper than its first."""
    depth = min((_depth(line) for line in body if line.strip()), default=0)
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in body:
        if line.strip() and _depth(line) == depth:
            begun = item.match(line.strip())
            names = [name.strip(" *") for name in begun[1].split(",")] if begun is not None else []
            found |= {name: [begun[2] or ""] for name in names if begun is not None}
        else:
            for name in names:
                found[name].append(line)
    return {name: text for name, parts in found.items() if (text := _join(parts))}


def _join(lines: Sequence[str]) -> str:
    return " ".join(filter(None, (line.strip() for line in lines)))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
