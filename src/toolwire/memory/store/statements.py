"""The SQL of the store, one function per operation; the caller holds the transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from sqlite3 import Connection, IntegrityError
from typing import Any

import msgspec

from . import errors as failures
from .base import CONVERSATION, RUNNING, Entry, Item, Status, parent_of

_COLUMNS = "owner, id, kind, status, created, alive, previous, conversation, keeper, head, input, output, body"
_INSERT = f"INSERT INTO entries (key, previous_key, written, {_COLUMNS}) VALUES ({', '.join('?' * 16)})"
_GET = f"SELECT {_COLUMNS} FROM entries WHERE key = ?"
# Newest first, one row at a time, so that the walk of a cycle can be stopped.
_CHAIN = f"""
WITH RECURSIVE link (step, before) AS (
    SELECT place, previous_key FROM entries WHERE key = ?
    UNION ALL
    SELECT place, previous_key FROM link CROSS JOIN entries ON key = before
)
SELECT {_COLUMNS.removesuffix("body")}x'7b7d' FROM link CROSS JOIN entries ON place = step"""
_PLACE = "SELECT place, kind FROM entries WHERE key = ? AND owner = ? AND id = ?"
_OUTPUT_ID = "INSERT OR REPLACE INTO output_ids VALUES (?, ?)"
_FORGET_OUTPUT_ID = "DELETE FROM output_ids WHERE item_key = ? AND place = ?"
_APPEND = """
INSERT INTO items (owner, conversation, id, value) VALUES (?, ?, ?, ?)
ON CONFLICT (owner, id, conversation) DO UPDATE SET value = excluded.value"""

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(tuple[Item, ...]).decode
_NOTHING = _pack(())


def put(connection: Connection, entry: Entry, now: float) -> None:
    row = (
        key_of(entry.owner, entry.id),
        key_of(entry.owner, parent) if (parent := parent_of(entry)) else None,
        now,
        entry.owner,
        entry.id,
        entry.kind,
        entry.status,
        entry.created,
        entry.alive,
        entry.previous,
        entry.conversation,
        entry.keeper,
        entry.head,
        entry.input,
        _pack(entry.output) if entry.output else _NOTHING,
        entry.body,
    )
    try:
        place = connection.execute(_INSERT, row).lastrowid
    except IntegrityError:
        # Too rare to check first: a queued answer is stored again when it is complete.
        place = _place(connection, entry.owner, entry.id)
        if place is None:
            raise failures.key_taken() from None
        if entry.kind == CONVERSATION:
            _remove_answer(connection, place)  # its items stay
        else:
            remove(connection, place)
        place = connection.execute(_INSERT, row).lastrowid
    if entry.output:
        connection.executemany(_OUTPUT_ID, [(key_of(entry.owner, item.id), place) for item in entry.output])


def replace_running(connection: Connection, entry: Entry, now: float) -> bool:
    place = _place(connection, entry.owner, entry.id)
    if place is None:
        return False
    [status] = connection.execute("SELECT status FROM entries WHERE place = ?", (place,)).fetchone()
    if status not in RUNNING:
        return False
    put(connection, entry, now)
    return True


def get(connection: Connection, owner: str, id: str) -> Entry | None:
    row = connection.execute(_GET, (key_of(owner, id),)).fetchone()
    return _entry(row) if row and row[0] == owner and row[1] == id else None


def kind_of(connection: Connection, owner: str, id: str) -> str:
    row = connection.execute(_PLACE, (key_of(owner, id), owner, id)).fetchone()
    return row[1] if row else ""


def chain(connection: Connection, owner: str, id: str) -> list[Entry] | None:
    entries: dict[str, Entry] = {}
    cursor = connection.execute(_CHAIN, (key_of(owner, id),))
    for row in cursor:
        if row[0] != owner or row[1] != id or id in entries:
            cursor.close()
            return None
        entries[id] = entry = _entry(row)
        id = entry.previous
        if not id:  # its parent is its conversation
            break
    cursor.close()
    return None if id or not entries else list(reversed(entries.values()))


def delete(connection: Connection, owner: str, id: str) -> bool:
    place = _place(connection, owner, id)
    return place is not None and remove(connection, place) > 0


def find_items(connection: Connection, owner: str, ids: Sequence[str]) -> dict[str, bytes]:
    items: dict[str, bytes] = {}
    for id in ids:
        if id not in items:
            items.update(_items_beside(connection, owner, id))
    return {id: items[id] for id in ids if id in items}


def append(connection: Connection, owner: str, conversation: str, items: Sequence[Item], now: float) -> bool:
    place = _place(connection, owner, conversation, CONVERSATION)
    if place is None:
        return False
    connection.executemany(_APPEND, [(owner, conversation, item.id, item.value) for item in items])
    connection.execute("UPDATE entries SET written = ? WHERE place = ?", (now, place))
    return True


def items(connection: Connection, owner: str, conversation: str) -> list[Item]:
    if _place(connection, owner, conversation, CONVERSATION) is None:
        return []
    question = "SELECT id, value FROM items WHERE owner = ? AND conversation = ? ORDER BY sequence"
    return [Item(*row) for row in connection.execute(question, (owner, conversation))]


def count_items(connection: Connection, owner: str, conversation: str) -> int:
    question = "SELECT count(*) FROM items WHERE owner = ? AND conversation = ?"
    return int(connection.execute(question, (owner, conversation)).fetchone()[0])


def delete_item(connection: Connection, owner: str, conversation: str, id: str) -> bool:
    if _place(connection, owner, conversation, CONVERSATION) is None:
        return False
    question = "DELETE FROM items WHERE owner = ? AND conversation = ? AND id = ?"
    return connection.execute(question, (owner, conversation, id)).rowcount > 0


def touch(connection: Connection, owner: str, id: str, alive: float) -> Status | None:
    place = _place(connection, owner, id)
    if place is None:
        return None
    status: Status = connection.execute("SELECT status FROM entries WHERE place = ?", (place,)).fetchone()[0]
    if status in RUNNING:
        connection.execute("UPDATE entries SET alive = ? WHERE place = ?", (alive, place))
    return status


def remove(connection: Connection, place: int) -> int:
    """Remove the entry and its items; at most how many pages that wrote, without free ones."""
    owner, id, kind, count = _remove_answer(connection, place)
    if kind == CONVERSATION:
        question = "DELETE FROM items WHERE owner = ? AND conversation = ?"
        count += 3 * connection.execute(question, (owner, id)).rowcount
    return pages_of((), count)


def key_of(owner: str, id: str) -> int:
    """A hash of 64 bits. Collisions are not expected, but must not mix up two ids."""
    digest = blake2b(f"{len(owner)} {owner}{id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def pages_of(sizes: Iterable[int], ids: int) -> int:
    """How many pages a write of blobs of these sizes and so many ids may touch."""
    return sum(sizes) // 4000 + ids + 6


def _place(connection: Connection, owner: str, id: str, kind: str = "") -> int | None:
    """The row of the entry, if it has that kind; "" is any."""
    row = connection.execute(_PLACE, (key_of(owner, id), owner, id)).fetchone()
    if row is None or (kind and row[1] != kind):
        return None
    return int(row[0])


def _entry(row: tuple[Any, ...]) -> Entry:
    owner, id, kind, status, created, alive, previous, conversation, keeper, head, input, output, body = row
    return Entry(
        owner=owner,
        id=id,
        kind=kind,
        created=created,
        previous=previous,
        conversation=conversation,
        keeper=keeper,
        status=status,
        alive=alive,
        head=head,
        input=input,
        output=() if output == _NOTHING else _unpack(output),
        body=body,
    )


def _items_beside(connection: Connection, owner: str, id: str) -> dict[str, bytes]:
    """The item and, for one of an answer, all others of that answer: they are often needed together."""
    question = "SELECT output FROM output_ids JOIN entries USING (place) WHERE item_key = ? AND owner = ?"
    row = connection.execute(question, (key_of(owner, id), owner)).fetchone()
    beside = {} if row is None else {item.id: item.value for item in _unpack(row[0])}
    if id in beside:
        return beside
    question = "SELECT value FROM items WHERE owner = ? AND id = ? LIMIT 1"
    row = connection.execute(question, (owner, id)).fetchone()
    return {} if row is None else {id: row[0]}


def _remove_answer(connection: Connection, place: int) -> tuple[str, str, str, int]:
    """Returns its owner, id, kind and number of items. The items of a conversation stay."""
    question = "SELECT owner, id, kind, output FROM entries WHERE place = ?"
    owner, id, kind, output = connection.execute(question, (place,)).fetchone()
    keys = [(key_of(owner, item.id), place) for item in _unpack(output)]
    if keys:
        connection.executemany(_FORGET_OUTPUT_ID, keys)
    connection.execute("DELETE FROM entries WHERE place = ?", (place,))
    return owner, id, kind, len(keys)
