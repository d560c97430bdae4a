"""What was repaired in a history, and where each message of it came from."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ...types import Message

Kind: TypeAlias = Literal[
    "missing_result",
    "orphan_result",
    "duplicate_result",
    "duplicate_call",
    "duplicate_id",
    "duplicate_item",
    "order",
    "kind",
    "media",
    "arguments",
    "empty",
    "reasoning",
    "thinking",
    "hosted",
    "opening",
    "ending",
]


class Repair(Struct, frozen=True):
    """raw is text that was replaced, for telemetry alone: it may hold secrets, so it is in none of the other members."""

    kind: Kind
    where: str
    why: str
    raw: str = ""


class Placed(NamedTuple):
    """A message, and which one of the request's it was."""

    place: int
    message: Message

    @property
    def where(self) -> str:
        return f"messages[{self.place}]"

    def having(self, message: Message) -> Placed:
        return Placed(self.place, message)
