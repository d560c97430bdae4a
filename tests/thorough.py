"""How much one run tests: little in the quick gate (`pytest -m "not slow"`), most with `TOOLWIRE_THOROUGH=1`, else what `make test` needs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from hypothesis import settings

_One = TypeVar("_One")

_QUICK_GATE = "TOOLWIRE_QUICK_GATE"
_FEWEST = 20  # examples of a property test in the quick gate


def is_thorough() -> bool:
    return bool(os.environ.get("TOOLWIRE_THOROUGH"))


def is_quick() -> bool:
    return not is_thorough() and bool(os.environ.get(_QUICK_GATE))


def set_quick_gate(is_on: bool) -> None:
    """Called once, before test modules are imported."""
    os.environ[_QUICK_GATE] = "1" if is_on else ""


def examples(count: int, **options: Any) -> settings:
    """Hypothesis settings for this many examples: a fifth of them in the quick gate, three times as many in a thorough run."""
    if is_thorough():
        count *= 3
    elif is_quick():
        count = min(count, max(_FEWEST, count // 5))
    return settings(max_examples=count, **options)


def thin_out(values: Sequence[_One], step: int) -> Sequence[_One]:
    """All values; in the quick gate the first, the last and every `step`-th between them."""
    return [*values[:-1:step], *values[-1:]] if is_quick() else values


def some(every: Sequence[_One], kept: Iterable[_One]) -> list[_One]:
    """The items that every run uses, in order; all of them in a thorough run."""
    chosen = list(kept)
    unknown = [one for one in chosen if one not in every]
    if unknown or not chosen:
        raise ValueError(f"found {unknown or 'nothing'} to be kept; expected some of {list(every)}.")
    return [one for one in every if is_thorough() or one in chosen]
