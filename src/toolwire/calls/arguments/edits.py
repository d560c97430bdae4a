"""Small changes to a value, each at one place, that leave the value they are made from alone."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ...types import Json
from ..schemas.keywords import Path


class Put(Struct, frozen=True):
    path: Path
    value: Json
    repair: str


class Drop(Struct, frozen=True):
    path: Path
    repair: str


class Rename(Struct, frozen=True):
    """path leads to the member; name is its new key."""

    path: Path
    name: str
    repair: str


Edit: TypeAlias = Put | Drop | Rename


def find(value: Json, path: Path) -> Json:
    """Raises KeyError, IndexError or TypeError where there is nothing."""
    for step in path:
        value = value[step]
    return value


def changed(value: Json, edit: Edit) -> Json:
    """Only the containers on the way are copied. An edit whose place an earlier one took away changes nothing."""
    try:
        find(value, edit.path)
    except (KeyError, IndexError, TypeError):
        return value
    return _changed(value, edit, edit.path)


def put_all(value: Json, puts: list[tuple[Path, Json]]) -> Json:
    """Many at once, each container copied once."""
    by_step: dict[str | int, list[tuple[Path, Json]]] = {}
    for path, item in puts:
        if not path:
            return item
        by_step.setdefault(path[0], []).append((path[1:], item))
    copy = value.copy()
    for step, inner in by_step.items():
        copy[step] = put_all(value[step], inner)
    return copy


def _changed(value: Json, edit: Edit, path: Path) -> Json:
    if not path:
        return edit.value if isinstance(edit, Put) else value
    step = path[0]
    if len(path) > 1 or isinstance(edit, Put):
        copy = value.copy()
        copy[step] = _changed(value[step], edit, path[1:])
        return copy
    if isinstance(edit, Drop):
        return {key: item for key, item in value.items() if key != step}
    if edit.name in value:
        return value
    return {edit.name if key == step else key: item for key, item in value.items()}
