"""Texts for the patterns of JSON Schema: parse one, make a text that fits, say whether a text fits, all in bounded time.

A pattern comes from a client and may be built to make a backtracking engine run for ever, so `re` never sees it. Matching
walks the tree with the set of positions reached so far: polynomial, and counted. What is not understood (back references,
look-behind, Unicode properties) raises UnknownPattern.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

_LONGEST_PATTERN = 2000
_LONGEST_TEXT = 10_000
_DEEPEST = 50
_FRIENDLY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. /:@"

Ranges: TypeAlias = tuple[tuple[int, int], ...]

_DIGITS: Ranges = ((48, 57),)
_WORDS: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACES: Ranges = ((9, 13), (32, 32), (160, 160), (0x2028, 0x2029), (0xFEFF, 0xFEFF))
_CLASSES = {"d": _DIGITS, "w": _WORDS, "s": _SPACES}
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}


class UnknownPattern(ValueError):
    """Not a regular expression, or one beyond what is understood here."""


class One(Struct, frozen=True):
    """One character from these ranges, or from outside of them."""

    ranges: Ranges
    is_negated: bool = False

    def has(self, character: str) -> bool:
        code = ord(character)
        return any(low <= code <= high for low, high in self.ranges) != self.is_negated


class Sequence(Struct, frozen=True):
    nodes: tuple[Node, ...]


class Either(Struct, frozen=True):
    nodes: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    node: Node
    low: int
    high: int | None


class Look(Struct, frozen=True):
    """A condition on a place: it takes no character."""

    kind: Literal["start", "end", "edge", "inside", "ahead", "not_ahead"]
    node: Node | None = None


Node: TypeAlias = One | Sequence | Either | Repeat | Look


def parse(pattern: str) -> Node:
    if len(pattern) > _LONGEST_PATTERN:
        raise UnknownPattern("it is too long")
    parser = _Parser(pattern)
    node = parser.either()
    if parser.rest():
        raise UnknownPattern("it has a bracket too many")
    return node


def sample(node: Node, variant: int = 0, stretch: int = 0) -> str:
    """A text that fits, looks ahead aside; variant picks other characters, stretch repeats more than it must."""
    match node:
        case One():
            return _character(node, variant)
        case Sequence():
            return _bounded("".join(sample(inner, variant, stretch) for inner in node.nodes))
        case Either():
            return sample(node.nodes[variant % len(node.nodes)], variant, stretch)
        case Repeat():
            more = stretch if node.high is None else min(stretch, node.high - node.low)
            if node.low + more > _LONGEST_TEXT:
                raise UnknownPattern("its texts are too long")
            return _bounded(sample(node.node, variant, stretch) * (node.low + more))
        case Look():
            return ""
        case _:
            assert_never(node)


def fits(node: Node, text: str, spend: Callable[[int], None]) -> bool:
    """Does the pattern occur anywhere in text? spend is told how much work is done, and may raise."""
    return bool(_Matcher(text, spend).ends(node, frozenset(range(len(text) + 1))))


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0
        self.depth = 0

    def rest(self) -> str:
        return self.pattern[self.place :]

    def either(self) -> Node:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnknownPattern("it nests too deep")
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        self.depth -= 1
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def _peek(self) -> str:
        return self.pattern[self.place : self.place + 1]

    def _take(self, expected: str) -> bool:
        if self.pattern.startswith(expected, self.place):
            self.place += len(expected)
            return True
        return False

    def _next(self) -> str:
        if self.place >= len(self.pattern):
            raise UnknownPattern("it ends too early")
        self.place += 1
        return self.pattern[self.place - 1]

    def _sequence(self) -> Node:
        nodes: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            nodes.append(self._repeated(self._atom()))
        return Sequence(tuple(nodes))

    def _repeated(self, node: Node) -> Node:
        bounds: tuple[int, int | None]
        if self._take("*"):
            bounds = (0, None)
        elif self._take("+"):
            bounds = (1, None)
        elif self._take("?"):
            bounds = (0, 1)
        elif self._peek() == "{":
            bounds = self._braces()
        else:
            return node
        self._take("?")  # lazy or not, the same texts fit
        return Repeat(node, *bounds)

    def _braces(self) -> tuple[int, int | None]:
        end = self.pattern.find("}", self.place)
        low, comma, high = self.pattern[self.place + 1 : end].partition(",")
        if end < 0 or not _is_count(low) or (high and not _is_count(high)):
            raise UnknownPattern("it has braces that are no count")
        self.place = end + 1
        return int(low), int(high) if high else None if comma else int(low)

    def _atom(self) -> Node:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case "\\":
                return self._escape()
            case ".":
                return One(((10, 10), (13, 13), (0x2028, 0x2029)), True)
            case "^":
                return Look("start")
            case "$":
                return Look("end")
            case "*" | "+" | "?" | "{":
                raise UnknownPattern("it repeats nothing")
            case _:
                return _literal(character)

    def _group(self) -> Node:
        kind: Literal["", "ahead", "not_ahead"] = ""
        if self._take("?="):
            kind = "ahead"
        elif self._take("?!"):
            kind = "not_ahead"
        elif self._take("?<") and self._peek() not in ("=", "!"):
            while self._next() != ">":
                pass
        elif not self._take("?:") and self._peek() in ("?", "=", "!"):
            raise UnknownPattern("it has a group of an unknown kind")
        node = self.either()
        if not self._take(")"):
            raise UnknownPattern("it has an open bracket")
        return Look(kind, node) if kind else node

    def _escape(self) -> Node:
        character = self._next()
        if character in "bB":
            return Look("edge" if character == "b" else "inside")
        return self._escaped(character)

    def _escaped(self, character: str) -> One:
        """An escape that stands for characters, inside a set or outside."""
        if character.lower() in _CLASSES:
            return One(_CLASSES[character.lower()], character.isupper())
        if character in _CONTROLS:
            return _literal(_CONTROLS[character])
        if character in "xu":
            return _literal(self._code(2 if character == "x" else 4))
        if character.isalnum():
            raise UnknownPattern("it has an escape that is not understood")
        return _literal(character)

    def _code(self, digits: int) -> str:
        text = self.pattern[self.place : self.place + digits]
        self.place += digits
        if len(text) < digits or not _HEXADECIMAL.issuperset(text):
            raise UnknownPattern("it has an escape that is not understood")
        return chr(int(text, 16))

    def _set(self) -> Node:
        is_negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            low = self._set_member()
            if (
                self._peek() == "-"
                and self.pattern[self.place + 1 : self.place + 2] not in ("]", "")
                and _is_single(low)
            ):
                self.place += 1
                high = self._set_member()
                ranges.append((low.ranges[0][0], high.ranges[0][1]))
            elif low.is_negated:
                ranges += _outside(low.ranges)
            else:
                ranges += low.ranges
        return One(tuple(ranges), is_negated)

    def _set_member(self) -> One:
        character = self._next()
        if character != "\\":
            return _literal(character)
        return _literal("\b") if self._take("b") else self._escaped(self._next())


class _Matcher:
    def __init__(self, text: str, spend: Callable[[int], None]) -> None:
        self.text = text
        self.spend = spend

    def ends(self, node: Node, starts: frozenset[int]) -> frozenset[int]:
        """Where a match that begins at one of starts can end."""
        self.spend(1 + len(starts) // 8)
        match node:
            case One():
                text = self.text
                return frozenset(place + 1 for place in starts if place < len(text) and node.has(text[place]))
            case Sequence():
                for inner in node.nodes:
                    if not starts:
                        break
                    starts = self.ends(inner, starts)
                return starts
            case Either():
                return frozenset().union(*(self.ends(inner, starts) for inner in node.nodes))
            case Repeat():
                return self._repeated(node, starts)
            case Look():
                return frozenset(place for place in starts if self._holds(node, place))
            case _:
                assert_never(node)

    def _repeated(self, node: Repeat, starts: frozenset[int]) -> frozenset[int]:
        for _ in range(node.low):
            reached = self.ends(node.node, starts)
            if reached == starts or not reached:
                starts = reached
                break
            starts = reached
        found, fresh, rounds = starts, starts, 0
        while fresh and (node.high is None or rounds < node.high - node.low):
            fresh = self.ends(node.node, fresh) - found
            found |= fresh
            rounds += 1
        return found

    def _holds(self, look: Look, place: int) -> bool:
        if look.kind == "start":
            return place == 0
        if look.kind == "end":
            return place == len(self.text)
        if look.node is not None:
            return bool(self.ends(look.node, frozenset({place}))) == (look.kind == "ahead")
        word = One(_WORDS)
        before = place > 0 and word.has(self.text[place - 1])
        after = place < len(self.text) and word.has(self.text[place])
        return (before != after) == (look.kind == "edge")


def _character(one: One, variant: int) -> str:
    friendly = [character for character in _FRIENDLY if one.has(character)]
    if friendly:
        return friendly[variant % len(friendly)]
    places = [low for low, _ in one.ranges] if not one.is_negated else [high + 1 for _, high in one.ranges]
    for place in places:
        if place < 0xD800 and one.has(chr(place)):
            return chr(place)
    raise UnknownPattern("it wants a character that does not exist")


def _outside(ranges: Ranges) -> list[tuple[int, int]]:
    edges = sorted(ranges)
    lows = [0, *(high + 1 for _, high in edges)]
    highs = [*(low - 1 for low, _ in edges), 0x10FFFF]
    return [(low, high) for low, high in zip(lows, highs, strict=True) if low <= high]


def _literal(character: str) -> One:
    return One(((ord(character), ord(character)),))


def _is_single(one: One) -> bool:
    return not one.is_negated and len(one.ranges) == 1 and one.ranges[0][0] == one.ranges[0][1]


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 7


def _bounded(text: str) -> str:
    if len(text) > _LONGEST_TEXT:
        raise UnknownPattern("its texts are too long")
    return text
