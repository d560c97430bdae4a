"""What the gateway ran before a call of the client's tools: the client's history has its own call, but neither these calls nor their results.

Without them the model would not know that its calls were run, and would repeat them. They are stored in memory, by owner, conversation and id of
the client's call, and are added again to each later request of the conversation.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import Any

from ...types import Media, Message, Text, ToolCall, ToolResult

_MOST = 2000
_MOST_BYTES = 64 << 20


class PastRounds:
    """An LRU cache."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._rounds: OrderedDict[str, tuple[Message, ...]] = OrderedDict()
        self._size = 0

    def add(
        self, owner: str, messages: tuple[Message, ...], calls: list[ToolCall], rounds: tuple[Message, ...]
    ) -> None:
        """rounds were run after these messages, and before the calls that the client gets."""
        said = blake2b(owner.encode("utf-8", "surrogatepass"))
        for message in messages:
            _read(said, message)
        for call in calls:
            key = _key(said, call)
            self._size += _size(rounds) - _size(self._rounds.pop(key, ()))
            self._rounds[key] = rounds
        while self._rounds and (len(self._rounds) > _MOST or self._size > self._most_bytes):
            self._size -= _size(self._rounds.popitem(last=False)[1])

    def restored(self, messages: tuple[Message, ...], owner: str) -> tuple[Message, ...]:
        """The messages with the rounds before their calls; the same object if there are none."""
        if not self._rounds:
            return messages
        said, found = blake2b(owner.encode("utf-8", "surrogatepass")), list[Message]()
        for message in messages:
            _read(said, message)
            if message.role == "assistant":
                calls = [part for part in message.parts if isinstance(part, ToolCall)]
                key = next((key for call in calls if (key := _key(said, call)) in self._rounds), "")
                if key:
                    self._rounds.move_to_end(key)
                    found += self._rounds[key]
            found.append(message)
        return messages if len(found) == len(messages) else tuple(found)


def _read(said: Any, message: Message) -> None:
    """What users wrote tells conversations apart: some servers use the same ids of calls in each of them."""
    if message.role == "user":
        for part in message.parts:
            if isinstance(part, Text):
                said.update(part.text.encode("utf-8", "surrogatepass"))


def _key(said: Any, call: ToolCall) -> str:
    whole = said.copy()
    whole.update(b"\0" + call.id.encode("utf-8", "surrogatepass"))
    return str(whole.hexdigest())


def _size(rounds: tuple[Message, ...]) -> int:
    total = 0
    for message in rounds:
        for part in message.parts:
            if isinstance(part, ToolCall):
                total += len(part.raw)
            elif isinstance(part, ToolResult):
                total += sum(
                    len(inner.text) if isinstance(inner, Text) else len(inner.data or "")
                    for inner in part.parts
                    if isinstance(inner, Text | Media)
                )
    return total
