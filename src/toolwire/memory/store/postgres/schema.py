"""The tables in PostgreSQL: created and upgraded by the first gateway that connects, while the others wait.

The layout is that of the SQLite file (`memory/store/schema.py`), with four differences. Owners and ids are bytes, because text in PostgreSQL
cannot have a NUL. `size` is what an entry counts for in the limit. `item_keys` has the keys of its output items, so that one statement
deletes an entry with all that refers to it. Items of a conversation are deleted by a foreign key, also if they are appended meanwhile.

An upgrade only adds: gateways of the previous version work beside those of the next one. `compatible` is the oldest version that can use
the tables as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import errors as failures

if TYPE_CHECKING:
    from asyncpg import Connection

VERSION = 1
_LOCK = 0x746F6F6C77697265  # "toolwire"

_VERSION_TABLE = "CREATE TABLE IF NOT EXISTS toolwire_schema (version integer NOT NULL, compatible integer NOT NULL)"

_TABLES = """
CREATE TABLE toolwire_entries (
    key bigint PRIMARY KEY, parent_key bigint, used double precision NOT NULL, size integer NOT NULL,
    created double precision NOT NULL, alive double precision NOT NULL, kind text NOT NULL, status text NOT NULL,
    owner bytea NOT NULL, id bytea NOT NULL, previous bytea NOT NULL, conversation bytea NOT NULL, keeper bytea NOT NULL,
    item_keys bigint[] NOT NULL, head bytea NOT NULL, input bytea NOT NULL, output bytea NOT NULL, body bytea NOT NULL
);
CREATE INDEX toolwire_entries_by_use ON toolwire_entries (used) INCLUDE (size);
CREATE INDEX toolwire_entries_below ON toolwire_entries (parent_key) WHERE parent_key IS NOT NULL;
CREATE TABLE toolwire_output_ids (item_key bigint PRIMARY KEY, entry_key bigint NOT NULL);
CREATE TABLE toolwire_items (
    conversation_key bigint NOT NULL REFERENCES toolwire_entries ON DELETE CASCADE, item_key bigint NOT NULL,
    sequence bigint GENERATED ALWAYS AS IDENTITY, id bytea NOT NULL, value bytea NOT NULL,
    PRIMARY KEY (conversation_key, item_key)
);
CREATE INDEX toolwire_items_by_id ON toolwire_items (item_key);
CREATE TABLE toolwire_counters (
    name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL, expires double precision NOT NULL
);
CREATE TABLE toolwire_records (
    space text COLLATE "C", name text COLLATE "C", value bytea NOT NULL, expires double precision NOT NULL, PRIMARY KEY (space, name)
);
"""

# One round trip for what must happen completely or not at all. A refusal rolls back to the start of the inner block and returns the name.
# The caller sorts the names, so that two gateways lock rows in the same order. expires = 0 is never.
_APPLY = """
CREATE OR REPLACE FUNCTION toolwire_apply(
    at double precision,
    drop_spaces text[], drop_names text[],
    put_spaces text[], put_names text[], put_values bytea[], put_expires double precision[],
    counters text[], amounts bigint[], limits bigint[], counter_expires double precision[]
) RETURNS text LANGUAGE plpgsql AS $body$
BEGIN
    FOR i IN 1..cardinality(drop_names) LOOP
        DELETE FROM toolwire_records
            WHERE space = drop_spaces[i] AND name = drop_names[i] AND (expires = 0 OR expires > at);
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'TW001', MESSAGE = drop_names[i];
        END IF;
    END LOOP;
    FOR i IN 1..cardinality(put_names) LOOP
        INSERT INTO toolwire_records VALUES (put_spaces[i], put_names[i], put_values[i], put_expires[i])
            ON CONFLICT (space, name) DO UPDATE SET value = excluded.value, expires = excluded.expires;
    END LOOP;
    FOR i IN 1..cardinality(counters) LOOP
        IF amounts[i] > limits[i] AND amounts[i] > 0 THEN
            RAISE EXCEPTION USING ERRCODE = 'TW001', MESSAGE = counters[i];
        END IF;
        INSERT INTO toolwire_counters AS c VALUES (counters[i], amounts[i], counter_expires[i])
            ON CONFLICT (name) DO UPDATE SET
                value = CASE WHEN c.expires = 0 OR c.expires > at THEN c.value ELSE 0 END + excluded.value,
                expires = CASE WHEN c.expires = 0 OR c.expires > at THEN c.expires ELSE excluded.expires END
            WHERE amounts[i] <= 0 OR limits[i] IS NULL
                OR CASE WHEN c.expires = 0 OR c.expires > at THEN c.value ELSE 0 END + excluded.value <= limits[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'TW001', MESSAGE = counters[i];
        END IF;
    END LOOP;
    RETURN '';
EXCEPTION WHEN SQLSTATE 'TW001' THEN
    RETURN SQLERRM;
END
$body$"""


async def set_up(connection: Connection) -> None:
    """Creates what is missing. Raises ConfigError for tables of a toolwire that this one cannot work beside."""
    if await _version(connection) >= VERSION:
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await connection.execute(_VERSION_TABLE)
        if await _version(connection) < VERSION:
            await connection.execute(_TABLES)
            await connection.execute(_APPLY)
            await connection.execute("DELETE FROM toolwire_schema")
            await connection.execute("INSERT INTO toolwire_schema VALUES ($1, $1)", VERSION)


async def _version(connection: Connection) -> int:
    """0 if there are no tables yet."""
    if await connection.fetchval("SELECT to_regclass('toolwire_schema') IS NULL"):
        return 0
    row = await connection.fetchrow("SELECT version, compatible FROM toolwire_schema")
    if row is not None and row["compatible"] > VERSION:
        raise failures.newer_tables(row["version"], VERSION)
    return 0 if row is None else int(row["version"])
