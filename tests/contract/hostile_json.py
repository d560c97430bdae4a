"""JSON values with one place replaced by a value of another type, or removed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 1e308, 10**30, "", "x", "\ud800", "é中😀", "a" * 300, [], {}, [None], ["x"], [[]], [{}],
    {"a": {"b": [1]}}, {"type": "x"}, {"type": ["x"]}, {"type": {}},
)  # fmt: skip
REMOVED = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [way for key, item in inner for way in ((*path, key), *places(item, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at this place, or without the place."""
    whole = copy.deepcopy(value)
    owner = whole
    for step in path[:-1]:
        owner = owner[step]
    if new is REMOVED:
        del owner[path[-1]]
    else:
        owner[path[-1]] = copy.deepcopy(new)
    return whole


def variants(value: Any, start: int = 0, step: int = 1) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, value) for every place and every odd value. With a step, each place gets every step-th of them, by turns."""
    number = start
    for path in places(value):
        for new in (*ODD, REMOVED):
            number += 1
            if number % step == 0:
                yield path, replaced(value, path, new)
