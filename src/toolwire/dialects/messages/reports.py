"""Anthropic Messages: what the provider reports about a request beside its answer, as losses where the client would not see it."""

from __future__ import annotations

from ...events import Event, Noted
from ...types import Json, JsonObject, Loss
from .shapes import NAME

# Members of an answer that other dialects do not have: why the cache was missed, the container of programs, what was cleared.
_MEMBERS = ("diagnostics", "container", "context_management")
_CHANGES = "input_transformations"


def reports(answer: JsonObject, client: str) -> list[Event]:
    """answer: a message, or the event at its end. client: the client's dialect."""
    events = _dropped_thinking(answer) if _CHANGES in answer else []
    if client == NAME:
        return events
    lost = [name for name in _MEMBERS if answer.get(name)]
    return events + [
        Noted(note=Loss(f"answer.{name}", "answer", "the client's dialect has no such member")) for name in lost
    ]


def _dropped_thinking(answer: JsonObject) -> list[Event]:
    """A loss if the provider reports that it dropped thinking of the request."""
    given = answer.get(_CHANGES)
    dropped = [one for one in given if _is_dropped(one)] if isinstance(given, list) else []
    if not dropped:
        return []
    count = f" ({len(dropped)} times)" if len(dropped) > 1 else ""
    why = f"the back end dropped it: {str(dropped[0].get('reason'))[:60]}{count}"
    return [Noted(note=Loss("reasoning.dropped", str(dropped[0].get("path"))[:60], why))]


def _is_dropped(entry: Json) -> bool:
    return isinstance(entry, dict) and entry.get("type") == "thinking_dropped"
