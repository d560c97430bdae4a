"""Compiled schemas: whether arguments fit, and why not, in bounded time and memory; and a cache of them.

The validator follows every path through unions and references, and paths multiply: twenty-four definitions, each an anyOf of the next one
twice, are sixteen million paths. So cost_of counts first, in time linear in the schema, how often one place of a value can be visited.
Recursive references count once for each place, as in the validator itself.

Schemas recur in every request of a conversation. The cache finds one by its own JSON, which costs a few microseconds to encode; a hash would
cost as much again.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import NamedTuple, TypeAlias

import jsonschema_rs

from ...errors import BadRequest, quote
from ...types import Json, JsonObject, RecurringTools, Tool
from ...wire.exact_json import BadJson, encode
from .keywords import INNER, INNER_LISTS, SAME, SAME_LISTS, children, pointer, referred, types_of
from .reader import BACKTRACKING, LINEAR, NormalSchema, SchemaPatterns, Uncheckable, UnreadableSchema, read
from .shape import ValueShape

Fault: TypeAlias = jsonschema_rs.ValidationError

MAX_BYTES = 32 << 20  # of memory, estimated
MAX_SCHEMAS = 1000  # the tools of some twenty agents; small schemas would take long to reach the bound in bytes
_PER_BYTE = 30  # a compiled schema weighs about so much for each byte of its JSON
_LARGEST = 2 << 20
_MOST_LOOKS = 3_000_000  # about a tenth of a second
_MOST_SAID = 20_000  # a reported fault costs a hundred visits and more
_MOST_REPORTED = 4_000_000  # characters: each missing member is reported with the whole object that lacks it
_MOST_FAULTS = 200
_DEEPEST_SAID = 10  # the faults of unions in a recursive schema double with each level
_DEEPEST = 200  # levels of arguments; the validator itself gives up a little later
_CONTAINERS = (dict, list)
_LONG = 16_384  # characters of arguments; beyond, patterns that backtrack are left out


class TooCostly(Exception):
    """The schema and these arguments together need more work than they are worth."""


class Checker:
    """Made from a reading; raises ValueError where the schema cannot be compiled after all."""

    def __init__(self, reading: NormalSchema) -> None:
        self.schema = reading.schema
        self.notes = reading.notes
        self._patterns = reading.patterns
        self._looks, self._is_recursive, self._demands = cost_of(reading.schema)
        if self._looks > _MOST_LOOKS:
            raise ValueError(f"the schema has {self._looks} ways through it or more")
        self.has_integers, self.has_text_unions = _features(reading.schema)
        options = BACKTRACKING if reading.patterns.needs_backtracking else LINEAR
        self._validator = _compiled(reading.schema, options)
        self._for_long = self._validator
        if reading.patterns.needs_backtracking:
            self._for_long = _compiled(_without_slow(reading.schema, reading.patterns), LINEAR)

    @cached_property
    def shape(self) -> ValueShape:
        """What is known of the arguments before they are complete."""
        return ValueShape(self.schema, [self.schema])

    def fits(self, arguments: Json, size: int) -> bool:
        """size is that of the arguments as text, or a little more; raises TooCostly."""
        if self._looks * size > _MOST_LOOKS and not has_at_most(_MOST_LOOKS // self._looks, arguments):
            raise TooCostly("the schema has too many ways through it for so large a value")
        validator = self._for_long if size > _LONG else self._validator
        try:
            return validator.is_valid(arguments)
        except ValueError:
            return validator.is_valid(_whole_characters(arguments))

    def faults(self, arguments: Json, size: int) -> list[Fault]:
        """Why it does not fit; empty where there would be too many faults to report."""
        if self._looks * size > _MOST_SAID and not has_at_most(_MOST_SAID // self._looks, arguments):
            return []
        shown = max(size, 4000)
        if self._demands * shown > _MOST_REPORTED and self._lacks(arguments) * shown > _MOST_REPORTED:
            return []
        if self._is_recursive and self._looks > 1 and depth(arguments) > _DEEPEST_SAID:
            return []
        validator = self._for_long if size > _LONG else self._validator
        try:
            found = validator.iter_errors(arguments)
        except ValueError:
            found = validator.iter_errors(_whole_characters(arguments))
        return [fault for fault, _ in zip(found, range(_MOST_FAULTS), strict=False)]

    def _lacks(self, arguments: Json) -> int:
        """How many members may be missing: of the root those that are, of all others those that could be."""
        required = self.schema.get("required", ())
        if len(required) < self._demands or not isinstance(arguments, dict):
            return self._demands
        return sum(name not in arguments for name in required)


class Compiled(NamedTuple):
    """A checker, or the reason why there is none. fault: where the schema is invalid."""

    checker: Checker | None
    reason: str = ""
    fault: UnreadableSchema | None = None


class Schemas:
    """An LRU cache of compiled schemas. lock: guards it where several threads use it."""

    def __init__(self, max_bytes: int = MAX_BYTES, lock: AbstractContextManager[object] | None = None) -> None:
        self._max_bytes = max_bytes
        self._lock = lock or nullcontext()
        self._size = 0
        self._known: OrderedDict[bytes, tuple[int, Compiled]] = OrderedDict()

    def of(self, schema: JsonObject | None) -> Compiled:
        """The compiled schema; None accepts any object."""
        try:
            key = encode(schema or {})
        except (BadJson, TypeError, ValueError):
            return Compiled(None, "the schema cannot be written as JSON")
        with self._lock:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found[1]
        compiled, weight = _compile_schema(schema or {}, len(key))
        self._keep(key, weight, compiled)
        return compiled

    def check(self, tool: Tool, where: str = "") -> None:
        """Raises BadRequest for a tool whose schema is invalid."""
        fault = self.of(tool.schema).fault
        if fault is not None:
            raise BadRequest(
                f"the schema of tool {quote(tool.name)} cannot be read at {quote(pointer(fault.path))}: {fault.words}.",
                where=where,
                code="invalid_tool_schema",
                hint="Mend the schema where the tool is declared.",
            )

    def check_all(self, tools: tuple[Tool, ...]) -> None:
        """Raises BadRequest for the first tool whose schema is invalid. A list that recurs is checked once."""
        recurring = tools if isinstance(tools, RecurringTools) else None
        if recurring is not None and recurring.is_valid:
            return
        for number, tool in enumerate(tools):
            if tool.kind == "function":
                self.check(tool, f"tools[{number}]")
        if recurring is not None:
            recurring.is_valid = True

    def _keep(self, key: bytes, weight: int, compiled: Compiled) -> None:
        if weight > self._max_bytes // 4:  # one entry must not evict all others
            return
        with self._lock:
            self._size += weight - self._known.get(key, (0, None))[0]
            self._known[key] = (weight, compiled)
            while self._size > self._max_bytes or len(self._known) > MAX_SCHEMAS:
                self._size -= self._known.popitem(last=False)[1][0]

    def __len__(self) -> int:
        return len(self._known)


def check_schema(tool: Tool, where: str = "") -> None:
    """Schemas.check for a single tool, without a cache."""
    Schemas().check(tool, where)


def _compile_schema(schema: JsonObject, size: int) -> tuple[Compiled, int]:
    if size > _LARGEST:
        return Compiled(None, f"the schema is larger than {_LARGEST >> 20} MB"), size
    try:
        reading = read(schema)
        return Compiled(Checker(reading)), size * _PER_BYTE + reading.patterns.weight
    except UnreadableSchema as fault:
        return Compiled(None, f"at {pointer(fault.path)}: {fault.words}", fault), size
    except Uncheckable as reason:
        return Compiled(None, str(reason)), size
    except (ValueError, RecursionError) as error:
        return Compiled(None, f"it cannot be compiled: {str(error).splitlines()[0][:200]}"), size


def has_at_most(count: int, value: Json) -> bool:
    """Whether a value is made of no more values than that; looks no further."""
    waiting = [value]
    count -= 1
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict | list):
            count -= len(item)
            if count < 0:
                return False
            inner = item.values() if isinstance(item, dict) else item
            waiting += [one for one in inner if isinstance(one, _CONTAINERS)]
    return True


def depth(value: Json) -> int:
    level, deepest = [value], 0
    while level:
        deepest += 1
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return deepest


def _features(schema: JsonObject) -> tuple[bool, bool]:
    """Whether the schema has an integer anywhere, and whether it allows a string where it allows an object or list."""
    has_integers = has_text_unions = False
    waiting: list[Json] = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        waiting += [item for _, item in children(node)]
        types = types_of(node)
        has_integers = has_integers or "integer" in types
        for key in ("anyOf", "oneOf"):
            types |= {name for item in node.get(key, ()) for name in types_of(referred(schema, item))}
        has_text_unions = has_text_unions or ("string" in types and bool(types & {"object", "array"}))
    return has_integers, has_text_unions


def _compiled(
    schema: JsonObject, options: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions
) -> jsonschema_rs.Validator:
    """Formats are words for people: clients disagree about them, and a strict reading refuses what tools take."""
    return jsonschema_rs.Draft202012Validator(schema, pattern_options=options, offline=True, validate_formats=False)


def _without_slow(schema: Json, patterns: SchemaPatterns) -> Json:
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "pattern" or not patterns.is_slow(value)}
    if "patternProperties" in kept:
        named = kept["patternProperties"]
        kept["patternProperties"] = {key: item for key, item in named.items() if not patterns.is_slow(key)}
    for path, item in list(children(kept)):
        if len(path) == 1:
            kept[str(path[0])] = _without_slow(item, patterns)
            continue
        key = str(path[0])
        if kept[key] is schema[key]:
            kept[key] = schema[key].copy()
        kept[key][path[1]] = _without_slow(item, patterns)
    return kept


def _whole_characters(value: Json) -> Json:
    """For what the validator refuses to hold: half a surrogate pair. What nests too deep for it stays as it is."""
    if depth(value) > _DEEPEST:
        raise TooCostly(f"the arguments nest deeper than {_DEEPEST} levels")
    return _replaced(value)


def _replaced(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_replaced(key): _replaced(item) for key, item in value.items()}
    return [_replaced(item) for item in value] if isinstance(value, list) else value


MOST = 10**9  # counting stops here


class Looks(NamedTuple):
    """here: at the value itself. below: at any one place inside it, at most."""

    here: int
    below: int


class Cost(NamedTuple):
    """looks: the most at any one place. is_recursive: there are as many places as the value has.

    demands: the most members that one object must have.
    """

    looks: int
    is_recursive: bool
    demands: int


def cost_of(schema: JsonObject) -> Cost:
    """For a schema as the reader wrote it, with every reference into its own $defs."""
    counter = _Counter(schema)
    looks = counter.looks(schema)
    return Cost(max(looks), counter.is_recursive, counter.demands)


class _Counter:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._known: dict[str, Looks] = {}
        self._open: set[str] = {"#"}
        self.is_recursive = False
        self.demands = 0

    def looks(self, schema: Json) -> Looks:
        if not isinstance(schema, dict):
            return Looks(1, 0)
        self.demands = max(self.demands, len(schema.get("required", ())))
        here, below = 1 + _options(schema.get("enum", ())), 0
        for item in self._same(schema):
            more = self.looks(item)
            here, below = here + more.here, below + more.below
        if reference := schema.get("$ref"):
            more = self._referred(reference)
            here, below = here + more.here, below + more.below
        named = [max(self.looks(item)) for item in schema.get("properties", {}).values()]
        below += max(named, default=0)
        below += sum(max(self.looks(item)) for item in self._inner(schema))
        return Looks(min(here, MOST), min(below, MOST))

    def _referred(self, reference: str) -> Looks:
        if reference in self._open:
            self.is_recursive = True
            return Looks(1, 1)
        if reference not in self._known:
            self._open.add(reference)
            self._known[reference] = self.looks(self._root["$defs"][reference.removeprefix("#/$defs/")])
            self._open.discard(reference)
        return self._known[reference]

    @staticmethod
    def _same(schema: JsonObject) -> list[Json]:
        found = [item for key in SAME_LISTS for item in schema.get(key, ())]
        found += [schema[key] for key in SAME if key in schema]
        return found + list(schema.get("dependentSchemas", {}).values())

    @staticmethod
    def _inner(schema: JsonObject) -> list[Json]:
        found = [item for key in INNER_LISTS for item in schema.get(key, ())]
        found += [schema[key] for key in INNER if key in schema]
        return found + list(schema.get("patternProperties", {}).values())


def _options(enum: list[Json]) -> int:
    """Words and numbers are soon compared, sixteen in the time of a look; objects and lists are not."""
    return len(enum) // 16 + sum(isinstance(option, dict | list) for option in enum)
