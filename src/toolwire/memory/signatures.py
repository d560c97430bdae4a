"""The signature vault's memory: what turns leave in it, and what later requests find there, each for its owner alone.

What was kept of late is in memory, within a bound; all of it is in the store, where age and size prune it like anything else. That
nothing was kept of a turn is remembered too, so that conversations without reasoning ask the store once. A store that fails
costs nobody a request: the turn goes on as its client wrote it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
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
    lacking,
    packed,
    restored,
    secrets_of,
    unpacked,
)
from ..dialects.shared.requests import fit_id
from ..errors import GatewayError
from ..profiles import Profile
from ..types import Loss, Message, Part, Request, ToolCall
from .store import Entry, Item, Store

OWNERS = "vault:"  # before the owner's name: a client's is empty or a hash, so nobody's answers are among these
MAX_BYTES = 16 << 20
_MOST_TURNS = 1000  # of one history that are looked for, the latest
_LARGEST = 4 << 20  # of one turn
_OVERHEAD = 300  # bytes of memory beside content and key
_MOST_EMPTY = 4096  # turns of which is remembered that nothing was kept
_LONGEST_EMPTY = 500  # characters of the key of such a turn
_PAUSE = 10.0  # seconds without a question after the store has failed
_ITEMS = frozenset({"responses"})  # dialects in which each part of a turn is a message of its own
_SHORTEST = 64  # what every dialect leaves of an id

_name_of = partial(fit_id, limit=_SHORTEST)


def _name(call_id: str, tool: str) -> tuple[str, bool]:
    """The id in the form of which there is only one, and whether it is the only call's."""
    return _name_of(call_id), is_random(call_id, tool)


_UNKNOWN = Secrets(turn="", dialect="")
_NO_ENTRY = (_UNKNOWN, 0)
_known_name = lru_cache(maxsize=4096)(_name)  # the same ids come back with every request of a conversation


class ReasoningSource(Struct, frozen=True, kw_only=True):
    """Whose reasoning it is: a back end with its model, and what it takes back."""

    backend: str
    model: str
    needs: Needs

    def keys_of(self, calls: Sequence[ToolCall], starts: Sequence[int], messages: Sequence[Message]) -> list[str]:
        """By which turns are found again: the id of the first call of each, and what led to it where that is no name of its
        own."""
        leading = Leading(messages)
        prefix = f"{self.backend} {self.needs.dialect} {self.model} "
        keys = []
        for call, start in zip(calls, starts, strict=True):
            call_id = call.id
            name, is_own = _known_name(call_id, call.name) if len(call_id) <= _SHORTEST else _name(call_id, call.name)
            keys.append(prefix + name if is_own else f"{prefix}{name} {leading.print_of(start)}")
        return keys


class RestoredRequest(Struct, frozen=True):
    """The same request, or one whose turns have their reasoning back; then its bytes no longer say what is meant."""

    request: Request
    losses: tuple[Loss, ...] = ()
    turns: int = 0  # so many got something back


class SignatureMemory:
    """Without a store it remembers what it can in memory."""

    def __init__(
        self, store: Store | None = None, *, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._recent = _Recent(max_bytes)
        self._clock = clock
        self._next_question = 0.0

    @property
    def held_bytes(self) -> int:
        """How much of the bound for memory is in use."""
        return self._recent.size

    async def restore(self, request: Request, maker: ReasoningSource | None, owner: str) -> RestoredRequest:
        """Before anything else is done to the history: turns are known by what the client has of them."""
        spans = lacking(request.messages, maker.needs) if maker is not None else []
        if maker is None or not spans:
            return RestoredRequest(request)
        spans = spans[-_MOST_TURNS:]
        keys = maker.keys_of([span.calls[0] for span in spans], [span.start for span in spans], request.messages)
        known, losses = await self._known(owner, keys)
        found = [
            (span, secrets)
            for span, key in zip(spans, keys, strict=True)
            if (secrets := known.get(key)) is not None and (secrets.members or not span.is_thinking)
        ]
        return _recalled(request, found, losses)

    async def keep(
        self, request: Request, maker: ReasoningSource | None, owner: str, parts: Sequence[Part]
    ) -> tuple[Loss, ...]:
        """Of an answer to this request (the one that restore() was given), before the client has its end.

        parts are those of one choice as the client got them; where the gateway asked the back end several times, those of
        its last answer.
        """
        first = next((part for part in parts if isinstance(part, ToolCall)), None)
        if maker is None or first is None:
            return ()
        (key,) = maker.keys_of([first], [len(request.messages)], request.messages)
        secrets = secrets_of(parts, maker.needs, _name_of)
        data = b"" if secrets is None else packed(secrets)
        if len(data) > _LARGEST:
            return (Loss("reasoning", "store", f"{len(data) >> 20} MB of it are too much to be kept for the client"),)
        self._recent.put((owner, key), secrets, len(data))
        if not data or self._store is None or is_carried(request.messages, maker.needs):
            return ()
        try:
            await self._store.put(_entry(owner, key, maker, data))
        except GatewayError as error:
            return (Loss("store", "store", f"the reasoning could not be kept: {error.message}"),)
        return ()

    async def _known(self, owner: str, keys: list[str]) -> tuple[dict[str, Secrets], tuple[Loss, ...]]:
        """What is in memory, and with one question what is not."""
        known: dict[str, Secrets] = {}
        unknown: list[str] = []
        for key in keys:
            if (secrets := self._recent.get((owner, key))) is _UNKNOWN:
                unknown.append(key)
            elif secrets is not None:
                known[key] = secrets
        if not unknown or self._store is None or self._clock() < self._next_question:
            return known, ()
        try:
            found = await self._store.find_items(OWNERS + owner, unknown)
        except GatewayError as error:
            self._next_question = self._clock() + _PAUSE
            return known, (Loss("store", "store", f"past reasoning could not be looked up: {error.message}"),)
        for key in unknown:
            data = found.get(key, b"")
            secrets = unpacked(data) if data else None
            self._recent.put((owner, key), secrets, len(data))
            if secrets is not None:
                known[key] = secrets
        return known, ()


class TurnSignatures(Struct, frozen=True):
    """Where the answer to one request is remembered: the request as the client has it, and whose answer it is."""

    vault: SignatureMemory
    request: Request
    maker: ReasoningSource
    owner: str

    async def restored(self) -> RestoredRequest:
        return await self.vault.restore(self.request, self.maker, self.owner)

    async def keep(self, parts: Sequence[Part]) -> tuple[Loss, ...]:
        return await self.vault.keep(self.request, self.maker, self.owner, parts)


class _Recent:
    """By owner and key, the least recently used dropped first; None where nothing was kept of a turn.

    Every turn with calls leaves an entry, most of them None. Those have a bound of their own: without it a gateway that never
    sees reasoning would grow for hundreds of thousands of requests.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.size = 0
        self._entries: OrderedDict[tuple[str, str], tuple[Secrets, int]] = OrderedDict()
        self._empty: OrderedDict[tuple[str, str], None] = OrderedDict()

    def get(self, key: tuple[str, str]) -> Secrets | None:
        """_UNKNOWN where the store must be asked."""
        if key in self._empty:
            self._empty.move_to_end(key)
            return None
        secrets = self._entries.get(key, _NO_ENTRY)[0]
        if secrets is not _UNKNOWN:
            self._entries.move_to_end(key)
        return secrets

    def put(self, key: tuple[str, str], secrets: Secrets | None, size: int) -> None:
        self._drop(key)
        if secrets is None:
            self._put_empty(key)
            return
        size += len(key[1]) + _OVERHEAD
        if size > self._max_bytes // 8:  # one must not push out all others
            return
        self._entries[key] = secrets, size
        self.size += size
        while self.size > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _put_empty(self, key: tuple[str, str]) -> None:
        if self._max_bytes and len(key[1]) <= _LONGEST_EMPTY:  # clients choose the names of models
            self._empty[key] = None
        if len(self._empty) > _MOST_EMPTY:
            self._empty.popitem(last=False)

    def _drop(self, key: tuple[str, str]) -> None:
        self._empty.pop(key, None)
        if (entry := self._entries.pop(key, None)) is not None:
            self.size -= entry[1]


def reasoning_source(backend: Backend, model: str) -> ReasoningSource | None:
    """model is the name that the back end knows. None for a back end that answers in this process: it wants nothing back."""
    needs = needs_of(backend.dialect, backend.profile)
    return None if needs is None else ReasoningSource(backend=backend.name, model=model, needs=needs)


def needs_of(dialect: str, profile: Profile) -> Needs | None:
    """By what the dialect's requests can say to such a back end."""
    match dialect:
        case "messages":
            return Needs(dialect=dialect, proofs=("signature", "redacted"))
        case "responses":
            # Who keeps items was asked not to keep these, and takes them back only with their proof.
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
        messages, turns = restored(messages, found, _name_of, is_run=is_run)
    if messages is request.messages:
        return RestoredRequest(request, losses)
    return RestoredRequest(replace(request, messages=messages, wire=b""), losses, turns)


def _entry(owner: str, key: str, maker: ReasoningSource, data: bytes) -> Entry:
    return Entry(
        owner=OWNERS + owner,
        id=key,
        kind="reasoning",
        created=time.time(),
        keeper=maker.backend,
        output=(Item(key, data),),
    )
