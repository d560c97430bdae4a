"""What the gateway asks of a store: answers by owner and id, chains of them, and lists of items.

An owner sees only what is its own; that is part of every question, so that no caller can forget it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

Status: TypeAlias = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class Item(Struct, frozen=True):
    """One item of an answer or a conversation: its id and its JSON."""

    id: str
    value: bytes


class Entry(Struct, frozen=True, kw_only=True):
    """One stored answer, or a conversation (kind "conversation", no output, items kept beside it).

    All bytes are JSON. head: what later turns inherit (system and tools of a thread); input: an array of what this turn
    added to the history; output: the items answered, in order; body: the answer as its dialect shows it, without its output.
    keeper: the back end that keeps the content itself, "" where it is kept here; then head, input, output and body may be empty.
    alive: when whoever works on a queued or running answer last said so, in seconds since 1970.
    """

    owner: str
    id: str
    kind: str  # the dialect of an answer, or "conversation"
    created: float
    previous: str = ""
    conversation: str = ""
    keeper: str = ""
    status: Status = "completed"
    alive: float = 0.0
    head: bytes = b""
    input: bytes = b"[]"
    output: tuple[Item, ...] = ()
    body: bytes = b"{}"


RUNNING: tuple[Status, ...] = ("queued", "in_progress")
CONVERSATION = "conversation"


def parent_of(entry: Entry) -> str:
    """The id of the entry that this one cannot be continued without, "" if there is none."""
    return entry.previous or entry.conversation


class Store(Protocol):
    """Every method is safe to call from many tasks at once; none blocks the loop.

    A full store evicts the least recently used entries; entries that are older than its bound expire. put, append, get, kind_of,
    chain and find_items are uses. Using an entry also counts as a use of its parents, so a conversation or chain is as recent as
    its most recent answer, and it is evicted whole. A running answer expires, but is not evicted; neither is the chain that a
    write extends. A store that cannot do what it is asked raises a GatewayError.
    """

    async def put(self, entry: Entry) -> None:
        """Keep it, in place of one with the same owner and id; when this returns it survives the process being killed."""

    async def get(self, owner: str, id: str) -> Entry | None: ...

    async def kind_of(self, owner: str, id: str) -> str:
        """ "" if it is not there; cheaper than to get it."""

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        """This entry and all before it by `previous`, oldest first, without bodies; None if one is gone or before itself."""

    async def delete(self, owner: str, id: str) -> bool:
        """Whether it was there; its items go with it."""

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        """Items by id, of answers and of conversations; unknown ids are left out."""

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        """Add items to the end of a conversation; one whose id is there already is replaced in its place.

        False, and nothing is kept, if the conversation is not there (deleted meanwhile, or never put).
        """

    async def items(self, owner: str, conversation: str) -> list[Item]:
        """All items of a conversation, oldest first."""

    async def delete_item(self, owner: str, conversation: str, id: str) -> bool: ...

    async def touch(self, owner: str, id: str, alive: float) -> Status | None:
        """Say that a running answer is still being worked on; its status as it is now, None if it is gone."""

    async def close(self) -> None:
        """Finish what was asked so far; nothing can be asked afterwards."""
