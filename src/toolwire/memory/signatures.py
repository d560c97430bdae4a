"""Reasoning signatures of past turns, stored per owner: clients drop them, and back ends need them back.

Recent entries are cached in memory; all entries are in the store, which prunes them by age and size. The cache also knows which turns have no
signatures, so conversations without reasoning query the store once. If the store fails, the request is sent without its signatures.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial

from msgspec import Struct
from msgspec.structs import replace

from ..backends.base import Backend
from ..calls.signatures import (
    Leading,
    Needs,
    Secrets,
    Span,
    is_carried,
    is_random,
    pack,
    restore_reasoning,
    secrets_of,
    turns_without_reasoning,
    unpack,
)
from ..dialects.shared.requests import fit_id
from ..errors import GatewayError
from ..profiles import Profile
from ..types import Loss, Message, Part, Request, ToolCall
from .cache import ByteCache, Key
from .store import Entry, Item, Store

OWNERS = "vault:"  # prefix of the owner; that of a client is empty or a hash, so these entries are no client's answers
MAX_BYTES = 16 << 20
_MOST_TURNS = 1000  # of one history that are looked up, the latest
_LARGEST = 4 << 20  # of one turn
_OVERHEAD = 300  # bytes of memory beside content and key
_MOST_EMPTY = 4096  # cached turns without signatures
_LONGEST_EMPTY = 500  # characters of the key of such a turn; clients choose the names of models
_PAUSE = 10.0  # seconds without queries after the store failed
_ITEMS = frozenset({"interactions", "responses"})  # dialects in which each part of a turn is a message of its own
_SHORTEST = 64  # characters of an id that every dialect preserves

_name_of = partial(fit_id, limit=_SHORTEST)


def _name(call_id: str, tool: str) -> tuple[str, bool]:
    """The normalized id, and whether it is random, so that no other call has it."""
    return _name_of(call_id), is_random(call_id, tool)


_known_name = lru_cache(maxsize=4096)(_name)  # the same ids come back with every request of a conversation


class ReasoningSource(Struct, frozen=True, kw_only=True):
    """The back end and model that produced reasoning, and what it needs back."""

    backend: str
    model: str
    needs: Needs

    def keys_of(self, calls: Sequence[ToolCall], starts: Sequence[int], messages: Sequence[Message]) -> list[str]:
        """The store key of each turn: the id of its first call, with a fingerprint of the history before it if the id is not random."""
        leading: Leading | None = None
        prefix = f"{self.backend} {self.needs.dialect} {self.model} "
        keys = []
        for call, start in zip(calls, starts, strict=True):
            call_id = call.id
            name, is_own = _known_name(call_id, call.name) if len(call_id) <= _SHORTEST else _name(call_id, call.name)
            if is_own:
                keys.append(prefix + name)
                continue
            leading = leading or Leading(messages)
            keys.append(f"{prefix}{name} {leading.print_of(start)}")
        return keys


class RestoredRequest(Struct, frozen=True):
    """The same request, or a changed one whose turns have their reasoning back. turns: how many of them."""

    request: Request
    losses: tuple[Loss, ...] = ()
    turns: int = 0


class SignatureMemory:
    """Without a store, only the cache is used."""

    def __init__(
        self, store: Store | None = None, *, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._cache = ByteCache[Secrets](max_bytes)
        self._empty: dict[Key, None] = {}  # recent turns without signatures, oldest first
        self._most_empty = _MOST_EMPTY if max_bytes else 0
        self._clock = clock
        self._next_query = 0.0

    @property
    def held_bytes(self) -> int:
        """Bytes of the cache that are in use."""
        return self._cache.size

    async def restore(self, request: Request, source: ReasoningSource | None, owner: str) -> RestoredRequest:
        """To be called before the history is changed: turns are found by what the client has of them."""
        spans = turns_without_reasoning(request.messages, source.needs) if source is not None else []
        if source is None or not spans:
            return RestoredRequest(request)
        spans = spans[-_MOST_TURNS:]
        keys = source.keys_of([span.calls[0] for span in spans], [span.start for span in spans], request.messages)
        known, losses = await self._known(owner, keys)
        found = [
            (span, secrets)
            for span, key in zip(spans, keys, strict=True)
            if (secrets := known.get(key)) is not None and (secrets.members or not span.is_thinking)
        ]
        return _recalled(request, found, losses)

    async def keep(
        self, request: Request, source: ReasoningSource | None, owner: str, parts: Sequence[Part]
    ) -> tuple[Loss, ...]:
        """Store the signatures of an answer, before the client receives its end. request: as it was passed to restore().

        parts: of one choice, as sent to the client; if the back end was called several times, those of its last answer.
        """
        calls = [part for part in parts if isinstance(part, ToolCall)]
        if source is None or not calls:
            return ()
        (key,) = source.keys_of(calls[:1], [len(request.messages)], request.messages)
        secrets = secrets_of(parts, source.needs, _name_of)
        data = b"" if secrets is None else pack(secrets)
        if len(data) > _LARGEST:
            return (
                Loss("reasoning", "store", f"{len(data) >> 20} MB of it are too large to be stored for the client"),
            )
        self._remember((owner, key), secrets, len(data))
        if not data or self._store is None or is_carried(request.messages, source.needs):
            return ()
        try:
            await self._store.put(_entry(owner, key, source, data))
        except GatewayError as error:
            return (Loss("store", "store", f"the reasoning could not be stored: {error.message}"),)
        return ()

    async def _known(self, owner: str, keys: list[str]) -> tuple[dict[str, Secrets], tuple[Loss, ...]]:
        """From the cache, and with one query the rest from the store."""
        known: dict[str, Secrets] = {}
        unknown: list[str] = []
        for key in keys:
            if (owner, key) in self._empty:
                continue
            if (cached := self._cache.get((owner, key))) is not None:
                known[key] = cached[0]
            else:
                unknown.append(key)
        if not unknown or self._store is None or self._clock() < self._next_query:
            return known, ()
        try:
            found = await self._store.find_items(OWNERS + owner, unknown)
        except GatewayError as error:
            self._next_query = self._clock() + _PAUSE
            return known, (Loss("store", "store", f"past reasoning could not be looked up: {error.message}"),)
        for key in unknown:
            data = found.get(key, b"")
            secrets = unpack(data) if data else None
            self._remember((owner, key), secrets, len(data))
            if secrets is not None:
                known[key] = secrets
        return known, ()

    def _remember(self, key: Key, secrets: Secrets | None, size: int) -> None:
        if secrets is not None:
            self._empty.pop(key, None)
            self._cache.put(key, secrets, size + len(key[1]) + _OVERHEAD)
        elif len(key[1]) <= _LONGEST_EMPTY:
            self._empty[key] = None
            if len(self._empty) > self._most_empty:
                del self._empty[next(iter(self._empty))]


class TurnSignatures(Struct, frozen=True):
    """The signatures of one request and its answer. request: as the client sent it."""

    memory: SignatureMemory
    request: Request
    source: ReasoningSource
    owner: str

    def restored(self) -> Awaitable[RestoredRequest]:
        return self.memory.restore(self.request, self.source, self.owner)

    def keep(self, parts: Sequence[Part]) -> Awaitable[tuple[Loss, ...]]:
        return self.memory.keep(self.request, self.source, self.owner, parts)


def reasoning_source(backend: Backend, model: str) -> ReasoningSource | None:
    """model: the name that the back end knows. None for a back end without a dialect, which needs nothing back."""
    needs = needs_of(backend.dialect, backend.profile)
    return None if needs is None else ReasoningSource(backend=backend.name, model=model, needs=needs)


def needs_of(dialect: str, profile: Profile) -> Needs | None:
    """What requests of the dialect can carry to such a back end."""
    match dialect:
        case "messages":
            return Needs(dialect=dialect, proofs=("signature", "redacted"))
        case "responses":
            # The request asked the server not to store these items, so it accepts them only with their proof.
            proofs = ("encrypted",) if profile.keeps_state else ("encrypted", "text")
            return Needs(dialect=dialect, proofs=proofs, is_marked=True)
        case "chat":
            return Needs(dialect=dialect, proofs=("text",) if profile.reasoning_field else (), has_members=True)
        case "gemini":
            return Needs(dialect=dialect, proofs=("encrypted",), is_marked=True, has_members=True)
        case _:
            return None


def _recalled(request: Request, found: list[tuple[Span, Secrets]], losses: tuple[Loss, ...]) -> RestoredRequest:
    messages, turns = request.messages, 0
    is_run = request.origin in _ITEMS
    if found:
        messages, turns = restore_reasoning(messages, found, _name_of, is_run=is_run)
    if messages is request.messages:
        return RestoredRequest(request, losses)
    return RestoredRequest(replace(request, messages=messages, wire=b""), losses, turns)


def _entry(owner: str, key: str, source: ReasoningSource, data: bytes) -> Entry:
    return Entry(
        owner=OWNERS + owner,
        id=key,
        kind="reasoning",
        created=time.time(),
        keeper=source.backend,
        output=(Item(key, data),),
    )
