"""The types of the official SDKs, read by introspection: which variants a union has, which members a variant has."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Required, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import get_type_hints, is_typeddict


class Member(NamedTuple):
    hint: Any
    is_required: bool


def variants(union: Any) -> dict[str, list[Any]]:
    """The objects of a union by the value of their `type`, or of their `role` where they have no fixed type."""
    found: dict[str, list[Any]] = {}
    for kind in objects(union):
        for tag in tags(kind):
            found.setdefault(tag, []).append(kind)
    return found


def tags(kind: Any) -> list[str]:
    known = members(kind)
    for name in ("type", "role"):
        if name in known and (values := literals(known[name].hint)):
            return [str(value) for value in values]
    return [kind.__name__]


def literals(hint: Any) -> tuple[Any, ...]:
    hint = plain(hint)
    if get_origin(hint) is Literal:
        return get_args(hint)
    found = [value for one in get_args(hint) if plain(one) is not NoneType for value in literals(one)]
    return tuple(found)


def objects(hint: Any) -> Iterator[Any]:
    """The object types that a value of this type may have, without those inside of them."""
    hint = plain(hint)
    if is_object(hint):
        yield hint
        return
    for one in get_args(hint):
        yield from objects(one)


def is_object(hint: Any) -> bool:
    return is_typeddict(hint) or (inspect.isclass(hint) and issubclass(hint, BaseModel))


def plain(hint: Any) -> Any:
    while get_origin(hint) in (Required, NotRequired, Annotated):
        hint = get_args(hint)[0]
    return hint


@cache
def members(kind: Any) -> dict[str, Member]:
    """By the names on the wire."""
    if is_typeddict(kind):
        # Not __required_keys__: it does not see Required in annotations that are text.
        hints = get_type_hints(kind, include_extras=True)
        is_total = getattr(kind, "__total__", True)
        return {
            name: Member(
                plain(hint), get_origin(hint) is Required or (is_total and get_origin(hint) is not NotRequired)
            )
            for name, hint in hints.items()
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            field.alias or name: Member(field.annotation, field.is_required())
            for name, field in kind.model_fields.items()
        }


def all_members(kind: Any, stop: frozenset[Any] = frozenset()) -> set[str]:
    """The names of its members and of all members inside of them, without those of the types in stop."""
    found: set[str] = set()
    _collect(kind, stop, set(), found)
    return found


def _collect(kind: Any, stop: frozenset[Any], seen: set[Any], found: set[str]) -> None:
    if kind in seen:
        return
    seen.add(kind)
    for name, member in members(kind).items():
        found.add(name)
        for inner in objects(member.hint):
            if inner not in stop:
                _collect(inner, stop, seen, found)
