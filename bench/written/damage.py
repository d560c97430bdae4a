"""What a damage to a written call is, and the list of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from toolwire.types import Tool

from .cases import Call

Json = Any

# One meaning is left: it should come back. Or none, or several, or it is text by the rules: it must not become something else.
Hope = Literal["clear", "doubtful"]


@dataclass(frozen=True)
class Speech:
    """Calls about to be written badly."""

    calls: Sequence[Call]
    tools: Sequence[Tool]
    random: Random


Apply = Callable[[Speech], str | None]
OfCall = Callable[[Call, Speech], str | None]


@dataclass(frozen=True)
class Damage:
    """apply gives the damaged text, or None where there is nothing to damage; the docstring says why the hope.
    may_follow: words may stand behind it without changing what it is."""

    name: str
    hope: Hope
    group: str
    apply: Apply
    may_follow: bool = True


DAMAGES: dict[str, Damage] = {}


def whole(group: str, hope: Hope = "clear", may_follow: bool = True) -> Callable[[Apply], Apply]:
    """A damage to an answer."""

    def add(apply: Apply) -> Apply:
        register(Damage(apply.__name__, hope, group, apply, may_follow))
        return apply

    return add


def block(group: str, hope: Hope = "clear", may_follow: bool = True) -> Callable[[OfCall], OfCall]:
    """A damage to a block: to every one of an answer, or to one, as models do both."""

    def add(write: OfCall) -> OfCall:
        register(Damage(write.__name__, hope, group, lambda speech: hit(write, speech), may_follow))
        return write

    return add


def register(damage: Damage) -> None:
    """Add a damage to the list; two of one name are a mistake."""
    assert damage.name not in DAMAGES, damage.name
    DAMAGES[damage.name] = damage


def hit(write: OfCall, speech: Speech) -> str | None:
    """All blocks damaged, or only one of them."""
    calls, random = speech.calls, speech.random
    chosen = range(len(calls)) if random.random() < 0.5 else [random.randrange(len(calls))]
    damaged = {index: write(calls[index], speech) for index in chosen}
    if all(text is None for text in damaged.values()):
        return None
    return "\n".join(damaged.get(index) or right(call) for index, call in enumerate(calls))


def right(call: Call) -> str:
    return tagged(body(call))


def body(call: Call) -> str:
    return dumped({"name": call.name, "arguments": call.arguments})


def dumped(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def tagged(inner: str, opening: str = "<tool_call>", closing: str = "</tool_call>") -> str:
    return f"{opening}\n{inner}\n{closing}"
