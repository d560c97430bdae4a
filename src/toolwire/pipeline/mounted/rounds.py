"""Calls that the gateway ran, and their results, which the client's history does not have: it has only the rest of the answer.

Without them the model would not know in the next request what it has found out, or that its calls were run, and would repeat them. They are
stored in memory, by owner, conversation and the part of the answer that the client has, and are added again to each later request.
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
        self, owner: str, messages: tuple[Message, ...], calls: list[ToolCall], text: str, rounds: tuple[Message, ...]
    ) -> None:
        """rounds were run after these messages. calls, text: what the client gets of the answer."""
        said = blake2b(owner.encode("utf-8", "surrogatepass"))
        for message in messages:
            _read(said, message)
        for key in _keys(said, calls, text):
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
                text = "".join(part.text for part in message.parts if isinstance(part, Text))
                key = next((key for key in _keys(said, calls, text) if key in self._rounds), "")
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


def _keys(said: Any, calls: list[ToolCall], text: str) -> list[str]:
    """An answer is known by the id of any of its calls, or else by its text; clients may change the blanks in it."""
    marks = [f"call {call.id}" for call in calls] or [f"text {' '.join(text.split())}"]
    found = []
    for mark in marks:
        whole = said.copy()
        whole.update(b"\0" + mark.encode("utf-8", "surrogatepass"))
        found.append(str(whole.hexdigest()))
    return found


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
