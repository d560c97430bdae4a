"""How a dialect leans on the past: what it remembers of an answer, and how a request is made whole from that, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ...errors import BadRequest
from ...types import Json, JsonObject, Message, Request, State

Ending: TypeAlias = Literal["completed", "incomplete", "failed", "cancelled"]


class PastTurns(Struct, frozen=True, kw_only=True):
    """What came before a request, oldest first, as wire items and as what they mean. head: what the first turn settled for all."""

    head: JsonObject = {}
    items: list[Json] = []
    messages: tuple[Message, ...] = ()


class StoredAnswer(Struct, frozen=True, kw_only=True):
    """An answer as it is kept; body is how its dialect shows it, without what output holds."""

    id: str
    status: Ending
    output: list[tuple[str, JsonObject]]
    head: JsonObject = {}
    body: JsonObject = {}


class Memory(Protocol):
    """prefix begins the id of every answer."""

    prefix: str

    def own_items(self, source: JsonObject, found: Mapping[str, Json]) -> list[Json]:
        """What this request itself adds to the history, with the items it refers to in their places."""

    def messages_of(self, items: list[Json]) -> tuple[Message, ...]:
        """What such items mean, one message each."""

    def complete(self, request: Request, own: list[Json], past: PastTurns, *, looks_up: bool) -> Request:
        """A request that needs no memory. looks_up: the back end has one of its own, and refuses ids that are not in it."""

    def remembered(self, request: Request, answer: JsonObject) -> StoredAnswer | None:
        """None for an answer that nobody may go on from."""

    def not_found(self, state: State, missing: str) -> BadRequest:
        """The dialect's own words for an id that is not there."""
