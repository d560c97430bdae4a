"""Does a value fit a JSON Schema? As much of it as the demo model needs to check its own work, in counted steps.

References are followed inside the schema only, never to a file or an address. Keywords that are not known here let a value
pass, as the standard says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote

from ...types import Json, JsonObject
from .pattern_text import Node, UnknownPattern, fits, parse

Schema: TypeAlias = Any  # an object, true or false

_DEEPEST = 60
_HOSTNAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*"
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)"
_FORMATS = {
    "date": r"\d{4}-\d\d-\d\d",
    "date-time": r"\d{4}-\d\d-\d\dT" + _CLOCK,
    "time": _CLOCK,
    "duration": r"P(\d{1,9}[YMWD]|T\d{1,9}[HMS])",
    "email": r"[a-z0-9._+-]{1,64}@" + _HOSTNAME,
    "hostname": _HOSTNAME,
    "ipv4": r"((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!$)|$)){4}",
    "ipv6": r"::\d{1,4}",
    "uri": r"[a-z][a-z0-9+.-]{0,30}://[a-z0-9._~/?#@!$&()*+,;=:-]{1,500}",
    "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "json-pointer": r"(/[a-z0-9]{1,99}){0,99}",
    "relative-json-pointer": r"0|[1-9]\d{0,8}",
    "regex": r"[a-z0-9 ]{0,99}",
}
_ALIASES = {
    "idn-email": "email",
    "idn-hostname": "hostname",
    "iri": "uri",
    "uri-reference": "uri",
    "iri-reference": "uri",
    "uri-template": "uri",
    "url": "uri",
}
# Narrower than the standards, on purpose: what passes here passes everywhere.
_SHAPES = {name: re.compile(shape, re.IGNORECASE | re.ASCII) for name, shape in _FORMATS.items()}


class TooCostly(ValueError):
    """The schema needs more steps than it is worth."""


class Checker:
    """One schema with its references, and the steps left to spend on it."""

    def __init__(self, root: Schema, steps: int) -> None:
        self.root = root
        self.steps = steps
        self._patterns: dict[str, Node | None] = {}

    def spend(self, steps: int = 1) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise TooCostly("the schema needs too many steps")

    def resolve(self, reference: object) -> Schema | None:
        """What a reference inside this schema stands for; None where it leads nowhere or outside."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        target = self.root
        for step in unquote(reference).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, dict) and key in target:
                target = target[key]
            elif (
                isinstance(target, list) and key.isascii() and key.isdigit() and len(key) < 5 and int(key) < len(target)
            ):
                target = target[int(key)]
            else:
                return None
        return target if isinstance(target, dict | bool) else None

    def pattern(self, text: str) -> Node | None:
        """The pattern, parsed once; None where it is not understood."""
        if text not in self._patterns:
            self.spend(len(text))
            try:
                self._patterns[text] = parse(text)
            except UnknownPattern:
                self._patterns[text] = None
        return self._patterns[text]

    def fits_pattern(self, text: str, value: str) -> bool:
        """A pattern that is not understood fits nothing: better no value than a wrong one."""
        node = self.pattern(text)
        return node is not None and fits(node, value, self.spend)

    def accepts(self, schema: Schema, value: Json, depth: int = 0) -> bool:
        self.spend()
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return schema is True
        for keyword, rule in schema.items():
            check = _CHECKS.get(keyword)
            if check is not None and not check(self, schema, rule, value, depth + 1):
                return False
        return True


def types_of(value: Json) -> tuple[str, ...]:
    """Every JSON type a value counts as."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case int():
            return ("integer", "number")
        case float():
            return ("integer", "number") if value.is_integer() else ("number",)
        case str():
            return ("string",)
        case list():
            return ("array",)
        case dict():
            return ("object",)
        case _:
            return ()


def canonical(value: Json) -> str:
    """Equal for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    return json.dumps(_whole(value), sort_keys=True)


def exact(number: Json) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Json) -> Json:
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_whole(item) for item in value]
        case dict():
            return {key: _whole(item) for key, item in value.items()}
        case _:
            return value


Check: TypeAlias = Callable[[Checker, JsonObject, Json, Json, int], bool]


def _type(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    wanted = rule if isinstance(rule, list) else [rule]
    return any(kind in wanted for kind in types_of(value))


def _all_of(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return all(checker.accepts(branch, value, depth) for branch in _list(rule))


def _any_of(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return any(checker.accepts(branch, value, depth) for branch in _list(rule))


def _one_of(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return sum(checker.accepts(branch, value, depth) for branch in _list(rule)) == 1


def _not(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return not checker.accepts(rule, value, depth)


def _if(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    branch = schema.get("then" if checker.accepts(rule, value, depth) else "else", True)
    return checker.accepts(branch, value, depth)


def _reference(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    target = checker.resolve(rule)
    return target is not None and checker.accepts(target, value, depth)


def _enum(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    options = _list(rule)
    checker.spend(len(options))
    wanted = canonical(value)
    return any(canonical(option) == wanted for option in options)


def _const(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return canonical(rule) == canonical(value)


def _multiple(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return not is_number(value) or not is_number(rule) or rule <= 0 or exact(value) % exact(rule) == 0


def _format(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, str) or not isinstance(rule, str):
        return True
    name = _ALIASES.get(rule, rule)
    shape = _SHAPES.get(name)
    if shape is None:
        return True
    return bool(shape.fullmatch(value)) and (name not in ("date", "date-time") or _is_date(value[:10]))


def _pattern(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return not isinstance(value, str) or not isinstance(rule, str) or checker.fits_pattern(rule, value)


def _unique(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if rule is not True or not isinstance(value, list):
        return True
    checker.spend(len(value))
    return len({canonical(item) for item in value}) == len(value)


def _items(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, list) or isinstance(rule, list):
        return _prefix_items(checker, schema, rule, value, depth)
    first = len(_list(schema.get("prefixItems")))
    return all(checker.accepts(rule, item, depth) for item in value[first:])


def _prefix_items(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return not isinstance(value, list) or all(
        checker.accepts(branch, item, depth) for branch, item in zip(_list(rule), value, strict=False)
    )


def _contains(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, list):
        return True
    found = sum(checker.accepts(rule, item, depth) for item in value)
    least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
    return not (is_number(least) and found < least) and not (is_number(most) and found > most)


def _required(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return not isinstance(value, dict) or all(name in value for name in _list(rule) if isinstance(name, str))


def _properties(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, dict) or not isinstance(rule, dict):
        return True
    return all(checker.accepts(rule[name], item, depth) for name, item in value.items() if name in rule)


def _pattern_properties(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, dict) or not isinstance(rule, dict):
        return True
    return all(
        checker.accepts(branch, item, depth)
        for pattern, branch in rule.items()
        for name, item in value.items()
        if checker.fits_pattern(pattern, name)
    )


def _additional(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, dict) or rule is True:
        return True
    known = _dict(schema.get("properties"))
    patterns = _dict(schema.get("patternProperties"))
    return all(
        checker.accepts(rule, item, depth)
        for name, item in value.items()
        if name not in known and not any(checker.fits_pattern(pattern, name) for pattern in patterns)
    )


def _property_names(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    return not isinstance(value, dict) or all(checker.accepts(rule, name, depth) for name in value)


def _dependent_required(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, dict) or not isinstance(rule, dict):
        return True
    return all(str(other) in value for name, others in rule.items() if name in value for other in _list(others))


def _dependent_schemas(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
    if not isinstance(value, dict) or not isinstance(rule, dict):
        return True
    return all(checker.accepts(branch, value, depth) for name, branch in rule.items() if name in value)


def _bound(holds: Callable[[Any, Any], bool]) -> Check:
    def check(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
        return not is_number(value) or not is_number(rule) or holds(value, rule)

    return check


def _length(kind: type, holds: Callable[[int, Any], bool]) -> Check:
    def check(checker: Checker, schema: JsonObject, rule: Json, value: Json, depth: int) -> bool:
        return not isinstance(value, kind) or not is_number(rule) or holds(len(value), rule)  # type: ignore[arg-type] # kind has a length

    return check


def _list(rule: Json) -> list[Json]:
    return rule if isinstance(rule, list) else []


def _dict(rule: Json) -> JsonObject:
    return rule if isinstance(rule, dict) else {}


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


_CHECKS: dict[str, Check] = {
    "type": _type,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _reference,
    "enum": _enum,
    "const": _const,
    "multipleOf": _multiple,
    "minimum": _bound(lambda value, rule: value >= rule),
    "maximum": _bound(lambda value, rule: value <= rule),
    "exclusiveMinimum": _bound(lambda value, rule: value > rule),
    "exclusiveMaximum": _bound(lambda value, rule: value < rule),
    "minLength": _length(str, lambda length, rule: length >= rule),
    "maxLength": _length(str, lambda length, rule: length <= rule),
    "minItems": _length(list, lambda length, rule: length >= rule),
    "maxItems": _length(list, lambda length, rule: length <= rule),
    "minProperties": _length(dict, lambda length, rule: length >= rule),
    "maxProperties": _length(dict, lambda length, rule: length <= rule),
    "format": _format,
    "pattern": _pattern,
    "uniqueItems": _unique,
    "items": _items,
    "prefixItems": _prefix_items,
    "contains": _contains,
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
}
