"""A small value that fits a JSON Schema, with texts and numbers of a prompt where they fit.

Each place in a schema is first expanded into flat schemas (references followed, allOf merged, one branch of each anyOf and
oneOf taken); for each of them candidates are tried in order, and the first one that the whole place accepts is taken. Every
step is counted, so a hostile schema ends in NoExample and not in a long wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from ...types import Json, JsonObject
from .flat_schema import Expander, Flat
from .pattern_text import UnknownPattern, sample
from .prompt_match import Hints, is_folder, is_place, likely_number
from .scalar_examples import formatted, number_in, numbers, plain_number, size, spelled
from .schema_check import Checker, Schema, TooCostly, canonical

_STEPS = 20_000
_DEEPEST = 24
_TRIES = 60
_MOST_NAMES = 100


class NoExample(ValueError):
    """No value was found: the schema allows none, or hides it too well."""


def example_of(schema: Schema, hints: Hints | None = None) -> Json:
    """Raises NoExample; never follows a reference out of the schema."""
    try:
        return _Maker(plain(schema), hints or Hints()).root()
    except (TooCostly, RecursionError, OverflowError) as fault:
        raise NoExample(str(fault)) from None


def plain(value: Json, depth: int = 0) -> Json:
    """Numbers as int or float, which is what json can write; nothing deeper than can be followed."""
    if depth > 4 * _DEEPEST:
        return True
    match value:
        case dict():
            return {str(key): plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [plain(item, depth + 1) for item in value]
        case Decimal():
            return plain_number(value)
        case _:
            return value


class _Maker:
    def __init__(self, root: Schema, hints: Hints) -> None:
        self.checker = Checker(root, _STEPS)
        self.expander = Expander(self.checker)
        self.hints = hints
        self.used: set[tuple[str, int]] = set()

    def root(self) -> Json:
        return self.value(self.checker.root, "", Flat(self.checker, {}), 0)

    def value(self, schema: Schema, name: str, inside: Flat, depth: int, variant: int = 0) -> Json:
        """variant: how many other values to pass over, for lists whose items must differ."""
        if depth > _DEEPEST:
            raise NoExample("the schema nests too deep")
        seen: set[str] = set()
        for candidate, hint in islice(self._all_candidates(schema, name, inside, depth, variant), _TRIES + variant):
            self.checker.spend()
            known = canonical(candidate)
            if known in seen or not self.checker.accepts(schema, candidate):
                continue
            seen.add(known)
            if len(seen) > variant or isinstance(candidate, dict | list):
                self._use(hint)
                return candidate
        raise NoExample(f"found no value for {name!r}" if name else "found no value")

    def _use(self, hint: tuple[str, int] | None) -> None:
        if hint is not None:
            self.used.add(hint)

    def _all_candidates(
        self, schema: Schema, name: str, inside: Flat, depth: int, variant: int
    ) -> Iterator[tuple[Json, tuple[str, int] | None]]:
        for flat in self.expander.expand(schema, inside):
            yield from _Place(self, flat, name, depth, variant).candidates()


class _Place:
    """One flat schema at one place of the value: the candidates for it, best first."""

    def __init__(self, maker: _Maker, flat: Flat, name: str, depth: int, variant: int) -> None:
        self.maker = maker
        self.flat = flat
        self.rules = flat.rules
        self.name = name
        self.depth = depth
        self.variant = variant

    def candidates(self) -> Iterator[tuple[Json, tuple[str, int] | None]]:
        if "const" in self.rules:
            yield self.rules["const"], None
        elif isinstance(self.rules.get("enum"), list):
            yield from ((option, None) for option in self._options(self.rules["enum"]))
        else:
            yield from self._free()

    def _options(self, options: list[Json]) -> list[Json]:
        """Those that the prompt names, then the rest; null is nobody's first choice."""
        named = [option for option in options[:500] if isinstance(option, str) and self.maker.hints.names(option)]
        return [*named, *sorted(options[:500], key=lambda option: option is None)]

    def _free(self) -> Iterator[tuple[Json, tuple[str, int] | None]]:
        kinds = self.flat.kinds()
        for kind in kinds:
            yield from self._hinted(kind)
        examples = self.rules.get("examples")
        known = examples[:5] if isinstance(examples, list) else []
        known += [self.rules[key] for key in ("example", "default") if key in self.rules]
        yield from ((value, None) for value in known if value is not None or "null" in kinds)
        for kind in kinds:
            yield from ((value, None) for value in islice(self._made(kind), _TRIES // 2 + self.variant))

    def _hinted(self, kind: str) -> Iterator[tuple[Json, tuple[str, int] | None]]:
        hints = self.maker.hints
        named = hints.value_of(self.name)
        if kind == "string":
            if named:
                yield named, None
            yield from self._texts()
        elif kind in ("integer", "number"):
            if named is not None and (number := number_in(named)) is not None:
                yield number, None
            yield from self._unused("number", hints.numbers)
            if (likely := likely_number(self.name, self._description)) is not None:
                yield likely, None
        elif kind == "array" and self.name:
            for pool, values in (("text", hints.quoted), ("number", hints.numbers)):
                unused = [value for value, _ in self._unused(pool, values)]
                if unused:
                    yield unused, None

    def _texts(self) -> Iterator[tuple[Json, tuple[str, int] | None]]:
        hints = self.maker.hints
        if is_place(self.name):
            yield from self._paths()
            return
        yield from self._unused("text", hints.texts)
        yield from self._unused("path", hints.paths)
        if hints.prompt.strip():
            yield hints.prompt.strip()[:200], None

    def _paths(self) -> Iterator[tuple[Json, tuple[str, int] | None]]:
        """Only what looks like a path: the tool may write there."""
        hints = self.maker.hints
        for path, hint in self._unused("path", hints.paths):
            yield hints.located(path, self._description), hint
        if is_folder(self.name, self._description):
            yield hints.workspace or ".", None
        for text, hint in self._unused("text", hints.texts):
            if len(text.split()) == 1:
                yield hints.located(text, self._description), hint

    @property
    def _description(self) -> str:
        description = self.rules.get("description")
        return description if isinstance(description, str) else ""

    def _unused(self, pool: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[str, int] | None]]:
        for place, value in enumerate(values):
            if (pool, place) not in self.maker.used:
                yield value, (pool, place)

    def _made(self, kind: str) -> Iterator[Json]:
        match kind:
            case "null":
                yield None
            case "boolean":
                yield from (False, True)
            case "integer" | "number":
                yield from numbers(self.rules, is_whole=kind == "integer")
            case "string":
                yield from self._strings()
            case "array":
                yield from self._arrays()
            case "object":
                yield from self._objects()

    def _strings(self) -> Iterator[str]:
        yield from formatted(self.rules.get("format"))
        if isinstance(self.rules.get("pattern"), str):
            yield from self._patterned(self.rules["pattern"])
        if self.rules.get("maxLength") == 0:
            yield ""
        yield from spelled(size(self.rules.get("minLength")))

    def _patterned(self, pattern: str) -> Iterator[str]:
        node = self.maker.checker.pattern(pattern)
        least = size(self.rules.get("minLength"))
        made: dict[str, None] = {}
        if node is None:
            return
        for variant in range(20 + self.variant):
            for stretch in dict.fromkeys((0, 1, 2, 3, least)):
                try:
                    text = sample(node, variant, stretch)
                except UnknownPattern:
                    return
                self.maker.checker.spend(2 + len(text) // 16)
                fresh = {one: None for one in (text, text.ljust(least, "a")) if one not in made}
                made |= fresh
                yield from fresh
        yield from (next(iter(made), "") + more for more in islice(spelled(0), 20 + self.variant))

    def _arrays(self) -> Iterator[list[Json]]:
        least = size(self.rules.get("minItems"))
        wanted = size(self.rules.get("minContains", 1)) if "contains" in self.rules else 0
        for length in dict.fromkeys((max(least, wanted), least, least + wanted)):
            saved = set(self.maker.used)
            try:
                yield self._array(length, wanted)
            except NoExample:
                self.maker.used = saved

    def _array(self, length: int, wanted: int) -> list[Json]:
        items: list[Json] = []
        for place in range(length):
            schema = self.flat.item(place)
            if place >= length - wanted:
                schema = {"allOf": [schema, self.rules["contains"]]}
            items.append(self._item(schema, items))
        return items

    def _item(self, schema: Schema, before: list[Json]) -> Json:
        """The next item; where items must differ, the first variant that does."""
        if self.rules.get("uniqueItems") is not True:
            return self.maker.value(schema, "", self.flat, self.depth + 1, self.variant)
        taken = {canonical(item) for item in before}
        for variant in range(len(before) + self.variant, len(before) + self.variant + 8):
            try:
                item = self.maker.value(schema, "", self.flat, self.depth + 1, variant)
            except NoExample:
                break
            if canonical(item) not in taken:
                return item
        return self._any_other(schema, taken)

    def _any_other(self, schema: Schema, taken: set[str]) -> Json:
        for variant in range(len(taken) + 1):
            item = self.maker.value(schema, "", self.flat, self.depth + 1, variant)
            if canonical(item) not in taken:
                return item
        raise NoExample("found too few values that differ")

    def _objects(self) -> Iterator[JsonObject]:
        """First with the optional properties that the prompt names, then as small as can be, then with all of them."""
        needed, optional = self.flat.properties()
        named = [name for name in optional[:_MOST_NAMES] if self._is_named(name)]
        for names in dict.fromkeys(((*needed, *named), tuple(needed), (*needed, *optional[:_MOST_NAMES]))):
            saved = set(self.maker.used)
            try:
                yield self._object(names, needed)
            except NoExample:
                self.maker.used = saved

    def _is_named(self, name: str) -> bool:
        self.maker.checker.spend(3)
        rules = self.flat.property(name)
        options = rules.get("enum") if isinstance(rules, dict) else None
        named = isinstance(options, list) and any(
            isinstance(o, str) and self.maker.hints.names(o) for o in options[:50]
        )
        return named or self.maker.hints.names(name)

    def _object(self, names: tuple[str, ...], needed: list[str]) -> JsonObject:
        made: JsonObject = {}
        for name in names:
            try:
                made[name] = self.maker.value(self.flat.property(name), name, self.flat, self.depth + 1, self.variant)
            except NoExample:
                if name in needed:
                    raise
        self._fill_up(made)
        return made

    def _fill_up(self, made: JsonObject) -> None:
        """minProperties asks for more than there are names for."""
        least = size(self.rules.get("minProperties"))
        _, optional = self.flat.properties()
        spare = chain(optional, self._new_names())
        while len(made) < least and (name := next(spare, None)) is not None:
            if name in made:
                continue
            try:
                made[name] = self.maker.value(self.flat.property(name), name, self.flat, self.depth + 1, self.variant)
            except NoExample:
                continue

    def _new_names(self) -> Iterator[str]:
        for pattern in list(self.flat.part("patternProperties"))[:5]:
            yield from islice(self._patterned(pattern), 10)
        names = {"allOf": [{"type": "string"}, self.rules.get("propertyNames", True)]}
        for variant in range(20):
            yield self.maker.value(names, "", self.flat, self.depth + 1, variant)
