"""The amount of tests: `TOOLWIRE_THOROUGH=1` adds repetitions, with more pairs, more cases and smaller chunks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

_One = TypeVar("_One")


def is_thorough() -> bool:
    return bool(os.environ.get("TOOLWIRE_THOROUGH"))


def some(every: Sequence[_One], kept: Iterable[_One]) -> list[_One]:
    """The items that every run uses, in order; all of them in a thorough run."""
    chosen = list(kept)
    unknown = [one for one in chosen if one not in every]
    if unknown or not chosen:
        raise ValueError(f"found {unknown or 'nothing'} to be kept; expected some of {list(every)}.")
    return [one for one in every if is_thorough() or one in chosen]
