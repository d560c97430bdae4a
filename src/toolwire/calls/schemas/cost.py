"""How dear a schema can get: the validator follows every way through unions and references, and ways multiply.

Twenty-four definitions, each an anyOf of the next one twice, are sixteen million ways. So before a schema is used we count,
in time linear in its size, how often one place of a value can be looked at. Recursive references are looked at once for each
place, as the validator itself does it.
"""

from __future__ import annotations

from typing import NamedTuple

from ...types import Json, JsonObject
from .keywords import INNER, INNER_LISTS, SAME, SAME_LISTS

MOST = 10**9  # nobody counts further


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
