"""The SQL of the store in PostgreSQL, one statement per operation, and the conversion of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..base import CONVERSATION, CounterChange, Entry, Item, SharedRecord, parent_of
from ..statements import key_of

_RUNNING = "('queued', 'in_progress')"
_THIS = "key = $1 AND owner = $2 AND id = $3"
_CONVERSATION = f"{_THIS} AND kind = '{CONVERSATION}'"
# The time is that of the server, unless the caller gives one: the clock of a gateway may be wrong.
_NOW = "coalesce({}::float8, extract(epoch FROM clock_timestamp())::float8)"
_COLUMNS = "owner, id, kind, status, created, alive, previous, conversation, keeper, head, input, output, body"

# False if another id has the same key. A conversation that is replaced keeps its items.
PUT = f"""
WITH stored AS (
    INSERT INTO toolwire_entries AS e (key, parent_key, used, size, item_keys, {_COLUMNS})
    VALUES ($1, $2, {_NOW.format("$3")}, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
    ON CONFLICT (key) DO UPDATE SET
        parent_key = excluded.parent_key, used = excluded.used, size = excluded.size, kind = excluded.kind, status = excluded.status,
        created = excluded.created, alive = excluded.alive, previous = excluded.previous, conversation = excluded.conversation,
        keeper = excluded.keeper, head = excluded.head, input = excluded.input, output = excluded.output, body = excluded.body,
        item_keys = CASE WHEN e.item_keys <@ excluded.item_keys THEN excluded.item_keys ELSE e.item_keys || excluded.item_keys END
    WHERE e.owner = excluded.owner AND e.id = excluded.id
    RETURNING key
),
dropped AS (DELETE FROM toolwire_items WHERE conversation_key = $1 AND $8 <> '{CONVERSATION}'),
named AS (
    INSERT INTO toolwire_output_ids SELECT item, key FROM stored, unnest($5::bigint[]) AS item ORDER BY item
    ON CONFLICT (item_key) DO UPDATE SET entry_key = excluded.entry_key
)
SELECT EXISTS (SELECT 1 FROM stored)"""
# The same values; False if it has ended or does not exist.
REPLACE_RUNNING = f"""
WITH stored AS (
    UPDATE toolwire_entries e SET
        parent_key = $2, used = {_NOW.format("$3")}, size = $4, kind = $8, status = $9, created = $10, alive = $11, previous = $12, conversation = $13,
        keeper = $14, head = $15, input = $16, output = $17, body = $18,
        item_keys = CASE WHEN e.item_keys <@ $5::bigint[] THEN $5::bigint[] ELSE e.item_keys || $5::bigint[] END
    WHERE key = $1 AND owner = $6 AND id = $7 AND status IN {_RUNNING}
    RETURNING key
),
named AS (
    INSERT INTO toolwire_output_ids SELECT item, key FROM stored, unnest($5::bigint[]) AS item ORDER BY item
    ON CONFLICT (item_key) DO UPDATE SET entry_key = excluded.entry_key
)
SELECT EXISTS (SELECT 1 FROM stored)"""
GET = f"SELECT {_COLUMNS} FROM toolwire_entries WHERE key = $1"
KIND = f"SELECT kind FROM toolwire_entries WHERE {_THIS}"
# UNION drops duplicates, so a cycle ends. Without an order of rows: chain_of() follows the ids.
CHAIN = f"""
WITH RECURSIVE link (key, parent_key) AS (
    SELECT key, parent_key FROM toolwire_entries WHERE key = $1
    UNION
    SELECT e.key, e.parent_key FROM link JOIN toolwire_entries e ON e.key = link.parent_key
)
SELECT {_COLUMNS.removesuffix("body")}'{{}}'::bytea FROM link JOIN toolwire_entries USING (key) WHERE owner = $2"""
DELETE = f"""
WITH gone AS (DELETE FROM toolwire_entries WHERE {_THIS} RETURNING key, item_keys),
ids AS (DELETE FROM toolwire_output_ids o USING gone WHERE o.item_key = ANY (gone.item_keys) AND o.entry_key = gone.key)
SELECT EXISTS (SELECT 1 FROM gone)"""
# All items of the answers that have one of these: they are often needed together.
OUTPUTS = """
SELECT DISTINCT e.output FROM toolwire_output_ids o JOIN toolwire_entries e ON e.key = o.entry_key
WHERE o.item_key = ANY ($1) AND e.owner = $2"""
FIND_ITEMS = """
SELECT i.id, i.value FROM toolwire_items i JOIN toolwire_entries e ON e.key = i.conversation_key
WHERE i.item_key = ANY ($1) AND e.owner = $2 ORDER BY i.sequence DESC"""
# The lock on the conversation also orders appends: sequence numbers are taken while it is held.
APPEND = f"""
WITH parent AS (UPDATE toolwire_entries SET used = {_NOW.format("$4")} WHERE {_CONVERSATION} RETURNING key),
appended AS (
    INSERT INTO toolwire_items (conversation_key, item_key, id, value)
    SELECT parent.key, item.* FROM parent, unnest($5::bigint[], $6::bytea[], $7::bytea[]) AS item
    ON CONFLICT (conversation_key, item_key) DO UPDATE SET value = excluded.value
)
SELECT EXISTS (SELECT 1 FROM parent)"""
ITEMS = f"""
SELECT i.id, i.value FROM toolwire_items i
WHERE conversation_key = (SELECT key FROM toolwire_entries WHERE {_CONVERSATION}) ORDER BY sequence"""
DELETE_ITEM = f"""
WITH gone AS (
    DELETE FROM toolwire_items i USING toolwire_entries e
    WHERE e.key = $1 AND e.owner = $2 AND e.id = $3 AND e.kind = '{CONVERSATION}'
        AND i.conversation_key = e.key AND i.item_key = $4 AND i.id = $5
    RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM gone)"""
TOUCH = f"""
WITH beat AS (UPDATE toolwire_entries SET alive = $4 WHERE {_THIS} AND status IN {_RUNNING} RETURNING status)
SELECT status FROM beat
UNION ALL SELECT status FROM toolwire_entries WHERE {_THIS} AND NOT EXISTS (SELECT 1 FROM beat)"""
TOTAL = """
SELECT coalesce((SELECT sum(size) FROM toolwire_entries), 0)
    + coalesce((SELECT sum(octet_length(value) + 200) FROM toolwire_items), 0)"""
# Keys of entries, or of items of answers, with the first and the last use. Rows that another gateway changes now are skipped: they are in
# use anyway. A use does not revive an entry that had expired by then ($4: seconds).
USE = """
WITH seen AS (SELECT * FROM unnest($1::bigint[], $2::float8[], $3::float8[]) AS s (key, first, last)),
uses AS (
    SELECT key, min(first) AS first, max(last) AS last FROM (
        SELECT key, first, last FROM seen
        UNION ALL SELECT o.entry_key, seen.first, seen.last FROM seen JOIN toolwire_output_ids o ON o.item_key = seen.key
    ) AS every GROUP BY key
),
locked AS (SELECT key FROM toolwire_entries WHERE key IN (SELECT key FROM uses) ORDER BY key FOR UPDATE SKIP LOCKED)
UPDATE toolwire_entries e SET used = uses.last FROM uses, locked
WHERE e.key = uses.key AND e.key = locked.key AND e.used < uses.last AND e.used >= uses.first - $4"""

NOW = f"SELECT {_NOW.format('$1')}"
APPLY = f"SELECT toolwire_apply({_NOW.format('$1')}, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
COUNTERS = f"SELECT name, value FROM toolwire_counters WHERE name = ANY ($1) AND (expires = 0 OR expires > {_NOW.format('$2')})"
RECORDS = f"""
SELECT name, value, expires FROM toolwire_records
WHERE space = $1 AND ($2::text IS NULL OR name = $2) AND (expires = 0 OR expires > {_NOW.format("$3")}) ORDER BY name"""
DROP_EXPIRED_RECORDS = "DELETE FROM toolwire_records WHERE expires > 0 AND expires <= $1"
DROP_EXPIRED_COUNTERS = "DELETE FROM toolwire_counters WHERE expires > 0 AND expires <= $1"

_pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder(tuple[Item, ...]).decode


def row_of(entry: Entry, now: float | None, size: int) -> tuple[Any, ...]:
    """The values of PUT. now: None for the time of the server."""
    return (
        key_of(entry.owner, entry.id),
        key_of(entry.owner, parent) if (parent := parent_of(entry)) else None,
        now,
        size,
        [key_of(entry.owner, item.id) for item in {item.id: item for item in entry.output}.values()],
        entry.owner.encode(),
        entry.id.encode(),
        entry.kind,
        entry.status,
        entry.created,
        entry.alive,
        entry.previous.encode(),
        entry.conversation.encode(),
        entry.keeper.encode(),
        entry.head,
        entry.input,
        _pack(entry.output),
        entry.body,
    )


def entry_of(row: Any) -> Entry:
    owner, id, kind, status, created, alive, previous, conversation, keeper, head, input, output, body = row
    return Entry(
        owner=owner.decode(),
        id=id.decode(),
        kind=kind,
        created=created,
        previous=previous.decode(),
        conversation=conversation.decode(),
        keeper=keeper.decode(),
        status=status,
        alive=alive,
        head=head,
        input=input,
        output=unpack(output),
        body=body,
    )


def chain_of(rows: Sequence[Any], id: str) -> list[Entry] | None:
    """Oldest first; None if one is missing or they form a cycle."""
    found = {entry.id: entry for entry in map(entry_of, rows)}
    entries: list[Entry] = []
    while id:
        entry = found.pop(id, None)
        if entry is None:
            return None
        entries.append(entry)
        id = entry.previous
    return entries[::-1] or None


def apply_values(
    changes: Sequence[CounterChange], put: Sequence[SharedRecord], drop: Sequence[tuple[str, str]]
) -> tuple[list[Any], ...]:
    """The values of APPLY after the time, sorted: two gateways must lock rows in the same order."""
    dropped = sorted(drop)
    records = sorted(put, key=lambda record: (record.space, record.name))
    counted = sorted(changes, key=lambda change: change.counter)
    return (
        [space for space, _ in dropped],
        [name for _, name in dropped],
        [record.space for record in records],
        [record.name for record in records],
        [record.value for record in records],
        [record.expires for record in records],
        [change.counter for change in counted],
        [change.amount for change in counted],
        [change.limit for change in counted],
        [change.expires for change in counted],
    )
