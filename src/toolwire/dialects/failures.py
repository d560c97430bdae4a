"""How a failed tool call is told in dialects that have no member for it: a fixed first line (H093)."""

from __future__ import annotations

FAILED = "Error: the tool call failed."


def with_failure(text: str) -> str:
    return f"{FAILED}\n{text}" if text else FAILED


def split_failure(text: str) -> str:
    """The text behind the fixed line."""
    return text.removeprefix(FAILED).removeprefix("\n")
