"""JSON Schema from type hints, and the conversion of arguments to the types of the hints.

Types with a name (classes with fields, aliases) are defined once, in `$defs`, so they may contain themselves. A type that JSON cannot express is
refused when the tool is made, not when it is called.
"""

from __future__ import annotations

import collections
import collections.abc as abc
import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Annotated, Any, ForwardRef, Literal, NewType, TypeVar, Union, get_args, get_origin

import msgspec

from ..types import JsonObject
from . import docstrings
from .constraints import constrain
from .containers import Member, list_of, mapping_of, object_of, set_of, tuple_of, union_of
from .foreign import Definitions, is_pydantic_model, pydantic_shape, struct_shape
from .shapes import ANY, FORMATS, SCALARS, TEXT, Mismatch, Shape, choices, describe_value, enum_scalars, scalar_of

_LISTS: dict[object, Callable[[list[Any]], Any]] = {
    **dict.fromkeys((list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable), list),
    collections.deque: collections.deque,
}
_SETS: dict[object, Callable[[Any], Any]] = {set: set, abc.Set: set, abc.MutableSet: set, frozenset: frozenset}
_MAPPINGS: dict[object, Callable[[dict[Any, Any]], Any]] = {
    **dict.fromkeys((dict, abc.Mapping, abc.MutableMapping), dict),
    collections.OrderedDict: collections.OrderedDict,
}
_INTEGER_KEY = re.compile("^-?(0|[1-9][0-9]*)$")
_WRAPPERS = ("Required", "NotRequired", "ReadOnly", "Final")


class Unsupported(TypeError):
    """A hint that JSON cannot express."""


class Hints:
    """The shapes of several hints with common definitions; names are what forward references may refer to."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = dict(names)
        self._definitions = Definitions()
        self._shapes: dict[object, Shape] = {}

    @property
    def definitions(self) -> JsonObject:
        """`$defs` for the schemas of the shapes."""
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
        except TypeError:  # not hashable, such as Literal of a list
            raise Unsupported(f"{_hint_name(hint)} has no form in JSON") from None
        return known or self._special(hint) or self._generic(hint) or self._class(hint)

    def _special(self, hint: Any) -> Shape | None:
        if isinstance(hint, ForwardRef):
            return self._define(hint, hint.__forward_arg__, lambda: self.shape(self._resolve(hint)))
        if isinstance(hint, NewType):
            return self.shape(hint.__supertype__)
        if isinstance(hint, TypeVar):
            return self.shape(hint.__bound__) if hint.__bound__ is not None else ANY
        if type(hint).__name__ == "TypeAliasType":  # `type X = ...`, from Python 3.12 on
            return self._define(hint, hint.__name__, lambda: self.shape(hint.__value__))
        return None

    def _generic(self, hint: Any) -> Shape | None:
        origin, inside = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return constrain(self.shape(inside[0]), hint.__metadata__)
        if origin in (Union, types.UnionType):
            return union_of([self.shape(each) for each in inside])
        if origin is Literal:
            return self._literal(inside)
        if origin is not None and getattr(origin, "__name__", getattr(origin, "_name", "")) in _WRAPPERS:
            return self.shape(inside[0])
        kind = origin or hint
        if kind is tuple:
            return self._tuple(inside)
        if kind in _LISTS:
            return list_of(self.shape(inside[0]) if inside else ANY, _LISTS[kind])
        if kind in _SETS:
            return set_of(self.shape(inside[0]) if inside else ANY, _SETS[kind])
        if kind in _MAPPINGS:
            key, value = inside or (str, Any)
            return mapping_of(self._key(key), self.shape(value), _MAPPINGS[kind])
        return None

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
            return Shape({"type": "string", "pattern": _INTEGER_KEY.pattern}, _convert_integer_key)
        shape = self.shape(hint)
        if shape.schema.get("type") != "string":
            raise Unsupported(f"a dict with keys of {_hint_name(hint)} has no form in JSON, where keys are strings")
        return shape

    def _literal(self, values: tuple[Any, ...]) -> Shape:
        try:
            return choices([(scalar_of(value), value) for value in values])
        except ValueError as error:
            raise Unsupported(f"Literal[{', '.join(map(repr, values))[:100]}] has no form in JSON: {error}") from None

    def _class(self, hint: Any) -> Shape:
        kind = get_origin(hint) or hint
        if isinstance(kind, type):
            if issubclass(kind, Enum):
                return choices([(scalar, member) for member, scalar in enum_scalars(kind).items()])
            if is_pydantic_model(kind):
                return pydantic_shape(kind, self._definitions)
            if issubclass(kind, msgspec.Struct):
                return struct_shape(hint, self._definitions)
            for has_kind, members_of in _CLASSES:
                if has_kind(kind):
                    return self._define(hint, kind.__name__, partial(self._object, hint, kind, members_of))
        raise Unsupported(f"{_hint_name(hint)} has no form in JSON")

    def _object(self, hint: Any, kind: Any, members_of: _MembersOf) -> Shape:
        hints = self.of(kind)
        if meanings := dict(zip(getattr(kind, "__parameters__", ()), get_args(hint), strict=False)):
            hints = {name: _substitute(each, meanings) for name, each in hints.items()}
        text = kind.__dict__.get("__doc__") or ""
        # dataclass and NamedTuple write a docstring that only repeats the signature.
        documented = docstrings.parse("" if text.startswith(f"{kind.__name__}(") else text)
        members = [
            Member(
                name=field.name,
                shape=self.shape(hints.get(field.name, Any)),
                has_default=field.has_default,
                default=field.default,
                description=field.description or documented.parameters.get(field.name, ""),
            )
            for field in members_of(kind, hints)
        ]
        shape = object_of(members, lambda given: kind(**given))
        if not documented.description:
            return shape
        return Shape({"description": documented.description, **shape.schema}, shape.convert)

    def _resolve(self, hint: ForwardRef) -> Any:
        try:
            return eval(hint.__forward_code__, self._names)  # as typing.get_type_hints does
        except NameError:
            raise Unsupported(f"the name {hint.__forward_arg__!r} in a type hint is not known") from None

    def _define(self, key: object, name: str, make: Callable[[], Shape]) -> Shape:
        """A reference to a definition. It is known before it is made, so that the type may contain itself."""
        label = self._definitions.label(name)
        made: list[Shape] = []
        shape = Shape({"$ref": f"#/$defs/{label}"}, lambda value: made[0].convert(value))
        self._shapes[key] = shape
        made.append(make())
        self._definitions.schemas[label] = made[0].schema
        return shape


class _Field(typing.NamedTuple):
    """A member of a class; default is UNSET if it is not part of the schema."""

    name: str
    has_default: bool
    default: Any = msgspec.UNSET
    description: str = ""


_MembersOf = Callable[[Any, Mapping[str, Any]], Iterator[_Field]]


def _dataclass_fields(kind: Any, hints: Mapping[str, Any]) -> Iterator[_Field]:
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        factory, default = field.default_factory, field.default
        has_default = default is not dataclasses.MISSING or factory is not dataclasses.MISSING
        if factory in (list, dict, set):
            default = {} if factory is dict else []
        elif default is dataclasses.MISSING:
            default = msgspec.UNSET
        yield _Field(field.name, has_default, default, str(field.metadata.get("description") or ""))


def _named_tuple_fields(kind: Any, hints: Mapping[str, Any]) -> Iterator[_Field]:
    """An object in JSON, not an array, because names help the model."""
    for name in kind._fields:
        yield _Field(name, name in kind._field_defaults, kind._field_defaults.get(name, msgspec.UNSET))


def _typed_dict_fields(kind: Any, hints: Mapping[str, Any]) -> Iterator[_Field]:
    for name, hint in hints.items():
        yield _Field(name, not _is_required(kind, name, hint))


_CLASSES: tuple[tuple[Callable[[type], bool], _MembersOf], ...] = (
    (dataclasses.is_dataclass, _dataclass_fields),
    (lambda kind: issubclass(kind, tuple) and hasattr(kind, "_field_defaults"), _named_tuple_fields),
    (lambda kind: issubclass(kind, dict) and hasattr(kind, "__required_keys__"), _typed_dict_fields),
)


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """The hint takes precedence: with postponed annotations the class itself does not know Required and NotRequired."""
    while (origin := get_origin(hint)) is not None:
        label = getattr(origin, "_name", "") or getattr(origin, "__name__", "")
        if label in ("Required", "NotRequired"):
            return label == "Required"
        if label not in ("ReadOnly", "Annotated"):
            break
        hint = get_args(hint)[0]
    return name in kind.__required_keys__


def _convert_integer_key(value: Any) -> int:
    if not isinstance(value, str) or _INTEGER_KEY.search(value) is None or len(value) > 300:
        raise Mismatch(f"found the key {describe_value(value)}, expected a whole number.")
    return int(value)


def _substitute(hint: Any, meanings: Mapping[Any, Any]) -> Any:
    """In the members of Box[int], int replaces the type variable of Box."""
    if isinstance(hint, TypeVar):
        return meanings.get(hint, hint)
    variables = getattr(hint, "__parameters__", ())
    return hint[tuple(meanings.get(each, each) for each in variables)] if variables else hint


def _hint_name(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)[:100]
