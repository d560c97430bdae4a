"""What is left of the account's limits, as the headers in which its maker tells them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from ...types import JsonObject

_LONGEST = 20  # digits; what has more is no number of this kind
_MEMBERS = {"usedPercent": "used-percent", "windowDurationMins": "window-minutes", "resetsAt": "reset-at"}


def headers_of(told: JsonObject) -> dict[str, str]:
    """From account/rateLimits/updated; nothing where nothing is known."""
    limits = told.get("rateLimits")
    found: dict[str, str] = {}
    for window in ("primary", "secondary"):
        value: Any = limits.get(window) if isinstance(limits, dict) else None
        for member, name in _MEMBERS.items():
            number = value.get(member) if isinstance(value, dict) else None
            if (
                isinstance(number, int | Decimal)
                and not isinstance(number, bool)
                and len(text := str(number)) <= _LONGEST
            ):
                found[f"x-codex-{window}-{name}"] = text
    return found
