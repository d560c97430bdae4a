"""TOML with the line number of every key, which tomllib does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ..errors import ConfigError, quote

KeyPath: TypeAlias = tuple[str, ...]

_TOKEN = re.compile(
    r'''(?P<skipped>[ \t\r]+|\#[^\n]*)
    |(?P<newline>\n)
    |(?P<long>"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5})
    |(?P<quoted>"(?:\\.|[^"\\\n])*"|'[^'\n]*')
    |(?P<mark>[\[\]{}=,.])
    |(?P<bare>[^\s\[\]{}=,.\#"']+)
    |(?P<other>.)''',
    re.DOTALL | re.VERBOSE,
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class Document(Struct, frozen=True, kw_only=True):
    """A parsed file; its errors name file, line and key."""

    name: str
    data: dict[str, Any]
    lines: Mapping[KeyPath, int]

    def line_of(self, path: KeyPath) -> int | None:
        """The line of this key, else of the innermost table around it."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def error(self, path: KeyPath, message: str, hint: str = "") -> ConfigError:
        line = self.line_of(path)
        place = [self.name, f"line {line}" if line else "", dotted(path)]
        return ConfigError(message, where=", ".join(filter(None, place)), hint=hint)


def parse(text: str, name: str) -> Document:
    """Raises ConfigError with the line of the first syntax error."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ConfigError("found values nested too deeply; expected a flat file of tables.", where=name) from None
    except ValueError as error:
        raise _syntax_error(error, text, name) from None
    return Document(name=name, data=data, lines=key_lines(text))


def key_lines(text: str) -> dict[KeyPath, int]:
    """The first line of each key and table of a valid TOML text; list elements have no path."""
    scanner = _Scanner()
    for match in _TOKEN.finditer(text):
        scanner.send(match.lastgroup or "", match.group())
    scanner.send("newline", "\n")
    return scanner.lines


def dotted(path: KeyPath) -> str:
    """The path in TOML syntax."""
    return ".".join(part if _BARE_KEY.fullmatch(part) else quote(part) for part in path)


class _Scanner:
    """Tracks keys and brackets: it is at a key, in a table header, or in a value.

    _open: the lists and inline tables around the current position, each with its path.
    """

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._line = 1
        self._table: KeyPath = ()
        self._key: list[str] = []
        self._path: KeyPath = ()
        self._open: list[tuple[str, KeyPath]] = []
        self._state: Literal["key", "header", "value"] = "key"

    def send(self, kind: str, token: str) -> None:
        if kind == "newline":
            self._end_line()
        elif self._state == "value":
            self._in_value(token)
        elif kind in ("bare", "quoted"):
            self._key.append(token if kind == "bare" else tomllib.loads(f"key = {token}")["key"])
        elif kind == "mark":
            self._at_key(token)
        self._line += token.count("\n")

    def _end_line(self) -> None:
        if self._state == "header":
            self._table = tuple(self._key)
            self._note(self._table)
        if not self._open:
            self._start_key()

    def _at_key(self, mark: str) -> None:
        if mark == "=":
            self._path = self._prefix() + tuple(self._key)
            self._note(self._path)
            self._state = "value"
        elif mark == "[":
            self._state = "header"
        elif mark == "}":
            self._close()

    def _in_value(self, token: str) -> None:
        if token in ("[", "{"):
            self._open.append((token, self._path))
            if token == "{":
                self._start_key()
        elif token in ("]", "}"):
            self._close()
        elif token == "," and self._open and self._open[-1][0] == "{":
            self._start_key()

    def _start_key(self) -> None:
        self._key = []
        self._state = "key"

    def _close(self) -> None:
        if self._open:
            self._path = self._open.pop()[1]
        self._state = "value"

    def _prefix(self) -> KeyPath:
        return self._open[-1][1] if self._open else self._table

    def _note(self, path: KeyPath) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], self._line)


def _syntax_error(error: ValueError, text: str, name: str) -> ConfigError:
    found = _POSITION.search(str(error))
    message = str(error)[: found.start()] if found else "found a value that cannot be read"
    where = name
    if found:
        where = f"{name}, line {found.group(1) or max(len(text.splitlines()), 1)}"
    return ConfigError(f"this is not TOML: {message}.", where=where, hint="Correct that line and start again.")
