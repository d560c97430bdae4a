"""Dialects with stored answers: what is stored of an answer, and how a request is completed from it, without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ...errors import BadRequest, GatewayError
from ...types import Json, JsonObject, Message, Request, State
from ..base import AnswerContext

Ending: TypeAlias = Literal["completed", "incomplete", "failed", "cancelled"]


class PastTurns(Struct, frozen=True, kw_only=True):
    """What came before a request, oldest first, as wire items and as messages. head: members that the first turn fixed for all."""

    head: JsonObject = {}
    items: list[Json] = []
    messages: tuple[Message, ...] = ()


class StoredAnswer(Struct, frozen=True, kw_only=True):
    """An answer as it is stored; body is its object in the dialect, without the output."""

    id: str
    status: Ending
    output: list[tuple[str, JsonObject]]
    head: JsonObject = {}
    body: JsonObject = {}


class Memory(Protocol):
    """prefix begins the id of every answer."""

    prefix: str

    def own_items(self, source: JsonObject, found: Mapping[str, Json]) -> list[Json]:
        """The items that this request adds to the history, with references replaced by their items."""

    def messages_of(self, items: list[Json]) -> tuple[Message, ...]:
        """The messages of such items, one each."""

    def complete(self, request: Request, own: list[Json], past: PastTurns, *, looks_up: bool) -> Request:
        """The complete request. looks_up: the back end stores answers itself, and refuses ids that it does not know."""

    def remembered(self, request: Request, answer: JsonObject) -> StoredAnswer | None:
        """None for an answer that requests must not refer to."""

    def not_found(self, state: State, missing: str) -> BadRequest:
        """The dialect's own error for an unknown id."""


class BackgroundMemory(Memory, Protocol):
    """A dialect whose answers can be made in the background. output_member: of a stored answer. event_number: the pattern of the
    number in an event of a stream."""

    output_member: str
    event_number: bytes

    def queued_body(self, context: AnswerContext) -> JsonObject:
        """An answer that has not begun, without its output."""

    def body_with_status(self, body: JsonObject, status: str, error: GatewayError | None) -> JsonObject: ...
