"""What a damage is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from .samples import Sample

Json = Any
IsLegal = Callable[[Json], bool]  # whether a value is what the tool takes, as it stands

# One meaning is left: it must come back. Or none, or more than one: it must not come back as something else.
Hope = Literal["repairable", "doubtful"]


@dataclass(frozen=True)
class Case:
    """A call about to be damaged: is_legal tells a damage from another call that is just as right."""

    sample: Sample
    random: Random
    is_legal: IsLegal


@dataclass(frozen=True)
class Damage:
    """apply gives the damaged text, or None where this call has nothing to damage; the docstring says why the hope."""

    name: str
    hope: Hope
    group: str
    apply: Callable[[Case], str | None]


DAMAGES: dict[str, Damage] = {}


def register(group: str, hope: Hope, name: str, apply: Callable[[Case], str | None]) -> None:
    """Add a damage to the list; two of one name are a mistake."""
    assert name not in DAMAGES, name
    DAMAGES[name] = Damage(name, hope, group, apply)
