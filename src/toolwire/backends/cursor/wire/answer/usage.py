"""Cursor: the tokens of an answer. A turn is counted at its end, an answer that stops for its calls before that: by what came so far."""

from __future__ import annotations

from .....types import Usage
from .. import agent


class Meter:
    """One run. used and limit are of the context, as the last checkpoint has them; 0 until there was one."""

    def __init__(self) -> None:
        self.used = 0
        self.limit = 0
        self._output = 0  # of the present answer
        self._told = 0  # output that the answers before had

    def tokens(self, count: int) -> None:
        self._output += max(0, count)

    def checkpoint(self, details: agent.ConversationTokenDetails) -> None:
        self.used = details.used_tokens or self.used
        self.limit = details.max_tokens or self.limit

    def stop(self) -> Usage | None:
        """Of an answer that ends while the turn goes on."""
        usage = Usage(input=self.used, output=self._output) if self.used or self._output else None
        self._told += self._output
        self._output = 0
        return usage

    def end(self, update: agent.TurnEndedUpdate) -> Usage | None:
        """Of the last answer. What the turn counts is the whole of it, and a cache part of its input."""
        if not update.input_tokens and not update.output_tokens:
            return self.stop()
        cached, written = max(0, update.cache_read_tokens), max(0, update.cache_write_tokens)
        output = max(0, update.output_tokens - self._told)
        return Usage(
            input=max(update.input_tokens, cached + written),
            output=output,
            cached=cached,
            cache_written=written,
            reasoning=min(output, max(0, update.reasoning_tokens)),
        )
