"""Classes with named members: which there are, what they hold, which may be left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import msgspec

from . import docstrings
from .containers import Member, object_of
from .shapes import Shape

Lookup = Callable[[Any], Shape]


def foreign_kind(kind: Any) -> str:
    """Which of the ways to make a class with members it was made, "" where none."""
    if not isinstance(kind, type):
        return ""
    if hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate_json"):
        return "pydantic"
    if issubclass(kind, msgspec.Struct):
        return "struct"
    if dataclasses.is_dataclass(kind):
        return "dataclass"
    return "named tuple" if issubclass(kind, tuple) and hasattr(kind, "_field_defaults") else ""


def is_typed_dict(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(kind, "__required_keys__")


def dataclass_shape(kind: type, hints: Mapping[str, Any], shape: Lookup) -> Shape:
    """Members that its constructor does not take are left out."""
    documents = _documents(kind)
    members = [
        Member(
            name=field.name,
            shape=shape(hints[field.name]),
            has_default=field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING,
            default=_default(field),
            description=str(field.metadata.get("description") or documents.parameters.get(field.name, "")),
        )
        for field in dataclasses.fields(kind)
        if field.init
    ]
    return _described(object_of(members, lambda given: kind(**given)), documents)


def named_tuple_shape(kind: Any, hints: Mapping[str, Any], shape: Lookup) -> Shape:
    """An object, not an array: names help the model."""
    documents = _documents(kind)
    members = [
        Member(
            name=name,
            shape=shape(hints.get(name, Any)),
            has_default=name in kind._field_defaults,
            default=kind._field_defaults.get(name, msgspec.UNSET),
            description=documents.parameters.get(name, ""),
        )
        for name in kind._fields
    ]
    return _described(object_of(members, lambda given: kind(**given)), documents)


def typed_dict_shape(kind: Any, hints: Mapping[str, Any], shape: Lookup) -> Shape:
    documents = _documents(kind)
    members = [
        Member(
            name=name,
            shape=shape(hint),
            has_default=not _is_required(kind, name, hint),
            default=msgspec.UNSET,
            description=documents.parameters.get(name, ""),
        )
        for name, hint in hints.items()
    ]
    return _described(object_of(members, dict), documents)


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """The hint goes first: with postponed annotations the class itself does not know of Required and NotRequired."""
    while (origin := get_origin(hint)) is not None:
        label = getattr(origin, "_name", "") or getattr(origin, "__name__", "")
        if label in ("Required", "NotRequired"):
            return label == "Required"
        if label not in ("ReadOnly", "Annotated"):
            break
        hint = get_args(hint)[0]
    return name in kind.__required_keys__


def _default(field: dataclasses.Field[Any]) -> Any:
    """UNSET where it is made anew for each; the model is told of empty lists and the like all the same."""
    if field.default_factory in (list, dict, set):
        return [] if field.default_factory is not dict else {}
    return field.default if field.default is not dataclasses.MISSING else msgspec.UNSET


def _documents(kind: type) -> docstrings.Docstring:
    """What dataclass and NamedTuple write by themselves when there is no docstring says nothing that the schema does not."""
    text = kind.__dict__.get("__doc__") or ""
    return docstrings.Docstring() if text.startswith(f"{kind.__name__}(") else docstrings.parse(text)


def _described(shape: Shape, documents: docstrings.Docstring) -> Shape:
    if not documents.description:
        return shape
    return Shape({"description": documents.description, **shape.schema}, shape.convert)
