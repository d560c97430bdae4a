"""Patterns of a schema, kept harmless: run in linear time where they can be, bounded where not, left out where neither.

A pattern comes from the client and its text from the model, so both may be hostile. What the linear engine takes is safe
for texts of any length. Look-around and back references need the other engine, whose work grows with the square of the
text; they are marked, so that long texts can be checked without them.
"""

from __future__ import annotations

import re
from functools import lru_cache

import jsonschema_rs

MOST = 60
_MOST_LARGE = 6  # those that repeat something a hundred times: each takes a hundredth of a second to compile or refuse
_LONGEST = 1000
_SIZE = 1_000_000  # bytes of compiled automaton; `^.{1,500}$` needs half of it
LINEAR = jsonschema_rs.RegexOptions(size_limit=_SIZE, dfa_size_limit=_SIZE)
BACKTRACKING = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=_SIZE, dfa_size_limit=_SIZE)
_PYTHON = ((re.compile(r"\(\?P<"), "(?<"), (re.compile(r"\\A"), "^"), (re.compile(r"\\[Zz]\Z"), "$"))
_REPEATED = re.compile(r"\{\d*,?\d{3,}\}|\\[pP]\{")


class Patterns:
    """Those of one schema."""

    def __init__(self) -> None:
        self._slow: set[str] = set()
        self._known: dict[str, str] = {}
        self.weight = 0
        self._large = 0

    @property
    def needs_backtracking(self) -> bool:
        return bool(self._slow)

    def is_slow(self, pattern: str) -> bool:
        return pattern in self._slow

    def read(self, given: str) -> str:
        """The pattern as the engine takes it; "" where it cannot be run."""
        if given not in self._known and len(self._known) < MOST and len(given) <= _LONGEST:
            self._known[given] = self._compiled(given)
        return self._known.get(given, "")

    def _compiled(self, given: str) -> str:
        is_large = _REPEATED.search(given) is not None
        self._large += is_large
        if is_large and self._large > _MOST_LARGE:
            return ""
        plain, is_slow = _compiled(given)
        self.weight += len(given) * 50 + (_SIZE if is_large else 0)
        if is_slow:
            self._slow.add(plain)
        return plain


@lru_cache(maxsize=2000)
def _compiled(given: str) -> tuple[str, bool]:
    for python, ours in _PYTHON:
        given = python.sub(ours, given)
    if _compiles(given, LINEAR):
        return given, False
    return (given, True) if _compiles(given, BACKTRACKING) else ("", False)


def _compiles(pattern: str, options: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options, offline=True)
    except ValueError:
        return False
    return True
