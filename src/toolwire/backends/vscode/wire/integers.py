"""VS Code bridge: numbers there are JavaScript's, so integers beyond 2**53 lose digits on their way (H072)."""

from __future__ import annotations

from ....types import Json

WHOLE = 2**53  # integers up to here survive
WHY = "numbers are doubles in VS Code: integers beyond 2**53 lose digits"


def loses_digits(value: Json) -> bool:
    """Whether an integer in it is too long. Not recursive: it may be nested as deep as JSON may."""
    waiting: list[Json] = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
        elif isinstance(value, int) and abs(value) > WHOLE:
            return True
    return False
