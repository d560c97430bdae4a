"""max_tokens for models that may ignore it: an answer that is certainly longer is cut.

The gateway cannot count tokens as the model does. Prose has four bytes a token, some scripts up to twelve, and single words fifteen
(measured with o200k_base). So an answer is cut where it exceeds the limit even with sixteen bytes a token: never too early. Lines of a
table have even longer tokens, so the first few lines are never cut, nor is an answer whose own count is within the limit. Calls count, but
are not cut.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ...events import Event, Failed, Finished, PartDelta, PartEnded, PartStarted
from ...types import Choice, Reasoning, Refusal, Text, ToolCall, Usage

BYTES = 16
LEAST = 256  # bytes that are never cut


class _Open(Struct):
    part: Text | Refusal | Reasoning
    pieces: list[str]


class TokenLimiter:
    """For an answer with one choice. After is_over it drops all events. was_cut: the gateway has cut the answer."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._left = max(LEAST, max_tokens * BYTES)
        self._parts: dict[int, _Open] = {}
        self.is_over = False
        self.was_cut = False

    def send(self, events: list[Event], usage: Usage | None = None) -> list[Event]:
        """usage: the model's own count, once the answer has ended."""
        if usage is not None and usage.output <= self._max_tokens and not self.is_over:
            return events
        kept: list[Event] = []
        for event in events:
            if self.is_over:
                break
            kept += self._event(event)
        return kept

    def _event(self, event: Event) -> list[Event]:
        match event:
            case PartStarted(part=Text() | Refusal() | Reasoning() as part):
                self._parts[event.index] = _Open(part, [])
            case PartDelta() if event.index in self._parts:
                return self._grown(event, self._parts[event.index])
            case PartEnded():
                self._parts.pop(event.index, None)
                if isinstance(event.part, ToolCall):
                    self._left -= len(event.part.raw)
            case Finished() | Failed():
                self.is_over = True
            case _:
                pass
        return [event]

    def _grown(self, event: PartDelta, part: _Open) -> list[Event]:
        size = len(event.text) if event.text.isascii() else len(event.text.encode("utf-8", "replace"))
        if size <= self._left:
            self._left -= size
            part.pieces.append(event.text)
            return [event]
        kept = event.text.encode("utf-8", "replace")[: max(0, self._left)].decode("utf-8", "ignore")
        part.pieces.append(kept)
        return [*([PartDelta(event.index, kept)] if kept else []), *self._cut()]

    def _cut(self) -> list[Event]:
        self.is_over = self.was_cut = True
        ended: list[Event] = [
            PartEnded(index=index, part=replace(part.part, text="".join(part.pieces)))
            for index, part in self._parts.items()
        ]
        return [*ended, Finished(choices=(Choice(reason="length", raw_reason="max_tokens"),))]
