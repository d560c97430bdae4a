"""Small values that fit a JSON Schema: for the example in a tool prompt, and for the calls of the demo model.

For each place of a schema the generator proposes values, the likely ones first, and a compiled schema of that place accepts or rejects them.
Unions are tried branch by branch, allOf is merged; where merging is not exact, the compiled schema still decides. A budget of steps bounds the
work for every schema.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain, count, islice
from re import _constants as sre  # type: ignore[attr-defined]  # the parser of patterns has no public name
from re import _parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

import jsonschema_rs

from ...types import Json, JsonObject
from ...wire.exact_json import BadJson, encode
from .checker import Checker, TooCostly
from .reader import NormalSchema, Uncheckable, UnreadableSchema, read

Proposal: TypeAlias = tuple[Json, Hashable]  # the key of a proposal that may be used once, or None
_References: TypeAlias = tuple[str, ...]

_STEPS = 4000
_DEEPEST = 24
_TRIES = 60
_LONGEST = 10_000  # characters and items
_LARGEST = 400  # digits
_SAME_REFERENCE = 2  # times on the way to one place: enough for a tree with one leaf
_ANNOTATIONS = ("format", "description", "default", "example", "examples")
_COMBINATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else"})
_KINDS = ("string", "integer", "number", "boolean", "array", "object", "null")
_SIGNS = {  # keywords that tell the type of a schema without one
    "object": {"properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"},
    "array": {"items", "prefixItems", "minItems", "contains", "uniqueItems"},
    "string": {"pattern", "minLength", "maxLength", "format"},
    "number": {"minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"},
}
_FORMATS = {  # with a number that makes them differ and is a legal day of a month
    "date": "2025-01-{:02d}",
    "date-time": "2025-01-{:02d}T00:00:00Z",
    "time": "00:00:{:02d}Z",
    "duration": "P{}D",
    "email": "user{}@example.com",
    "hostname": "host{}.example.com",
    "ipv4": "192.0.2.{}",
    "ipv6": "::{}",
    "uri": "https://example.com/{}",
    "url": "https://example.com/{}",
    "uuid": "00000000-0000-4000-8000-0000000000{:02d}",
    "json-pointer": "/{}",
    "relative-json-pointer": "{}",
    "regex": "a{}",
}


class NoExample(ValueError):
    """No value was found: the schema allows none, or the search took too many steps."""


class Suggestions:
    """What is known about the wanted value; this class knows nothing. fewest_items: of a list that may be empty."""

    placeholder = "..."
    fewest_items = 1

    def values(self, name: str, kind: str, rules: JsonObject) -> Iterable[Proposal]:
        """Preferred values for a property of this name. kind: a type of JSON, or "enum"."""
        return ()

    def wants(self, name: str, rules: Json) -> bool:
        """Whether an optional property is wanted."""
        return False


def example_of(schema: Json, suggestions: Suggestions | None = None, steps: int = _STEPS) -> Json:
    """Raises NoExample, also if it is not found in so many steps; never follows a reference out of the schema."""
    if not isinstance(schema, dict):
        schema = {} if schema is True else {"not": {}}
    # The reader expects the schema of an object, as tools have it; any other becomes a property of one.
    is_object = "object" in _listed(schema.get("type", "object"))
    if not is_object:
        shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        schema = {"type": "object", "properties": {"value": schema}, "required": ["value"], **shared}
    try:
        generator = _Generator(read(schema, _ANNOTATIONS), suggestions or Suggestions(), steps)
        return generator.root if is_object else generator.root["value"]
    except (UnreadableSchema, Uncheckable, TooCostly, BadJson, RecursionError, OverflowError, ValueError) as fault:
        raise NoExample(str(fault)) from None


class _Generator:
    def __init__(self, reading: NormalSchema, suggestions: Suggestions, steps: int) -> None:
        self._reading = reading
        self._definitions: JsonObject = reading.schema.get("$defs", {})
        self._suggestions = suggestions
        self._left = steps
        self._used: set[Hashable] = set()
        self._checker = Checker(reading)
        self._refers_to_root = b'"$ref":"#"' in encode(reading.schema)
        self._checkers: dict[
            int, tuple[Json, Checker | None]
        ] = {}  # by id, with the part itself so that the id stays its own
        self.root = self.value(reading.schema)

    def value(
        self, schema: Json, name: str = "", depth: int = 0, passed: _References = (), variant: int = 0
    ) -> Any:  # Json
        """variant: how many other values to skip, for lists whose items must differ."""
        if depth > _DEEPEST:
            raise NoExample("the schema nests too deep")
        seen = set[bytes]()
        proposals = (
            proposal
            for rules, references in self._readings(schema, passed)
            for proposal in _Place(self, rules, name, depth, references, variant).proposals(self._suggestions)
        )
        for value, key in islice(proposals, _TRIES + variant):
            written = encode(value)
            self.spend(1 + len(written) // 500)
            if key in self._used or written in seen or not self._fits(schema, value, len(written)):
                continue
            seen.add(written)
            if len(seen) > variant or isinstance(value, dict | list):
                if key is not None:
                    self._used.add(key)
                return value
        raise NoExample(f"found no value for {name!r}" if name else "found no value")

    def attempt(self, schemas: Iterable[Any]) -> Iterator[Any]:
        """Each of these values; the suggestions in one that is not taken may be used again."""
        while True:
            used = set(self._used)
            try:
                yield next(iter(schemas))
            except StopIteration:
                return
            except NoExample:
                pass
            self._used = used

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooCostly("the schema needs too many steps")

    def _fits(self, schema: Json, value: Json, size: int) -> bool:
        if schema is self._reading.schema:
            return self._checker.fits(value, size)
        if id(schema) not in self._checkers:
            self._checkers[id(schema)] = schema, self._checker_of(schema)
        checker = self._checkers[id(schema)][1]
        return checker is None or checker.fits({"value": value}, size)

    def _checker_of(self, schema: Json) -> Checker | None:
        """None for a part that may refer to the root, which only the check of the root can follow."""
        written = encode(schema)
        self.spend(5 + len(written) // 100)
        whole: JsonObject = {"properties": {"value": schema}}
        if b'"$ref"' in written:
            if self._refers_to_root:
                return None
            whole["$defs"] = self._definitions
        return Checker(NormalSchema(whole, (), self._reading.patterns))

    def _readings(self, schema: Json, passed: _References) -> Iterator[tuple[JsonObject, _References]]:
        """The schema without combinators: one result for each way through its unions."""
        self.spend()
        if not isinstance(schema, dict):
            if schema:
                yield {}, passed
            return
        choices: list[list[Json]] = [[part] for part in schema.get("allOf", ())]
        if (reference := schema.get("$ref")) is not None:
            if passed.count(reference) >= _SAME_REFERENCE:
                return
            passed = (*passed, reference)
            name = reference.removeprefix("#/$defs/")
            choices.append([self._reading.schema if reference == "#" else self._definitions[name]])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                choices.append(sorted(schema[key], key=lambda part: part == {"type": "null"}))
        if "if" in schema:
            choices.append([{"allOf": [schema["if"], schema.get("then", True)]}, schema.get("else", True)])
        rules = {key: rule for key, rule in schema.items() if key not in _COMBINATORS}
        yield from self._combined(rules, choices, passed)

    def _combined(
        self, rules: JsonObject, choices: list[list[Json]], passed: _References
    ) -> Iterator[tuple[JsonObject, _References]]:
        if not choices:
            yield rules, passed
            return
        for branch in choices[0]:
            for more, references in self._readings(branch, passed):
                if (both := _merged(rules, more)) is not None:
                    yield from self._combined(both, choices[1:], references)


class _Place:
    """One place of the value, by rules without combinators."""

    def __init__(
        self, generator: _Generator, rules: JsonObject, name: str, depth: int, passed: _References, variant: int
    ) -> None:
        self._generator = generator
        self._rules = rules
        self._name = name
        self._depth = depth
        self._passed = passed
        self._variant = variant

    def proposals(self, suggestions: Suggestions) -> Iterator[Proposal]:
        rules = self._rules
        if "const" in rules:
            yield rules["const"], None
            return
        if "enum" in rules:
            yield from suggestions.values(self._name, "enum", rules)
            yield from ((option, None) for option in sorted(rules["enum"][:500], key=lambda option: option is None))
            return
        kinds, form = _kinds(rules), rules.get("format")
        known = [
            *_listed(rules.get("examples", []))[:5],
            *(rules[key] for key in ("example", "default") if key in rules),
        ]
        given = chain(
            (proposal for kind in kinds for proposal in suggestions.values(self._name, kind, rules)),
            ((value, None) for value in known if value is not None or "null" in kinds),
        )
        yield from (proposal for proposal in given if _has_format(form, proposal[0]))
        for kind in kinds:
            yield from ((made, None) for made in islice(self._made(kind, suggestions), _TRIES // 2 + self._variant))

    def _made(self, kind: str, suggestions: Suggestions) -> Iterable[Json]:
        match kind:
            case "null":
                return (None,)
            case "boolean":
                return (True, False)
            case "integer" | "number":
                return _numbers(self._rules, is_whole=kind == "integer")
            case "string":
                return self._strings(suggestions.placeholder)
            case "array":
                return self._generator.attempt(self._arrays(suggestions.fewest_items))
            case _:
                return self._generator.attempt(self._objects(suggestions))

    def _strings(self, placeholder: str) -> Iterator[str]:
        least = _size(self._rules.get("minLength"))
        if (form := self._rules.get("format")) in _FORMATS:
            yield from (_FORMATS[form].format(number) for number in range(1, 29))
        if "pattern" in self._rules:
            yield from self._patterned(self._rules["pattern"], least)
        yield from (placeholder, "") if not least else ()
        yield from _spelled(least)

    def _patterned(self, pattern: str, least: int = 0) -> Iterator[str]:
        made = dict[str, None]()
        for variant in range(20 + self._variant):
            for stretch in dict.fromkeys((0, 1, 2, 3, least)):
                self._generator.spend()
                text = _sample(pattern, variant, stretch)
                fresh = [one for one in dict.fromkeys((text, text.ljust(least, "a"))) if one not in made]
                made.update(dict.fromkeys(fresh))
                yield from fresh
        yield from (next(iter(made)) + more for more in islice(_spelled(0), 20 + self._variant))

    def _arrays(self, fewest: int) -> Iterator[list[Json]]:
        least, most = _size(self._rules.get("minItems")), self._rules.get("maxItems", math.inf)
        wanted = _size(self._rules.get("minContains", 1)) if "contains" in self._rules else 0
        for length in dict.fromkeys((max(least, wanted, min(fewest, most)), max(least, wanted), least + wanted)):
            items: list[Json] = []
            while len(items) < length:
                items.append(self._item(items, is_wanted=len(items) >= length - wanted))
            yield items

    def _item(self, before: list[Json], *, is_wanted: bool) -> Json:
        rules, place = self._rules, len(before)
        prefix = rules.get("prefixItems", [])
        schema = prefix[place] if place < len(prefix) else rules.get("items", True)
        if is_wanted:
            schema = {"allOf": [schema, rules["contains"]]}
        if not rules.get("uniqueItems"):
            return self._inner(schema, "", self._variant)
        for variant in dict.fromkeys((self._variant + place, *range(self._variant, self._variant + place + 2))):
            if (item := self._inner(schema, "", variant)) not in before:
                return item
        raise NoExample("found too few values that differ")

    def _objects(self, suggestions: Suggestions) -> Iterator[JsonObject]:
        """With the optional properties that are wanted, then as small as possible, then with all of them."""
        properties = self._rules.get("properties", {})
        needed = list(dict.fromkeys(self._rules.get("required", ())))
        for name in needed:  # which grows
            needed += [other for other in self._rules.get("dependentRequired", {}).get(name, ()) if other not in needed]
        optional = [name for name in properties if name not in needed][:100]
        wanted = [name for name in optional if suggestions.wants(name, properties[name])]
        for names in dict.fromkeys(((*needed, *wanted), tuple(needed), (*needed, *optional))):
            self._generator.spend(len(names))
            yield self._object(names, needed, optional)

    def _object(self, names: Iterable[str], needed: list[str], optional: list[str]) -> JsonObject:
        made: JsonObject = {}
        least = _size(self._rules.get("minProperties"))
        spare = (name for name in chain(optional, self._new_names()) if name not in made)
        for name in chain(names, iter(lambda: next(spare, None) if len(made) < least else None, None)):
            try:
                made[name] = self._inner(self._property(name), name, self._variant)
            except NoExample:
                if name in needed:
                    raise
        return made

    def _property(self, name: str) -> Json:
        if name in (known := self._rules.get("properties", {})):
            return known[name]
        for pattern, schema in self._rules.get("patternProperties", {}).items():
            if re.search(pattern, name):
                return schema
        return self._rules.get("additionalProperties", True)

    def _new_names(self) -> Iterator[str]:
        for pattern in islice(self._rules.get("patternProperties", {}), 5):
            yield from islice(self._patterned(pattern), 10)
        schema = {"allOf": [{"type": "string", "minLength": 1}, self._rules.get("propertyNames", True)]}
        for variant in range(20):
            yield self._inner(schema, "", variant)

    def _inner(self, schema: Json, name: str, variant: int) -> Any:
        return self._generator.value(schema, name, self._depth + 1, self._passed, variant)


def _merged(first: JsonObject, second: JsonObject) -> JsonObject | None:
    """Both at once, as far as one set of rules can say it; None if no type is left."""
    both = {**first, **second}
    for key in first.keys() & second.keys():
        one, other = first[key], second[key]
        if key in ("properties", "patternProperties", "dependentRequired"):
            both[key] = {
                **one,
                **{name: {"allOf": [one[name], rule]} if name in one else rule for name, rule in other.items()},
            }
        elif key == "required":
            both[key] = [*one, *other]
        elif key == "enum":
            both[key] = [option for option in one if option in other]
        elif key == "type":
            kinds = [kind for kind in _KINDS if _allows(one, kind) and _allows(other, kind)]
            if not kinds:
                return None
            both[key] = kinds
        elif key == "multipleOf":
            both[key] = math.lcm(one, other) if isinstance(one, int) and isinstance(other, int) else other
        elif key in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
            both[key] = max(one, other)
        elif key in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
            both[key] = min(one, other)
        elif key in ("items", "additionalProperties", "contains", "propertyNames", "not"):
            both[key] = {"allOf": [one, other]} if key != "not" else {"anyOf": [one, other]}
    return both


def _allows(types: Json, kind: str) -> bool:
    return kind in _listed(types) or (kind == "integer" and "number" in _listed(types))


def _kinds(rules: JsonObject) -> list[str]:
    """The types to try: those of the schema, else those that its other keywords suggest; null last."""
    signs = [kind for kind, keywords in _SIGNS.items() if not keywords.isdisjoint(rules)]
    kinds = _listed(rules["type"]) if "type" in rules else list(dict.fromkeys([*signs, *_KINDS]))
    return sorted(kinds, key=lambda kind: kind == "null")


def _listed(value: Json) -> list[Any]:
    return value if isinstance(value, list) else [value]


@lru_cache(64)
def _format_validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"format": name}, validate_formats=True, offline=True)


def _has_format(name: Json, value: Json) -> bool:
    if not isinstance(name, str) or not isinstance(value, str):
        return True
    return _format_validator(name[:100]).is_valid(value.encode("utf-8", "replace").decode())


def _numbers(rules: JsonObject, *, is_whole: bool) -> Iterator[int | float]:
    """The bounds and 1 first, then all around them; without bounds there is no end of them."""
    low = max((_exact(rules[key]) for key in ("minimum", "exclusiveMinimum") if key in rules), default=None)
    high = min((_exact(rules[key]) for key in ("maximum", "exclusiveMaximum") if key in rules), default=None)
    step = _exact(rules.get("multipleOf", 1))
    if is_whole:
        step = Fraction(step.numerator)
    start = low if low is not None else high if high is not None else Fraction(1)
    if not is_whole and "multipleOf" not in rules:
        yield from (_plain(start), *(() if low is None or high is None else (_plain((low + high) / 2),)))
    first = math.ceil(start / step) if low is not None or high is None else math.floor(start / step)
    for number in count():
        around = dict.fromkeys(((first + number) * step, (first - number) * step))
        inside = [one for one in around if (low is None or one >= low) and (high is None or one <= high)]
        if number > 0 and not inside:
            return
        yield from map(_plain, inside)


def _exact(number: Any) -> Fraction:
    if abs(Decimal(number).adjusted()) > _LARGEST:
        raise NoExample("the schema has a number with too many digits")
    return Fraction(str(number))


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _size(rule: Any) -> int:
    return 0 if rule is None else min(int(rule), _LONGEST)


def _spelled(least: int) -> Iterator[str]:
    """a, b, c, ... ba, bb and so on, filled up to the least length."""
    for number in count():
        letters = ""
        while number or not letters:
            number, letter = divmod(number, 26)
            letters = chr(ord("a") + letter) + letters
        yield letters.rjust(least, "a")


def _sample(pattern: str, variant: int, stretch: int) -> str:
    """A text that the pattern may match. variant: which characters and branches. stretch: repetitions beyond the fewest."""
    try:
        return _text_of(_parser.parse(pattern), variant, stretch, {})[:_LONGEST]
    except (re.error, OverflowError, RecursionError):
        return ""


def _text_of(nodes: Any, variant: int, stretch: int, groups: dict[int, str]) -> str:
    text = ""
    for kind, given in nodes:
        if kind is sre.LITERAL:
            text += chr(given)
        elif kind is sre.IN:
            text += _character_in(given, variant)
        elif kind is sre.NOT_LITERAL:
            text += "a" if given != ord("a") else "b"
        elif kind is sre.ANY:
            text += "a"
        elif kind is sre.BRANCH:
            text += _text_of(given[1][variant % len(given[1])], variant, stretch, groups)
        elif kind is sre.SUBPATTERN:
            groups[given[0]] = _text_of(given[-1], variant, stretch, groups)
            text += groups[given[0]]
        elif kind is sre.GROUPREF:
            text += groups.get(given, "")
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            fewest, most, repeated = given
            once = _text_of(repeated, variant, stretch, groups)
            text += once * min(fewest + stretch, int(most), _LONGEST // max(1, len(once)))
    return text


def _character_in(given: Any, variant: int) -> str:
    """One character of a set, or of a few that a negated set leaves."""
    options: list[str] = []
    for kind, value in given:
        if kind is sre.LITERAL:
            options.append(chr(value))
        elif kind is sre.RANGE:
            options += map(chr, range(value[0], min(value[1], value[0] + 30) + 1))
        elif kind is sre.CATEGORY:
            options += _CATEGORIES.get(value, "a")
    if given[0][0] is sre.NEGATE:
        options = [one for one in "ab01 -_AB./" if one not in options] or ["a"]
    return options[variant % len(options)]


_CATEGORIES = {
    sre.CATEGORY_DIGIT: "0123456789",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "ab01_AB",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "ab01-_AB./",
    sre.CATEGORY_NOT_WORD: "-",
}
