"""Chat Completions: choices beyond the one that was requested.

If the request asks for one choice, choice 0 is the answer. Copilot splits an answer over two choices, text in choice 0 and calls in choice 1
(H008); other servers send several answers. The second half of a split answer has the calls that choice 0 lacks and no text of its own, and is
merged into choice 0. Everything else is another answer: it is dropped and reported as a loss, because calls of two answers must not mix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...types import Choice, Loss, Part, Refusal, Text, ToolCall
from ..base import OTHER_CHOICES
from .shapes import ChunkChoice, Delta


class OtherChoices:
    """The choices of a stream except choice 0, buffered until choice 0 has ended and it is known whether it has calls."""

    def __init__(self) -> None:
        self._held: dict[int, list[ChunkChoice]] = {}
        self._taken: int | None = None
        self._has_lost = False

    def hold(self, choice: ChunkChoice) -> None:
        self._held.setdefault(choice.index, []).append(choice)

    def half(self, *, is_missing: bool) -> list[ChunkChoice]:
        """Buffered chunks of the second half, calls only. is_missing: choice 0 has no calls."""
        if self._taken is None and is_missing:
            self._taken = next((index for index, held in sorted(self._held.items()) if _is_half(held)), None)
        held = self._held.pop(self._taken, []) if self._taken is not None else []
        self._has_lost = self._has_lost or any(choice.delta.has_text for choice in held)
        return [_only_calls(choice) for choice in held]

    def whole(self) -> list[ChunkChoice]:
        """All chunks of the first choice with content, for the case that choice 0 is empty."""
        index = next((index for index in sorted(self._held) if _says_something(self._held[index])), None)
        return [] if index is None else self._held.pop(index)

    @property
    def losses(self) -> list[Loss]:
        return [OTHER_CHOICES] if self._has_lost or any(map(_says_something, self._held.values())) else []


def one_answer(parts: Sequence[list[Part]], ends: Sequence[Choice]) -> tuple[list[Part], Choice, list[Loss]]:
    """The same rule for a whole answer: parts and ends of each choice in, those of the one answer out."""
    filled = [place for place, own in enumerate(parts) if own]
    first = filled[0] if filled else 0
    others = filled[1:]
    half = next((place for place in others if _have_calls(parts[place]) and not _have_text(parts[place])), None)
    if half is None or _have_calls(parts[first]):
        return parts[first], ends[first], [OTHER_CHOICES] if others else []
    calls = [part for part in parts[half] if isinstance(part, ToolCall)]
    end = ends[half] if ends[first].reason == "stop" else ends[first]
    return [*parts[first], *calls], end, [OTHER_CHOICES] if len(others) > 1 else []


def _have_calls(parts: Iterable[Part]) -> bool:
    return any(isinstance(part, ToolCall) for part in parts)


def _have_text(parts: Iterable[Part]) -> bool:
    return any(isinstance(part, Text | Refusal) for part in parts)


def _is_half(held: list[ChunkChoice]) -> bool:
    return any(choice.delta.tool_calls for choice in held) and not any(choice.delta.has_text for choice in held)


def _says_something(held: list[ChunkChoice]) -> bool:
    return any(choice.delta.says_something for choice in held)


def _only_calls(choice: ChunkChoice) -> ChunkChoice:
    return ChunkChoice(
        delta=Delta(tool_calls=choice.delta.tool_calls),
        index=choice.index,
        finish_reason=choice.finish_reason,
        is_message=choice.is_message,
    )
