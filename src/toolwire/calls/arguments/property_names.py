"""Names of properties: what is left of one without its spelling, and all that a schema has."""

from __future__ import annotations

import re

from ...types import Json, JsonObject
from ..schemas.keywords import children

_SEPARATORS = re.compile(r"[\W_]+")
_MOST_NODES = 5_000


def same_name(name: str) -> str:
    """What is left of a name without its case, separators and quotes."""
    return _SEPARATORS.sub("", name).casefold()


def all_names(schema: JsonObject) -> frozenset[str]:
    """Of properties at any depth, as far as anybody would look."""
    found: set[str] = set()
    waiting: list[Json] = [schema]
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.pop()
        if isinstance(node, dict):
            found.update(node.get("properties", ()))
            waiting += [item for _, item in children(node)]
    return frozenset(found)
