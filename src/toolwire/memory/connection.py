"""Answers of one connection: requests with store false can continue them, and they are gone when the connection closes.

Requests that store their answer, and ids that the connection does not know, belong to the store of the gateway (AnswerMemory).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..backends.base import Backend
from ..dialects import MEMORIES
from ..dialects.shared.memory import PastTurns
from ..errors import BadRequest, quote
from ..types import Json, JsonObject, Request, State
from ..wire.exact_json import encode
from .answers import AnswerMemory, Mint, StoredTurn

_MAX_ANSWERS = 64
_ENDED_WELL = ("completed", "incomplete")


class History(Protocol):
    """What completes a request and stores its answer: AnswerMemory, or the memory of a lane."""

    async def begin(
        self, request: Request, backend: Backend, owner: str, mint: Mint, *, is_here: bool = False
    ) -> StoredTurn | None: ...


class _Entry(Struct, frozen=True):
    past: PastTurns
    size: int
    lane: str


class ConnectionMemory:
    """The most recent answers, bounded by their number and by the bytes of their histories."""

    def __init__(self, shared: AnswerMemory, max_bytes: int) -> None:
        self.shared = shared
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._size = 0

    def get(self, answer_id: str) -> _Entry | None:
        return self._entries.get(answer_id)

    def put(self, answer_id: str, past: PastTurns, size: int, lane: str) -> None:
        """A history that is too large is not stored; the client then sends it again."""
        self.drop(answer_id)
        if size > self._max_bytes:
            return
        self._entries[answer_id] = _Entry(past, size, lane)
        self._size += size
        while self._size > self._max_bytes or len(self._entries) > _MAX_ANSWERS:
            self.drop(next(iter(self._entries)))

    def drop(self, answer_id: str) -> None:
        if (entry := self._entries.pop(answer_id, None)) is not None:
            self._size -= entry.size


class LaneMemory:
    """The memory as the requests of one lane use it. A failed request evicts the answer that it continues, if it is of this lane."""

    def __init__(self, connection: ConnectionMemory, lane: str) -> None:
        self._connection = connection
        self._lane = lane

    async def begin(
        self, request: Request, backend: Backend, owner: str, mint: Mint, *, is_here: bool = False
    ) -> StoredTurn | None:
        state = request.state
        if state is None:
            return None
        shared, entry = self._connection.shared, self._connection.get(state.previous)
        if entry is None and (state.is_kept or state.is_leaning):
            turn = await shared.begin(request, backend, owner, mint, is_here=is_here)
            if turn is not None and state.previous and turn.is_here:
                _check_results(turn.past.items, turn.own)
            return turn if turn is None or state.is_kept else _LaneTurn(self, shared, turn, request, owner)
        memory = MEMORIES[request.origin]
        own = memory.own_items(request.source, {})
        past, sent = PastTurns(), request
        if entry is not None:
            past = entry.past
            _check_results(past.items, own)
            sent = memory.complete(request, own, past, looks_up=shared.is_upstreams(backend, request.origin))
        turn = StoredTurn(shared, request, sent, owner, mint(memory.prefix) if entry is not None else "")
        turn.own, turn.past, turn.size = own, past, entry.size if entry is not None else 0
        return _LaneTurn(self, shared, turn, request, owner)

    def prepare(self, request: Request, answer_id: str) -> None:
        """Store an answer without output, which the next request continues. Raises BadRequest for an unknown id."""
        state, memory = request.state, MEMORIES[request.origin]
        assert state is not None
        entry = self._connection.get(state.previous)
        if entry is None and state.previous:
            raise memory.not_found(state, state.previous)
        past = entry.past if entry is not None else PastTurns()
        own = memory.own_items(request.source, {})
        _check_results(past.items, own)
        messages = tuple([one for one in request.messages if not one.is_head])
        joined = PastTurns(items=[*past.items, *own], messages=(*past.messages, *messages))
        self.remember(answer_id, joined, (entry.size if entry is not None else 0) + len(request.wire))

    def remember(self, answer_id: str, past: PastTurns, size: int) -> None:
        self._connection.put(answer_id, past, size, self._lane)

    def failed(self, previous: str) -> None:
        entry = self._connection.get(previous)
        if entry is not None and entry.lane == self._lane:
            self._connection.drop(previous)


class _LaneTurn(StoredTurn):
    """Its answer is stored for the connection, and in the store too if the request wants that."""

    def __init__(self, lane: LaneMemory, shared: AnswerMemory, turn: StoredTurn, asked: Request, owner: str) -> None:
        super().__init__(shared, asked, turn.request, owner, turn.answer_id)
        self.is_here = turn.is_here
        self.own, self.past, self.size = turn.own, turn.past, turn.size
        self._lane = lane

    async def save(self, answer: JsonObject, mint: Mint) -> None:
        memory, state = MEMORIES[self._asked.origin], self._asked.state
        kept = memory.remembered(self._asked, answer)
        if kept is None or state is None:
            return
        if kept.status in _ENDED_WELL:
            output = [value for _, value in kept.output]
            sent = [one for one in self.request.messages if not one.is_head]
            past = PastTurns(
                items=[*self.past.items, *self.own, *output], messages=(*sent, *memory.messages_of(output))
            )
            self._lane.remember(kept.id, past, self.size + self._asked.size + len(encode(output)))
        if state.is_kept:
            await self._stored_whole(state).save(answer, mint)

    def _stored_whole(self, state: State) -> StoredTurn:
        """The store does not know the answer that this one continues, so it gets the whole history."""
        turn = StoredTurn(
            self._memory, replace(self._asked, state=replace(state, previous="")), self.request, self._owner
        )
        turn.own = [*self.past.items, *self.own]
        return turn


def _check_results(past: list[Json], own: list[Json]) -> None:
    """Raises BadRequest for a result whose call is unknown: here the history is ours, so the client has made a mistake."""
    items = [*past, *own]
    if any(item.get("type") in ("compaction", "compaction_summary") for item in items):
        return  # which holds calls, too
    calls = {item.get("call_id") for item in items if str(item.get("type")).endswith("_call")}
    for index, item in enumerate(own):
        call_id = item.get("call_id")
        if str(item.get("type")).endswith("_output") and isinstance(call_id, str) and call_id not in calls:
            raise BadRequest(
                f"No tool call found for the output with call_id {quote(call_id)}.",
                where=f"input[{index}].call_id",
                code="tool_call_not_found",
                hint="Send results of calls in the response that this request continues.",
                details={"type": "invalid_request_error"},
            )
