"""What a schema says about one place of the arguments before the value there is complete: types, names, fixed values.

It is an approximation for streams. What a shape refuses may still be valid, because in unions all branches count together. What it
accepts may still be invalid; the checker has the last word when the arguments are complete.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property

from ...types import Json, JsonObject
from .keywords import inside, schemas_of, types_of

_BOUNDS = ("pattern", "maxLength", "not", "if")  # the string must be complete before it can be judged
_UNITS = 12  # at most so many characters of JSON are one character: two \u escapes
_MOST = 1000  # shapes of members that are remembered for one object


class ValueShape:
    """root: the schema as the reader wrote it. schemas: those that apply to this place."""

    def __init__(self, root: JsonObject, schemas: list[Json]) -> None:
        self._root = root
        self._schemas = schemas_of(root, schemas)
        self.members: dict[str | int, ValueShape] = {}  # those that were needed so far
        self.types = frozenset[str]().union(*map(types_of, self._schemas)) or frozenset(
            name for option in self.options or () for name in _types(option)
        )
        self.names = frozenset(name for schema in self._schemas for name in schema.get("properties", ()))
        self.is_closed = any(schema.get("additionalProperties") is False for schema in self._schemas)

    @cached_property
    def options(self) -> list[Json] | None:
        """The values that the place may have; None if it may have others."""
        found = [schema["enum"] for schema in self._schemas if "enum" in schema]
        found += [[schema["const"]] for schema in self._schemas if "const" in schema]
        return [option for options in found for option in options] if found else None

    @cached_property
    def is_free_text(self) -> bool:
        """Any string fits, so one can be sent while it grows."""
        return (
            self.takes("string")
            and self.options is None
            and not any(key in s for s in self._schemas for key in _BOUNDS)
        )

    @cached_property
    def is_text_union(self) -> bool:
        """It takes strings and objects or lists: a string that looks like JSON may have to become what it holds (H027)."""
        return "string" in self.types and not self.types.isdisjoint(("object", "array"))

    @cached_property
    def least_length(self) -> int:
        """So many characters of JSON make a string long enough for any minLength."""
        lengths = [length for schema in self._schemas if isinstance(length := schema.get("minLength"), int)]
        return _UNITS * max(lengths, default=0)

    @cached_property
    def required(self) -> frozenset[str]:
        """Members that an object here needs in any case."""
        return frozenset(self._schemas[0].get("required", ())) if self._schemas else frozenset()

    def takes(self, kind: str) -> bool:
        return not self.types or kind in self.types

    def takes_name(self, name: str) -> bool:
        """An unknown name beside known ones may be misspelled or a wrapper."""
        return name in self.names if self.names else not self.is_closed

    def takes_value(self, value: Json) -> bool:
        """For a complete string, number, boolean or null."""
        if not any(map(self.takes, _types(value))):
            return False
        if isinstance(value, Decimal) and "integer" in self.types and "number" not in self.types:
            return False  # 10.0 is valid, but 10 is the form that tools expect (H073)
        return self.options is None or any(type(option) is type(value) and option == value for option in self.options)

    def member(self, name: str | int) -> ValueShape:
        found = self.members.get(name)
        if found is None:
            found = ValueShape(self._root, [one for schema in self._schemas for one in inside(schema, name)])
            if len(self.members) < _MOST:
                self.members[name] = found
        return found


def _types(value: Json) -> tuple[str, ...]:
    match value:
        case None:
            return ("null",)
        case bool():
            return ("boolean",)
        case str():
            return ("string",)
        case int():
            return ("integer", "number")
        case Decimal():
            return ("number", "integer")
        case list():
            return ("array",)
        case _:
            return ("object",)
