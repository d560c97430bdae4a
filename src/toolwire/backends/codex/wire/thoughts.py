"""Codex app-server: reasoning, part by part. The last part of an item stays open, because its proof comes only with the raw item."""

from __future__ import annotations

from typing import Any

from ....dialects.shared.answer_in import Assembly, OpenPart
from ....events import Event
from ....types import JsonObject, Reasoning

RESPONSES = "responses"  # the dialect that the proofs belong to


class CodexReasoning:
    """Each summary or text of an item is a part, which ends where the next one begins."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._open: OpenPart | None = None
        self._place: tuple[str, str, int] | None = None  # of the open part: item, kind, number
        self._items: set[str] = set()  # that have parts
        self._done: set[str] = set()

    def grow(self, item_id: str, kind: str, number: int, text: str) -> list[Event]:
        if item_id in self._done:
            return []
        events: list[Event] = []
        if self._open is None or self._place != (item_id, kind, number):
            events += self.end()
            part = Reasoning(text="", item_id=item_id, is_summary=kind == "summary", extra={RESPONSES: {}})
            self._open, started = self._assembly.start(part)
            self._place = (item_id, kind, number)
            self._items.add(item_id)
            events.append(started)
        if text:
            events.append(self._open.grow(text))
        return events

    def complete(self, item_id: str, item: JsonObject) -> list[Event]:
        """The item is complete: sends the texts that were not streamed."""
        events: list[Event] = []
        if item_id not in self._items:
            for kind, member in (("summary", "summary"), ("thought", "content")):
                for number, text in enumerate(_texts(item.get(member))):
                    events += self.grow(item_id, kind, number, text)
        self._done.add(item_id)
        return events

    def prove(self, item_id: str, encrypted: object) -> list[Event]:
        """The raw item, which has the proof. Without any text the proof alone is a part."""
        if not isinstance(encrypted, str):
            return self.end()
        if not item_id and self._place is not None:  # 0.98 to 0.110 leave it out of raw items
            item_id = self._place[0]
        events: list[Event] = []
        if item_id not in self._items:
            self._done.discard(item_id)
            events += self.grow(item_id, "summary", 0, "")
        is_its = self._place is not None and self._place[0] == item_id
        self._done.add(item_id)
        return events + self.end(encrypted if is_its else None)

    def end(self, encrypted: str | None = None) -> list[Event]:
        """Another part begins, or the answer ends."""
        growing, self._open, self._place = self._open, None, None
        return [] if growing is None else self._assembly.end(growing, encrypted=encrypted)


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
