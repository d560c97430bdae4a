"""Regular expressions in the form that the grammars of servers understand.

llama.cpp drops a pattern without anchors, or with a class such as \\d, and then constrains nothing. It puts the pattern between the quotes of a
string, so that a dot or a negated class could end the string. The result has anchors, only sets and plain groups, and matches no character that
JSON escapes. It accepts the same texts or fewer, never others.
"""

from __future__ import annotations

import re
from re import _constants as sre  # type: ignore[attr-defined]  # the parser of patterns has no public name
from re import _parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

_Ranges: TypeAlias = list[tuple[int, int]]

_LAST = 0x10FFFF
_MOST_REPEATS = 1000  # llama.cpp unrolls repetitions
_LONGEST = 1000  # characters of a pattern
_ESCAPED_BY_JSON: _Ranges = [(0, 0x1F), (ord('"'), ord('"')), (ord("\\"), ord("\\"))]
_CATEGORIES: dict[Any, _Ranges] = {
    sre.CATEGORY_DIGIT: [(ord("0"), ord("9"))],
    sre.CATEGORY_SPACE: [(ord(" "), ord(" "))],
    sre.CATEGORY_WORD: [(ord("0"), ord("9")), (ord("A"), ord("Z")), (ord("_"), ord("_")), (ord("a"), ord("z"))],
}
_ALL_SPACES: _Ranges = [(0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x3000), (0xFEFF, 0xFEFF)]
_OPPOSITES = {
    sre.CATEGORY_NOT_DIGIT: _CATEGORIES[sre.CATEGORY_DIGIT],
    sre.CATEGORY_NOT_SPACE: _ALL_SPACES,
    sre.CATEGORY_NOT_WORD: _CATEGORIES[sre.CATEGORY_WORD],
}
_OPERATORS = frozenset("^$.[]()|{}*+?")


class _NoForm(Exception):
    """The pattern has something that a grammar cannot express."""


def grammar_pattern(pattern: str) -> str:
    """ "" if there is no such form."""
    if len(pattern) > _LONGEST:
        return ""
    try:
        parsed = _parser.parse(pattern)
        if parsed.state.flags & re.IGNORECASE:
            return ""
        return _anchored(list(parsed))
    except (re.error, OverflowError, RecursionError, _NoForm):
        return ""


def _anchored(nodes: list[Any]) -> str:
    before = after = _set_of(_complement([]), "*")
    if nodes and nodes[0] == (sre.AT, sre.AT_BEGINNING):
        before, nodes = "", nodes[1:]
    if nodes and nodes[-1] in ((sre.AT, sre.AT_END), (sre.AT, sre.AT_END_STRING)):
        after, nodes = "", nodes[:-1]
    return f"^{before}{_sequence(nodes)}{after}$"


def _sequence(nodes: Any) -> str:
    return "".join(_node(kind, given) for kind, given in nodes)


def _node(kind: Any, given: Any) -> str:
    if kind is sre.LITERAL:
        return _literal(given)
    if kind is sre.IN:
        return _set_of(_members(given))
    if kind is sre.NOT_LITERAL:
        return _set_of(_complement([(given, given)]))
    if kind is sre.ANY:
        return _set_of(_complement([]))
    if kind is sre.BRANCH:
        return f"({'|'.join(_sequence(one) for one in given[1])})"
    if kind is sre.SUBPATTERN and not given[1] and not given[2]:
        return f"({_sequence(given[3])})"
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        return _repeated(*given)
    raise _NoForm


def _literal(code: int) -> str:
    if any(first <= code <= last for first, last in _ESCAPED_BY_JSON):
        raise _NoForm
    return f"\\{chr(code)}" if chr(code) in _OPERATORS else chr(code)


def _repeated(fewest: int, most: Any, nodes: Any) -> str:
    once = _sequence(nodes)
    if len(nodes) != 1 or nodes[0][0] in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        once = f"({once})"
    if fewest > _MOST_REPEATS:
        raise _NoForm
    if most is sre.MAXREPEAT or most > _MOST_REPEATS:
        return once + ({0: "*", 1: "+"}.get(fewest) or f"{{{fewest},}}")
    if fewest == most:
        return f"{once}{{{fewest}}}"
    return once + ("?" if (fewest, most) == (0, 1) else f"{{{fewest},{most}}}")


def _members(given: Any) -> _Ranges:
    found: _Ranges = []
    is_negated = given[0][0] is sre.NEGATE
    for kind, value in given:
        if kind is sre.LITERAL:
            found.append((value, value))
        elif kind is sre.RANGE:
            found.append(value)
        elif kind is sre.CATEGORY and value is sre.CATEGORY_SPACE and is_negated:
            found += _ALL_SPACES
        elif kind is sre.CATEGORY:
            found += _CATEGORIES[value] if value in _CATEGORIES else _complement(_OPPOSITES[value])
        elif kind is not sre.NEGATE:
            raise _NoForm
    return _complement(found) if is_negated else found


def _complement(ranges: _Ranges) -> _Ranges:
    found, start = [], 0
    for first, last in sorted(ranges):
        if start < first:
            found.append((start, first - 1))
        start = max(start, last + 1)
    return [*found, (start, _LAST)] if start <= _LAST else found


def _set_of(ranges: _Ranges, repetition: str = "") -> str:
    """A set of the characters in the ranges that JSON does not escape."""
    excluded = sorted([*_complement(ranges), *_ESCAPED_BY_JSON])
    allowed = _complement(excluded)
    if not allowed:
        raise _NoForm
    is_open = allowed[-1][1] == _LAST
    return f"[{'^' if is_open else ''}{_listed(_complement(allowed) if is_open else allowed)}]{repetition}"


def _listed(ranges: _Ranges) -> str:
    """llama.cpp knows no escapes for ^ and - in a set. So they are written last, where they have no meaning."""
    written, last = "", ""
    for first, end in ranges:
        for sign in "^-":
            if ord(sign) in (first, end):
                last += sign
                first, end = first + (first == ord(sign)), end - (end == ord(sign))
        if first == end:
            written += _character(first)
        elif first < end:
            written += f"{_character(first)}-{_character(end)}"
    if not written and last.startswith("^"):
        raise _NoForm
    return written + "".join(sorted(last, reverse=True))


def _character(code: int) -> str:
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\{chr(code)}" if chr(code) in "\\[]" else chr(code)
