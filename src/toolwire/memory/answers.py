"""Stored answers: the history that a request refers to is looked up, and its answer is stored, per owner.

A back end that stores answers itself and speaks the dialect of the client does so; otherwise the gateway does. For answers that a back end
stores, the gateway stores only a pointer with the owner, because the back end cannot tell the clients of the gateway apart. A request that
refers to an answer in the gateway's store is completed from there, whatever the back end stores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from ..backends.base import Backend
from ..config.file import BackendConfig
from ..dialects import MEMORIES
from ..dialects.responses.state import shown_item
from ..dialects.shared.memory import Memory, PastTurns, StoredAnswer
from ..errors import BadRequest, quote
from ..offload import LARGE, offload
from ..profiles import profile_for
from ..types import Json, JsonObject, Request, State
from ..wire.exact_json import decode, encode
from .cache import HistoryCache
from .store import Entry, Item, Store

Mint: TypeAlias = Callable[[str], str]

POINTERS = "*"  # the owner of all pointers; that of a client is empty or a hash
RUNNING = ("queued", "in_progress")
_ENDED_WELL = ("completed", "incomplete")
_FIRST_ITEMS = 8


class StoredTurn:
    """The stored history and answer of one request. request: what to send, complete in itself."""

    is_here = True
    is_awaited = False  # begun() must be called with the id of the answer

    def __init__(self, memory: AnswerMemory, asked: Request, sent: Request, owner: str, answer_id: str = "") -> None:
        self.request = sent
        self.answer_id = answer_id
        self.own: list[Json] = []  # items that the request itself adds
        self.past, self.size = PastTurns(), 0
        self._memory = memory
        self._asked = asked
        self._owner = owner
        self._deletions = memory.histories.deletions

    async def begun(self, answer_id: str) -> None:
        """Called before the client receives the id of its answer."""

    async def save(self, answer: JsonObject, mint: Mint) -> None:
        """Called before the client receives the end of the answer, so it cannot refer to one that is not stored."""
        state, memory, store = self._asked.state, MEMORIES[self._asked.origin], self._memory.store
        kept = memory.remembered(self._asked, answer)
        if state is None or kept is None or not await self._is_wanted(state):
            return
        output = tuple([Item(item_id, encode(value)) for item_id, value in kept.output])
        if state.conversation and kept.status in _ENDED_WELL:
            await store.append(self._owner, state.conversation, self._new_items(kept.id, output, mint))
        if state.is_kept:
            is_large = self.request.size > LARGE
            entry = await offload(self._entry, state, kept, output) if is_large else self._entry(state, kept, output)
            if not state.answer_id:
                await store.put(entry)
            elif not await store.replace_running(entry):  # cancelled or deleted a moment ago
                return
            self._note(memory, kept, len(entry.input) + sum([len(item.value) for item in output]))

    async def _is_wanted(self, state: State) -> bool:
        """A background answer may have been cancelled or deleted meanwhile, also by another process."""
        if not state.answer_id:
            return True
        return await self._memory.store.touch(self._owner, state.answer_id, time.time()) in RUNNING

    def _new_items(self, answer_id: str, output: tuple[Item, ...], mint: Mint) -> list[Item]:
        """The items to append to a conversation, renamed where a back end reuses ids: they must not replace earlier items."""
        taken = {item.get("id") for item in self.past.items}
        listed = [shown_item(item, mint) for item in self.own]
        items = [Item(item["id"], encode(item)) for item in listed]
        names = [_second_name(answer_id, index) for index in range(len(output))]
        return items + [
            _renamed(item, name) if item.id in taken else item for item, name in zip(output, names, strict=True)
        ]

    def _note(self, memory: Memory, kept: StoredAnswer, size: int) -> None:
        """Cache the history: the next request is likely to continue this answer."""
        state = self._asked.state
        if kept.status not in _ENDED_WELL or state is None or state.conversation:
            return
        if self._memory.histories.deletions != self._deletions:  # perhaps of an answer in this history
            return
        if not state.is_leaning and len(self.own) > _FIRST_ITEMS:  # this client sends its whole history each time
            return
        answered = [value for _, value in kept.output]
        try:
            messages = [one for one in self.request.messages if not one.is_head]
            past = PastTurns(
                head=self.past.head or kept.head,
                items=[*self.past.items, *self.own, *answered],
                messages=(*messages, *memory.messages_of(answered)),
            )
        except BadRequest:  # the back end sent something that its own dialect does not accept
            return
        self._memory.histories.put(self._owner, kept.id, past, self.size + size)

    def _entry(self, state: State, kept: StoredAnswer, output: tuple[Item, ...]) -> Entry:
        return Entry(
            owner=self._owner,
            id=kept.id,
            kind=self._asked.origin,
            created=time.time(),
            previous=state.previous,
            conversation=state.conversation,
            status=kept.status,
            head=encode(kept.head) if kept.head else b"",
            input=encode(self.own),
            output=output,
            body=encode(kept.body) if kept.body else b"{}",
        )


class PointerTurn(StoredTurn):
    """The back end stores the answer; the gateway stores a pointer with the owner and the client's name of the model."""

    is_here = False

    def __init__(self, memory: AnswerMemory, asked: Request, owner: str, keeper: str) -> None:
        super().__init__(memory, asked, asked, owner)
        self._keeper = keeper
        self.is_awaited = asked.state is not None and asked.state.is_background

    async def begun(self, answer_id: str) -> None:
        """A background answer may be polled or cancelled before its end."""
        self.is_awaited = False
        await self._point(answer_id, [])

    async def save(self, answer: JsonObject, mint: Mint) -> None:
        answer_id, output = answer.get("id"), answer.get("output")
        if not isinstance(answer_id, str) or not answer_id:
            return
        named = [item.get("id") for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        await self._point(answer_id, [name for name in dict.fromkeys(named) if isinstance(name, str) and name])

    async def _point(self, answer_id: str, names: list[str]) -> None:
        whose = encode(self._owner)
        await self._memory.store.put(
            Entry(
                owner=POINTERS,
                id=answer_id,
                kind=self._asked.origin,
                created=time.time(),
                keeper=self._keeper,
                head=whose,
                body=encode({"model": self._asked.model}),
                output=tuple(Item(name, whose) for name in names),
            )
        )


class AnswerMemory:
    """keepers: back ends that store answers themselves. is_shared: the server has keys, so its clients must not see each other's answers."""

    def __init__(self, store: Store, keepers: Iterable[str], *, is_shared: bool) -> None:
        self.store = store
        self.histories = HistoryCache()
        self.is_shared = is_shared
        self.keepers = tuple(keepers)

    def is_upstreams(self, backend: Backend, origin: str) -> bool:
        return backend.name in self.keepers and backend.dialect == origin

    async def begin(
        self, request: Request, backend: Backend, owner: str, mint: Mint, *, is_here: bool = False
    ) -> StoredTurn | None:
        """None if the request needs no stored state. Raises BadRequest for an id that does not exist or has another owner.

        is_here: the gateway stores the answer of a request that is complete in itself, whatever the back end stores."""
        state, memory = request.state, MEMORIES.get(request.origin)
        if state is None or memory is None:
            return None
        is_upstreams = self.is_upstreams(backend, request.origin)
        is_here = is_here and not state.is_leaning
        if is_upstreams and not is_here and not await self._has(owner, state):
            await self._check_pointers(owner, state, memory, backend)
            return PointerTurn(self, request, owner, backend.name) if state.is_kept else None
        if not state.is_leaning:
            kept = StoredTurn(self, request, request, owner)
            kept.own = memory.own_items(request.source, {})
            return kept
        found = await self._found(owner, state, memory)
        past, size = await self._past(owner, request, memory, backend)
        own = memory.own_items(request.source, found)
        sent = memory.complete(request, own, past, looks_up=is_upstreams)
        kept = StoredTurn(self, request, sent, owner, state.answer_id or mint(memory.prefix))
        kept.own, kept.past, kept.size = own, past, size
        return kept

    async def delete(self, owner: str, answer_id: str) -> bool:
        self.histories.forget(owner)
        return await self.store.delete(owner, answer_id)

    async def pointer(self, owner: str, answer_id: str, origin: str) -> Entry | None:
        """The back end that stores this answer of this owner, in this dialect."""
        entry = await self.store.get(POINTERS, answer_id)
        is_theirs = entry is not None and entry.head == encode(owner) and entry.kind == origin
        return entry if is_theirs else None

    async def is_strange(self, answer_id: str) -> bool:
        """Whether the id did not pass through this gateway and the gateway has one user, who may then use it."""
        return not self.is_shared and not await self.store.kind_of(POINTERS, answer_id)

    async def _has(self, owner: str, state: State) -> bool:
        """Whether anything that the request refers to is stored here."""
        for name in (state.previous, state.conversation):
            if name and await self.store.kind_of(owner, name):
                return True
        return bool(state.references and await self.store.find_items(owner, state.references))

    async def _check_pointers(self, owner: str, state: State, memory: Memory, backend: Backend) -> None:
        for name in (state.previous, state.conversation):
            if not name or await self.is_strange(name):
                continue
            pointer = await self.pointer(owner, name, backend.dialect)
            if pointer is None:
                raise memory.not_found(state, name)
            if pointer.keeper != backend.name:
                raise _elsewhere(state, name, pointer.keeper, backend.name)
        if not state.references:
            return
        known, whose = await self.store.find_items(POINTERS, state.references), encode(owner)
        for name in state.references:
            if known.get(name, b"" if self.is_shared else whose) != whose:
                raise memory.not_found(state, name)

    async def _found(self, owner: str, state: State, memory: Memory) -> Mapping[str, Json]:
        if not state.references:
            return {}
        found = await self.store.find_items(owner, state.references)
        for name in state.references:
            if name not in found:
                raise memory.not_found(state, name)
        return {name: decode(value) for name, value in found.items()}

    async def _past(self, owner: str, request: Request, memory: Memory, backend: Backend) -> tuple[PastTurns, int]:
        """The history and its size in bytes."""
        state = request.state
        assert state is not None
        pieces: list[bytes] = []
        head = b""
        if state.previous:
            if (cached := await self._cached(owner, state.previous, request.origin)) is not None:
                return cached
            chain = await self.store.chain(owner, state.previous)
            if chain is None or chain[-1].kind != request.origin:
                await self._check_elsewhere(owner, request, backend)
                raise memory.not_found(state, state.previous)
            _check_ended(chain[-1], state)
            head = chain[0].head
            if chain[0].conversation and not await self.store.kind_of(owner, chain[0].conversation):
                raise memory.not_found(state, state.previous)
            pieces = await self._before(owner, chain)
        elif state.conversation:
            entry = await self.store.get(owner, state.conversation)
            if entry is None or entry.kind != "conversation":
                raise memory.not_found(state, state.conversation)
            pieces = [item.value for item in await self.store.items(owner, state.conversation)]
        size = sum(map(len, pieces)) + len(pieces) + 1
        past = await offload(_past_of, pieces, head, memory) if size > LARGE else _past_of(pieces, head, memory)
        return past, size

    async def _cached(self, owner: str, answer_id: str, origin: str) -> tuple[PastTurns, int] | None:
        """None if the answer is not in the store any more: another process may have deleted it."""
        cached = self.histories.get(owner, answer_id)
        return cached if cached is not None and await self.store.kind_of(owner, answer_id) == origin else None

    async def _before(self, owner: str, chain: list[Entry]) -> list[bytes]:
        """The JSON of every item up to the end of the chain."""
        pieces: list[bytes] = []
        if chain[0].conversation:
            pieces = await self._conversation_until(owner, chain[0])
            chain = chain[1:] if chain[0].status in _ENDED_WELL else chain
        for entry in chain:
            if len(entry.input) > 2:
                pieces.append(entry.input[1:-1])
            if entry.status in _ENDED_WELL:
                pieces += [item.value for item in entry.output]
        return pieces

    async def _conversation_until(self, owner: str, entry: Entry) -> list[bytes]:
        """A conversation up to the end of this answer, or all of it if it has no item of the answer."""
        items = await self.store.items(owner, entry.conversation)
        names = {item.id for item in entry.output}
        names |= {_second_name(entry.id, index) for index in range(len(entry.output))}
        places = [place for place, item in enumerate(items) if item.id in names]
        return [item.value for item in items[: places[-1] + 1 if places else None]]

    async def _check_elsewhere(self, owner: str, request: Request, backend: Backend) -> None:
        state = request.state
        assert state is not None
        if (pointer := await self.pointer(owner, state.previous, request.origin)) is not None:
            raise _elsewhere(state, state.previous, pointer.keeper, backend.name)


def _past_of(pieces: list[bytes], head: bytes, memory: Memory) -> PastTurns:
    items = decode(b"[" + b",".join(pieces) + b"]")  # in one call: as cheap as if the client had sent it
    return PastTurns(head=decode(head) if head else {}, items=items, messages=memory.messages_of(items))


def storing_backends(configs: Iterable[BackendConfig]) -> list[str]:
    """Back ends that store answers: by their configuration, else by their profile."""
    return [
        config.name
        for config in configs
        if config.state == "upstream"
        or (config.state == "auto" and profile_for(config.kind, config.base_url, config.profile).keeps_state)
    ]


def _second_name(answer_id: str, index: int) -> str:
    """The id of an item whose own id is taken, derived from its answer."""
    return f"item_{index}_{answer_id}"


def _renamed(item: Item, new_id: str) -> Item:
    return Item(new_id, encode({**decode(item.value), "id": new_id}))


def _check_ended(entry: Entry, state: State) -> None:
    if entry.status in RUNNING:
        raise BadRequest(
            f"{quote(entry.id)} is still running; expected an answer that has ended.",
            where=state.field,
            hint="Wait for its end, or cancel it.",
        )


def _elsewhere(state: State, name: str, keeper: str, backend: str) -> BadRequest:
    return BadRequest(
        f'{quote(name)} is stored by the back end "{keeper}"; this model belongs to "{backend}", which cannot read it.',
        where=state.field,
        code="state_elsewhere",
        hint="Continue with a model of that back end, or send the whole history.",
    )
