"""Parser for docstrings in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

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
_NUMPY = re.compile(r"^(\*{0,2}[A-Za-z_]\w*(?:\s*,\s*\*{0,2}[A-Za-z_]\w*)*)\s*(?::.*)?$")
_FIELD = re.compile(r"^:([a-z]+)(?:\s+([^:]*?))?\s*:(?:\s+(.*)|)$")


class Docstring(Struct, frozen=True, kw_only=True):
    """description leaves out parameters and exceptions and includes the return value."""

    description: str = ""
    parameters: dict[str, str] = {}


def parse(text: str | None) -> Docstring:
    parser = _Parser(inspect.cleandoc(text or "").splitlines())
    while parser.at < len(parser.lines):
        parser.step()
    returns = _join(parser.returns)
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(parser.prose)).strip()
    return Docstring(
        description="\n\n".join(filter(None, (description, f"Returns: {returns}" if returns else ""))),
        parameters=parser.parameters,
    )


class _Parser:
    """Consumes a section, a field or a line of prose at a time."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.prose: list[str] = []
        self.returns: list[str] = []
        self.parameters: dict[str, str] = {}

    def step(self) -> None:
        field = _FIELD.match(self.lines[self.at])
        if (title := self._title(self.at)) is not None:
            self._section(title)
        elif field is not None and field[1] in _FIELDS:
            self._field(field)
        else:
            self.prose.append(self.lines[self.at])
            self.at += 1

    def _title(self, at: int) -> str | None:
        """The title of the section that starts here, in lower case."""
        line = self.lines[at].rstrip()
        if line.endswith(":") and line[:-1].lower() in _SECTIONS:
            return line[:-1].lower()
        if line.lower() in _SECTIONS and at + 1 < len(self.lines) and _RULE.match(self.lines[at + 1]):
            return line.lower()
        return None

    def _section(self, title: str) -> None:
        first = self.at
        is_numpy = not self.lines[first].rstrip().endswith(":")
        start = first + (2 if is_numpy else 1)
        self.at = start
        while self.at < len(self.lines) and self._is_inside(is_numpy):
            self.at += 1
        body = self.lines[start : self.at]
        if title in _PARAMETERS:
            self.parameters |= _parameters(body, _numpy_item if is_numpy else _google_item)
        elif title in _RETURNS:
            self.returns += body
        elif title in _PROSE:
            self.prose += self.lines[first : self.at]

    def _is_inside(self, is_numpy: bool) -> bool:
        line = self.lines[self.at]
        return self._title(self.at) is None and (is_numpy or not line or line[:1].isspace())

    def _field(self, field: re.Match[str]) -> None:
        """One Sphinx field with its continuation lines."""
        text = [field[3] or ""]
        self.at += 1
        while self.at < len(self.lines) and self.lines[self.at][:1].isspace():
            text.append(self.lines[self.at])
            self.at += 1
        if field[1] in _RETURNS:
            self.returns += text
        elif field[1] in _FIELD_PARAMETERS and (words := (field[2] or "").split()):
            self.parameters[words[-1].lstrip("*\\")] = _join(text)


_Item: TypeAlias = Callable[[str], tuple[tuple[str, ...], str]]


def _parameters(body: Sequence[str], item: _Item) -> dict[str, str]:
    """One entry for each item; its continuation lines are indented deeper than its first."""
    depth = min((_depth(line) for line in body if line.strip()), default=0)
    found: dict[str, list[str]] = {}
    names: tuple[str, ...] = ()
    for line in body:
        if line.strip() and _depth(line) == depth:
            names, text = item(line.strip())
            found |= {name: [text] for name in names}
        else:
            for name in names:
                found[name].append(line)
    return {name: text for name, parts in found.items() if (text := _join(parts))}


def _google_item(line: str) -> tuple[tuple[str, ...], str]:
    found = _GOOGLE.match(line)
    return ((found[1],), found[2] or "") if found is not None else ((), "")


def _numpy_item(line: str) -> tuple[tuple[str, ...], str]:
    """The part after the colon is the type, which the signature already has."""
    found = _NUMPY.match(line)
    return (tuple(name.strip(" *") for name in found[1].split(",")), "") if found is not None else ((), "")


def _join(lines: Sequence[str]) -> str:
    return " ".join(filter(None, (line.strip() for line in lines)))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
