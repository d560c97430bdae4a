"""JSON Schemas without combinators: references followed, allOf merged, one branch of every anyOf and oneOf taken.

A flat schema is a guide for making a value, not a judge of it: where merging cannot be exact (two patterns, say) one of the
rules is kept, and the checker has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import lcm
from typing import Any

from ...types import Json, JsonObject
from .schema_check import Checker, Schema, canonical, exact, is_number

_DEEPEST = 40
_MOST_BRANCHES = 200
_SAME_REFERENCE = 2  # how often one reference may stand on the way to a place: enough for a tree with one leaf
_COMBINATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"})
_KINDS = ("string", "integer", "number", "boolean", "array", "object", "null")
_SIGNS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "contains", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"),
}


class Flat:
    """rules has no combinators; references are those passed on the way from the root."""

    def __init__(self, checker: Checker, rules: JsonObject, references: tuple[str, ...] = ()) -> None:
        self.checker = checker
        self.rules = rules
        self.references = references

    def kinds(self) -> list[str]:
        """The types to try: as the schema says, else as its other rules suggest; null comes last."""
        wanted = self.rules.get("type", _KINDS)
        if "type" not in self.rules:
            signs = [kind for kind, rules in _SIGNS.items() if any(rule in self.rules for rule in rules)]
            wanted = [*signs, *_KINDS]
        kinds = wanted if isinstance(wanted, list | tuple) else [wanted]
        known = dict.fromkeys(kind for kind in kinds if isinstance(kind, str) and kind in _KINDS)
        return sorted(known, key=lambda kind: kind == "null")

    def part(self, keyword: str) -> JsonObject:
        """The rule of a keyword that should be an object."""
        rule = self.rules.get(keyword)
        return rule if isinstance(rule, dict) else {}

    def properties(self) -> tuple[list[str], list[str]]:
        """The names that must be there, with what they bring along, and the names that may."""
        required = self.rules.get("required")
        needed = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        others = self.part("dependentRequired")
        for name in needed:
            self.checker.spend()
            more = others.get(name)
            needed += (
                [other for other in more if isinstance(other, str) and other not in needed]
                if isinstance(more, list)
                else []
            )
        return needed, [name for name in self.part("properties") if name not in needed]

    def property(self, name: str) -> Schema:
        known = self.part("properties")
        if name in known:
            return known[name]
        for pattern, schema in self.part("patternProperties").items():
            if self.checker.fits_pattern(pattern, name):
                return schema
        return self.rules.get("additionalProperties", True)

    def item(self, place: int) -> Schema:
        prefix, rest = self.rules.get("prefixItems"), self.rules.get("items", True)
        if isinstance(rest, list):  # before 2020-12 items was what prefixItems is now
            prefix, rest = rest, self.rules.get("additionalItems", True)
        return prefix[place] if isinstance(prefix, list) and place < len(prefix) else rest


class Expander:
    def __init__(self, checker: Checker) -> None:
        self.checker = checker

    def expand(self, schema: Schema, inside: Flat, depth: int = 0) -> Iterator[Flat]:
        """Every way to take the branches of a schema, the plainest first."""
        self.checker.spend()
        if schema is True:
            yield Flat(self.checker, {}, inside.references)
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return
        rules = {keyword: rule for keyword, rule in schema.items() if keyword not in _COMBINATORS}
        choices = self._choices(schema, inside.references)
        if "$ref" not in schema:
            yield from self._combined(Flat(self.checker, rules, inside.references), choices, depth + 1)
            return
        reference = str(schema["$ref"])
        if inside.references.count(reference) < _SAME_REFERENCE:
            start = Flat(self.checker, rules, (*inside.references, reference))
            yield from self._combined(start, [[self.checker.resolve(reference)], *choices], depth + 1)

    def _choices(self, schema: JsonObject, references: tuple[str, ...]) -> list[list[Schema]]:
        """One list of branches for each decision to take."""
        choices = [[branch] for branch in _list(schema.get("allOf"))]
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = _list(schema[keyword])[:_MOST_BRANCHES]
                choices.append(sorted(branches, key=lambda branch: _lateness(branch, references)))
        if "if" in schema:
            choices.append([True, {"allOf": [schema["if"], schema.get("then", True)]}, schema.get("else", True)])
        if isinstance(dependent := schema.get("dependentSchemas"), dict):
            choices.append([True, *dependent.values()])
        return choices

    def _combined(self, flat: Flat, choices: list[list[Schema]], depth: int) -> Iterator[Flat]:
        if not choices:
            yield flat
            return
        for branch in choices[0]:
            for other in self.expand(branch, flat, depth):
                rules = merged(flat.rules, other.rules)
                if rules is not None:
                    yield from self._combined(Flat(self.checker, rules, other.references), choices[1:], depth)


def merged(first: JsonObject, second: JsonObject) -> JsonObject | None:
    """The rules of both; None where no value can follow both."""
    rules = dict(first)
    for keyword, rule in second.items():
        if keyword not in rules:
            rules[keyword] = rule
        elif keyword in _MERGERS:
            rules[keyword] = _MERGERS[keyword](rules[keyword], rule)
            if rules[keyword] is None:
                return None
        elif keyword == "const" and canonical(rule) != canonical(rules[keyword]):
            return None
    return rules


def _lateness(branch: Schema, references: tuple[str, ...]) -> int:
    """A way back to where we come from is tried last, and null, which says nothing, just before."""
    if not isinstance(branch, dict):
        return 0
    return 2 if branch.get("$ref") in references else 1 if branch.get("type") == "null" else 0


def _list(rule: Json) -> list[Json]:
    return rule if isinstance(rule, list) else []


def _types(first: Json, second: Json) -> Json:
    one, other = _kinds(first), _kinds(second)
    common = [kind for kind in one if kind in other or (kind == "integer" and "number" in other)]
    common += [kind for kind in other if kind == "integer" and "number" in one and kind not in common]
    return common or None


def _kinds(rule: Json) -> list[Json]:
    return rule if isinstance(rule, list) else [rule]


def _common(first: Json, second: Json) -> Json:
    allowed = {canonical(option) for option in _list(second)}
    return [option for option in _list(first) if canonical(option) in allowed] or None


def _union(first: Json, second: Json) -> Json:
    names = [name for name in [*_list(first), *_list(second)] if isinstance(name, str)]
    return list(dict.fromkeys(names))


def _both(first: Json, second: Json) -> Json:
    return {"allOf": [first, second]} if not isinstance(first, list) and not isinstance(second, list) else first


def _each(first: Json, second: Json) -> Json:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return first
    shared = {name: _both(first[name], second[name]) for name in first.keys() & second.keys()}
    return {name: shared.get(name, rule) for name, rule in (first | second).items()}


def _multiple(first: Json, second: Json) -> Json:
    if not (is_number(first) and is_number(second) and first > 0 and second > 0):
        return first
    one, other = exact(first), exact(second)
    bottom = lcm(one.denominator, other.denominator)
    common = Fraction(lcm(int(one * bottom), int(other * bottom)), bottom)
    return int(common) if common.denominator == 1 else float(common)


def _stricter(choose: Callable[..., Any]) -> Callable[[Json, Json], Json]:
    return lambda first, second: choose(first, second) if is_number(first) and is_number(second) else first


_MERGERS: dict[str, Callable[[Json, Json], Json]] = {
    "type": _types,
    "enum": _common,
    "required": _union,
    "properties": _each,
    "patternProperties": _each,
    "items": _both,
    "contains": _both,
    "additionalProperties": _both,
    "propertyNames": _both,
    "multipleOf": _multiple,
    "uniqueItems": lambda first, second: first is True or second is True,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), _stricter(max)),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), _stricter(min)),
}
