"""Gemini: how likely each token was, both ways. Here the chosen ones and the others stand in two lists beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...types import Json, JsonObject


def logprobs_in(result: Any) -> tuple[Json, ...]:
    """One entry a token, with its alternatives in it, as the other dialects have them; without what is no entry."""
    if not isinstance(result, dict):
        return ()
    others = _list(result.get("topCandidates"))
    entries: list[Json] = []
    for place, chosen in enumerate(_list(result.get("chosenCandidates"))):
        if (entry := _entry(chosen)) is not None:
            owner = others[place] if place < len(others) else None
            listed = _list(owner.get("candidates")) if isinstance(owner, dict) else []
            top = [found for one in listed if (found := _entry(one)) is not None]
            entries.append({**entry, "top_logprobs": top})
    return tuple(entries)


def logprobs_out(entries: Sequence[Json]) -> JsonObject:
    """The member of a candidate, {} where there is nothing to tell."""
    known = [entry for entry in entries if isinstance(entry, dict)]
    if not known:
        return {}
    tops = [{"candidates": [_told(one) for one in _list(entry.get("top_logprobs"))]} for entry in known]
    return {"logprobsResult": {"chosenCandidates": [_told(entry) for entry in known], "topCandidates": tops}}


def _entry(value: Any) -> JsonObject | None:
    if not isinstance(value, dict) or not isinstance(token := value.get("token"), str):
        return None
    return {"token": token, "logprob": value.get("logProbability", 0), "bytes": None}


def _told(entry: Any) -> JsonObject:
    found = entry if isinstance(entry, dict) else {}
    return {"token": found.get("token", ""), "logProbability": found.get("logprob", 0)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
