"""JSON Schema from type hints, and the way back: arguments become what the hints say.

Types with a name (classes with fields, aliases) are told once, in `$defs`, so they may hold themselves. What has no form in JSON is refused
when the tool is made, not when it is called.
"""

from __future__ import annotations

import collections
import collections.abc as abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, ForwardRef, Literal, NewType, TypeVar, Union, get_args, get_origin

from ..types import JsonObject
from .constraints import annotated
from .containers import list_of, mapping_of, set_of, tuple_of, union_of
from .fields import dataclass_shape, foreign_kind, is_typed_dict, named_tuple_shape, typed_dict_shape
from .foreign import Definitions, pydantic_shape, struct_shape
from .shapes import ANY, FORMATS, SCALARS, TEXT, Mismatch, Shape, choices, enum_scalars, found, scalar_of

_LISTS: dict[object, Callable[[list[Any]], Any]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable), list),
    collections.deque: collections.deque,
}
_SETS: dict[object, Callable[[Any], Any]] = {set: set, abc.Set: set, abc.MutableSet: set, frozenset: frozenset}
_MAPPINGS: dict[object, Callable[[dict[Any, Any]], Any]] = {
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), dict),
    collections.OrderedDict: collections.OrderedDict,
}
_WHOLE = re.compile("^-?(0|[1-9][0-9]*)$")
_WRAPPERS = ("Required", "NotRequired", "ReadOnly", "Final")


class Unsupported(TypeError):
    """A hint that has no form in JSON."""


class Hints:
    """The shapes of several hints, which share their definitions; names are what forward references may mean."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = dict(names)
        self._definitions = Definitions()
        self._shapes: dict[object, Shape] = {}

    @property
    def definitions(self) -> JsonObject:
        """`$defs` for the schemas that were asked for."""
        return self._definitions.schemas

    def of(self, thing: object) -> dict[str, Any]:
        """The resolved hints of a function or class."""
        try:
            return typing.get_type_hints(thing, localns=self._names, include_extras=True)
        except NameError as error:
            raise Unsupported(
                f"the name {error.name!r} in a type hint is not known where the function is defined"
            ) from None

    def shape(self, hint: Any) -> Shape:
        if hint is inspect.Parameter.empty:
            return ANY
        if isinstance(hint, str):
            hint = ForwardRef(hint)
        try:
            known = SCALARS.get(hint) or FORMATS.get(hint) or self._shapes.get(hint)
        except TypeError:  # it cannot be hashed, such as Literal of a list
            raise Unsupported(f"{_told(hint)} has no form in JSON") from None
        return known or self._special(hint) or self._generic(hint) or self._class(hint)

    def _special(self, hint: Any) -> Shape | None:
        """What typing makes, apart from the parametrised."""
        if isinstance(hint, ForwardRef):
            return self._named(hint, hint.__forward_arg__, lambda: self.shape(self._resolved(hint)))
        if isinstance(hint, NewType):
            return self.shape(hint.__supertype__)
        if isinstance(hint, TypeVar):
            return self.shape(hint.__bound__) if hint.__bound__ is not None else ANY
        if type(hint).__name__ == "TypeAliasType":  # `type X = ...`, from Python 3.12 on
            return self._named(hint, hint.__name__, lambda: self.shape(hint.__value__))
        return None

    def _generic(self, hint: Any) -> Shape | None:
        origin, inside = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return annotated(self.shape(inside[0]), hint.__metadata__)
        if origin in (Union, types.UnionType):
            return union_of([self.shape(each) for each in inside])
        if origin is Literal:
            return self._literal(inside)
        if origin is not None and getattr(origin, "__name__", getattr(origin, "_name", "")) in _WRAPPERS:
            return self.shape(inside[0])
        kind = origin or hint
        if kind is tuple:
            return self._tuple(inside)
        return self._container(kind, inside)

    def _container(self, kind: Any, inside: tuple[Any, ...]) -> Shape | None:
        if kind in _LISTS:
            return list_of(self._item(inside), _LISTS[kind])
        if kind in _SETS:
            return set_of(self._item(inside), _SETS[kind])
        if kind in _MAPPINGS:
            key, value = inside or (str, Any)
            return mapping_of(self._key(key), self.shape(value), _MAPPINGS[kind])
        return None

    def _item(self, inside: tuple[Any, ...]) -> Shape:
        return self.shape(inside[0]) if inside else ANY

    def _tuple(self, inside: tuple[Any, ...]) -> Shape:
        if not inside:
            return list_of(ANY, tuple)
        if len(inside) == 2 and inside[1] is Ellipsis:
            return list_of(self.shape(inside[0]), tuple)
        return tuple_of([self.shape(each) for each in inside if each != ()])

    def _key(self, hint: Any) -> Shape:
        if hint in (Any, str):
            return TEXT
        if hint is int:
            return Shape({"type": "string", "pattern": _WHOLE.pattern}, _whole_key)
        shape = self.shape(hint)
        if shape.schema.get("type") != "string":
            raise Unsupported(f"a dict with keys of {_told(hint)} has no form in JSON, where keys are strings")
        return shape

    def _literal(self, values: tuple[Any, ...]) -> Shape:
        try:
            return choices([(scalar_of(value), value) for value in values])
        except ValueError as error:
            raise Unsupported(f"Literal[{', '.join(map(repr, values))[:100]}] has no form in JSON: {error}") from None

    def _class(self, hint: Any) -> Shape:
        kind = get_origin(hint) or hint
        if isinstance(kind, type) and issubclass(kind, Enum):
            return choices([(told, member) for member, told in enum_scalars(kind).items()])
        name = getattr(kind, "__name__", "")
        match foreign_kind(kind):
            case "pydantic":
                return pydantic_shape(kind, self._definitions)
            case "struct":
                return struct_shape(hint, self._definitions)
            case "dataclass":
                return self._named(hint, name, lambda: dataclass_shape(kind, self._members(hint, kind), self.shape))
            case "named tuple":
                return self._named(hint, name, lambda: named_tuple_shape(kind, self._members(hint, kind), self.shape))
        if is_typed_dict(kind):
            return self._named(hint, name, lambda: typed_dict_shape(kind, self._members(hint, kind), self.shape))
        raise Unsupported(f"{_told(hint)} has no form in JSON")

    def _members(self, hint: Any, kind: type) -> dict[str, Any]:
        """The hints of a class's members; those of Box[int] have int where the class has its variable."""
        hints = self.of(kind)
        meanings = dict(zip(getattr(kind, "__parameters__", ()), get_args(hint), strict=False))
        return {name: _substituted(each, meanings) for name, each in hints.items()} if meanings else hints

    def _resolved(self, hint: ForwardRef) -> Any:
        try:
            return eval(hint.__forward_code__, self._names)  # what typing.get_type_hints does with it, too
        except NameError:
            raise Unsupported(f"the name {hint.__forward_arg__!r} in a type hint is not known") from None

    def _named(self, key: object, name: str, make: Callable[[], Shape]) -> Shape:
        """Told in `$defs`; known before it is made, so that it may hold itself."""
        label = self._definitions.label(name)
        made: list[Shape] = []
        shape = Shape({"$ref": f"#/$defs/{label}"}, lambda value: made[0].convert(value))
        self._shapes[key] = shape
        made.append(make())
        self._definitions.schemas[label] = made[0].schema
        return shape


def _whole_key(value: Any) -> int:
    if not isinstance(value, str) or _WHOLE.search(value) is None or len(value) > 300:
        raise Mismatch(f"found the key {found(value)}, expected a whole number.")
    return int(value)


def _substituted(hint: Any, meanings: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return meanings.get(hint, hint)
    variables = getattr(hint, "__parameters__", ())
    return hint[tuple(meanings.get(each, each) for each in variables)] if variables else hint


def _told(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)[:100]
