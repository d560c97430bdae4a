"""Tools that the provider runs: parts nobody here interprets, but a use without its outcome, or the outcome alone, is refused (H035)."""

from __future__ import annotations

from typing import NamedTuple

from ..types import Message, Opaque


class _Names(NamedTuple):
    """How a dialect calls the two halves, and the member of each that ties them."""

    use: str
    use_id: str
    outcome: str
    outcome_id: str


# The one place outside the dialects that spells their words: whether two opaque parts belong together is all we ask of them.
_HALVES = {
    "messages": _Names("_tool_use", "id", "_tool_result", "tool_use_id"),
    "responses": _Names("_call", "call_id", "_output", "call_id"),
}


class _Half(NamedTuple):
    id: str
    is_use: bool


def halves(messages: tuple[Message, ...]) -> set[tuple[int, int]]:
    """Places (message, part) of what must go. In the last turn a use may wait for its outcome: the provider has paused."""
    last = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=-1)
    waiting: dict[str, tuple[int, int]] = {}
    seen: set[_Half] = set()
    wrong: set[tuple[int, int]] = set()
    for index, message in enumerate(messages):
        for number, part in enumerate(message.parts):
            half = _half(part) if isinstance(part, Opaque) else None
            if half is None:
                continue
            if half in seen or (not half.is_use and half.id not in waiting):
                wrong.add((index, number))
                continue
            seen.add(half)
            if half.is_use:
                waiting[half.id] = (index, number)
            else:
                del waiting[half.id]
    return wrong | {place for place in waiting.values() if place[0] != last}


def _half(part: Opaque) -> _Half | None:
    names, kind = _HALVES.get(part.dialect), part.value.get("type")
    if names is None or not isinstance(kind, str):
        return None
    if kind.endswith(names.use):
        name, is_use = part.value.get(names.use_id), True
    elif kind.endswith(names.outcome):
        name, is_use = part.value.get(names.outcome_id), False
    else:
        return None
    return _Half(name, is_use) if isinstance(name, str) else None
