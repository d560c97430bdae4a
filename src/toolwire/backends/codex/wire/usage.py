"""Codex app-server: the tokens of one answer. A thread counts a total, and a turn may have several responses of the model."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from ....types import JsonObject, Usage
from ....wire.fields import count_of

_MEMBERS = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cached": "cachedInputTokens",
    "cache_written": "cacheWriteInputTokens",
    "reasoning": "reasoningOutputTokens",
}

_MAX_DIGITS = 20  # of a rate limit
_LIMIT_MEMBERS = {"usedPercent": "used-percent", "windowDurationMins": "window-minutes", "resetsAt": "reset-at"}


class CodexTokenMeter:
    """The sum of the counts of all responses; without them the growth of the thread's total."""

    def __init__(self, before: Usage | None = None) -> None:
        self._responses: Usage | None = None
        self._before = before
        self._total = before or Usage()

    def follow(self) -> CodexTokenMeter:
        """For the next answer of the same turn, which begins with a repetition of the last count (0.89 to 0.130)."""
        return CodexTokenMeter(None if self._before is None else self._total)

    def response(self, value: object) -> None:
        if isinstance(value, dict):
            self._responses = (self._responses or Usage()).plus(usage_in(value))

    def thread(self, value: object) -> None:
        """A count may be repeated, so only totals are used; the first one shows the total before this answer. An incomplete response
        has a last count of zero."""
        if not isinstance(value, dict) or not isinstance(value.get("total"), dict):
            return
        self._total = usage_in(value["total"])
        if self._before is None:
            last = usage_in(value["last"]) if isinstance(value.get("last"), dict) else Usage()
            self._before = Usage() if last == Usage() else _difference(self._total, last)

    def usage(self) -> Usage | None:
        if self._responses is not None:
            return self._responses
        return None if self._before is None else _difference(self._total, self._before)


def rate_limit_headers(params: JsonObject) -> dict[str, str]:
    """From account/rateLimits/updated; empty if there was none."""
    limits = params.get("rateLimits")
    found: dict[str, str] = {}
    for window in ("primary", "secondary"):
        value: Any = limits.get(window) if isinstance(limits, dict) else None
        for member, name in _LIMIT_MEMBERS.items():
            number = value.get(member) if isinstance(value, dict) else None
            if (
                isinstance(number, int | Decimal)
                and not isinstance(number, bool)
                and len(text := str(number)) <= _MAX_DIGITS
            ):
                found[f"x-codex-{window}-{name}"] = text
    return found


def usage_in(value: JsonObject) -> Usage:
    return _usage({name: count_of(value.get(key)) for name, key in _MEMBERS.items()})


def _difference(whole: Usage, part: Usage) -> Usage:
    return _usage({name: max(0, getattr(whole, name) - getattr(part, name)) for name in _MEMBERS})


def _usage(counts: dict[str, int]) -> Usage:
    return msgspec.convert(counts, Usage)
