"""The interface of a store: answers by owner and id, chains of answers, lists of items, and the gateway's own counters and records.

The owner is a parameter of every method for entries, so that no caller can read what belongs to another owner. Counters and records
belong to the gateway itself (leases of live runs, keys, budgets): no client can name one, and none is evicted.
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
    """One stored answer, or a conversation (kind "conversation", no output, its items stored separately).

    All bytes are JSON. head: what later turns inherit (system and tools of a thread). input: an array of what this turn adds to the
    history. output: the items of the answer, in order. body: the answer in its dialect, without its output. keeper: the back end that
    stores the content, "" if it is stored here; otherwise head, input, output and body may be empty. alive: the last heartbeat of a queued
    or running answer, in seconds since 1970.
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


class SharedRecord(Struct, frozen=True):
    """A small value of the gateway. expires: seconds since 1970, after which it does not exist; 0 for never."""

    space: str
    name: str
    value: bytes
    expires: float = 0.0


class CounterChange(Struct, frozen=True):
    """Adds amount to a counter, which starts at 0. limit: the change is refused if it is above 0 and the counter would exceed this.

    expires: seconds since 1970, after which the counter is 0 again; 0 for never. The first change of a counter sets it.
    """

    counter: str
    amount: int
    limit: int | None = None
    expires: float = 0.0


RUNNING: tuple[Status, ...] = ("queued", "in_progress")
CONVERSATION = "conversation"


def parent_of(entry: Entry) -> str:
    """The id of the entry that this one cannot be continued without, "" if there is none."""
    return entry.previous or entry.conversation


class Store(Protocol):
    """Every method may be called by many tasks concurrently; none blocks the event loop.

    A full store evicts the least recently used entries; entries that are older than its bound expire. put, append, get, kind_of,
    chain and find_items are uses. Using an entry also counts as a use of its parents, so a conversation or chain is as recent as
    its most recent answer, and it is evicted whole. A running answer expires, but is not evicted; neither is the chain that a
    write extends. A failure is a GatewayError.
    """

    async def put(self, entry: Entry) -> None:
        """Insert or replace by owner and id. When this returns, the entry survives a kill of the process."""

    async def replace_running(self, entry: Entry) -> bool:
        """Replace a queued or running answer. False, without any change, if it has ended meanwhile or does not exist."""

    async def get(self, owner: str, id: str) -> Entry | None: ...

    async def kind_of(self, owner: str, id: str) -> str:
        """ "" if it does not exist; cheaper than get()."""

    async def chain(self, owner: str, id: str) -> list[Entry] | None:
        """This entry and all before it by `previous`, oldest first, without bodies; None if one is missing or they form a cycle."""

    async def delete(self, owner: str, id: str) -> bool:
        """Whether it existed. Its items are deleted, too."""

    async def find_items(self, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
        """Items by id, of answers and of conversations, without unknown ids."""

    async def append(self, owner: str, conversation: str, items: Sequence[Item]) -> bool:
        """Append items to a conversation; an item with a known id is replaced in place. False if the conversation does not exist."""

    async def items(self, owner: str, conversation: str) -> list[Item]:
        """All items of a conversation, oldest first."""

    async def delete_item(self, owner: str, conversation: str, id: str) -> bool: ...

    async def touch(self, owner: str, id: str, alive: float) -> Status | None:
        """Record a heartbeat of a running answer and return its status; None if it does not exist."""

    async def apply(
        self,
        changes: Sequence[CounterChange] = (),
        *,
        put: Sequence[SharedRecord] = (),
        drop: Sequence[tuple[str, str]] = (),
    ) -> str:
        """Change counters, insert or replace records, and drop records by space and name: all of it atomically, or nothing.

        Returns "", or the name that prevented it: of a counter that would exceed its limit, or of a record to drop that does not exist.
        When this returns "", the result survives a kill of the process. After a GatewayError it may have happened or not, never twice.
        """

    async def counters(self, names: Sequence[str]) -> dict[str, int]:
        """The values of these counters, without those that do not exist."""

    async def records(self, space: str, name: str | None = None) -> list[SharedRecord]:
        """All records of a space, or the one with this name, in the order of their names."""

    async def open(self) -> str:
        """Called once at start, optional. Returns why the store cannot be used now, or ""; it recovers by itself.

        Raises ConfigError for what only the owner can change.
        """

    async def is_available(self) -> bool:
        """Whether the store can be used now, without waiting for one that cannot."""

    async def close(self) -> None:
        """Finish pending calls; the store cannot be used afterwards."""
