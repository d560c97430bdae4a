"""How a failed tool call is told in dialects that have no member for it: a fixed first line (H093)."""

from __future__ import annotations

from msgspec.structs import replace

from ...types import Media, Opaque, Part, Text

FAILED = "Error: the tool call failed."


def with_failure(text: str) -> str:
    return f"{FAILED}\n{text}" if text else FAILED


def with_failure_first(parts: list[Part]) -> list[Part]:
    """The same for parts: the line stands in the first text, or before all else."""
    if parts and isinstance(first := parts[0], Text):
        return [replace(first, text=with_failure(first.text)), *parts[1:]]
    return [Text(text=FAILED), *parts]


def split_failure(text: str) -> str | None:
    """The text behind the fixed line; None if it does not begin with that line."""
    first, _, rest = text.partition("\n")
    return rest if first == FAILED else None


def split_result(parts: tuple[Text | Media | Opaque, ...]) -> tuple[bool, tuple[Text | Media | Opaque, ...]]:
    """Whether the parts of a result tell of a failure, and the parts without that line."""
    rest = split_failure(parts[0].text) if parts and isinstance(parts[0], Text) else None
    if rest is None:
        return False, parts
    return True, (Text(text=rest), *parts[1:]) if rest or len(parts) == 1 else parts[1:]
