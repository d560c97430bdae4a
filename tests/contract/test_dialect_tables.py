"""The tables of docs/dialects name every type and member of the official SDKs, and say what becomes of it.

A newer SDK that adds an item, a block, a tool, an event or a member fails here until its table names it.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

import pytest

from tests.contract.request_members import MEMBERS
from tests.contract.sdk.requests import member_outcome, outcome, sent
from tests.contract.sdk.samples import optional_members, sample, value_of
from tests.contract.sdk.tables import OTHERS, TABLES, Row, Table, lacking, page_tables, sdk_rows
from tests.contract.sdk.types import all_members, members, variants
from tests.dialects.codec_harness import body_in, make_request
from toolwire.errors import BadRequest
from toolwire.events import Noted, PartEnded
from toolwire.types import Loss, Opaque

WORDS = {"translated", "in part", "text", "lost", "refused", "served", "none"}
ANSWER_WORDS = {"translated", "lost", "own"}
# Stored, summarised or looked up by the gateway, which these tests do not run; tests of state and compaction cover them.
SERVED = {"compaction", "compaction_trigger", "item_reference"}
# What has no loss of its own: it says again what another member says, or it is served.
EXPLAINED = {
    "id": "of an item: no other dialect knows it",
    "status": "the item itself shows it",
    "defer_loading": "the tool is loaded at once",
    "environment": "the tool says the same",
    "max_output_length": "the call says the same",
}
EXPLAINED_IN = {
    ("messages", "tool_addition", "cache_control"): "a change of the list is no content that could be cached",
    ("messages", "tool_removal", "cache_control"): "the same",
}
PLACED = [table for table in TABLES if table.place is not None]
LISTED = [table for table in TABLES if table.place is None]


def rows_of(table: Table) -> dict[str, Row]:
    return page_tables(table.dialect)[table.heading]


def test_every_page_has_its_tables() -> None:
    for dialect in OTHERS:
        assert set(page_tables(dialect)) == {table.heading for table in TABLES if table.dialect == dialect}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_table_names_everything_that_the_sdk_has(table: Table) -> None:
    missing = lacking(rows_of(table), sdk_rows(table))
    assert missing == [], f"docs/dialects/{table.dialect}.md, {table.heading}: say what becomes of these"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_table_names_nothing_that_the_sdk_does_not_have(table: Table) -> None:
    found = sdk_rows(table)
    assert set(rows_of(table)) <= set(found)
    allowed = WORDS if len(next(iter(rows_of(table).values())).words) == 3 else ANSWER_WORDS
    assert {word for row in rows_of(table).values() for word in row.words} <= allowed


class _Inner(TypedDict):
    depth: int


class _Known(TypedDict):
    type: str
    inner: _Inner


def test_a_new_variant_or_member_is_found() -> None:
    table = {"known": Row(frozenset({"inner"}), ("lost",))}
    found = {"known": all_members(_Known) - {"type"}, "novel": set[str]()}
    assert lacking(table, found) == ["novel", "known.depth"]


def example(table: Table, tag: str) -> dict[str, Any]:
    """A request with the variant."""
    assert table.place is not None
    if table.is_fields:
        return table.place({tag: value_of(members(table.type)[tag].hint, tag, 0)})
    return table.place(sample(variants(table.type)[tag][0], tag))


@pytest.mark.parametrize("table", PLACED, ids=lambda table: table.name)
def test_the_table_says_what_happens(table: Table) -> None:
    wrong = []
    for tag, row in rows_of(table).items():
        for upstream, word in zip(OTHERS[table.dialect], row.words, strict=True):
            if tag not in SERVED and (found := outcome(table.dialect, example(table, tag), upstream)) != word:
                wrong.append(f"{tag} to {upstream}: {word} in the table, {found} in fact")
    assert wrong == []


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
def test_the_table_says_what_happens_to_members_of_a_request(dialect: str) -> None:
    wrong = []
    for name, row in page_tables(dialect)["Members of a request"].items():
        if name not in MEMBERS[dialect]:
            continue
        for upstream, word in zip(OTHERS[dialect], row.words, strict=True):
            if word != "served" and (found := member_outcome(dialect, name, upstream)) != word:
                wrong.append(f"{name} to {upstream}: {word} in the table, {found} in fact")
    assert wrong == []


@pytest.mark.parametrize("table", PLACED, ids=lambda table: table.name)
def test_its_own_provider_gets_it_unchanged(table: Table) -> None:
    for tag in rows_of(table):
        if tag in SERVED:
            continue
        given = example(table, tag)
        found = sent(table.dialect, given, table.dialect)
        body = json.loads(found.body)
        assert {name: body.get(name) for name in given} == given, tag
        assert not found.losses, tag


@pytest.mark.parametrize("table", [table for table in PLACED if not table.is_fields], ids=lambda table: table.name)
def test_no_optional_member_is_lost_without_a_report(table: Table) -> None:
    assert table.place is not None
    silent = []
    for tag, row in rows_of(table).items():
        kind = variants(table.type)[tag][0]
        plain = sample(kind, tag)
        for name, value in optional_members(kind, tag):
            if name in plain or name in EXPLAINED or (table.dialect, tag, name) in EXPLAINED_IN or value == {}:
                continue
            for upstream, word in zip(OTHERS[table.dialect], row.words, strict=True):
                if word not in ("translated", "in part"):  # all of it is reported as one loss
                    continue
                if not _shows(table.dialect, table.place(plain), table.place({**plain, name: value}), upstream):
                    silent.append(f"{tag}.{name} to {upstream}")
    assert silent == []


def _shows(dialect: str, before: dict[str, Any], after: dict[str, Any], upstream: str) -> bool:
    """Whether the change of the request reaches the back end, or is reported, or is refused."""
    try:
        changed = sent(dialect, after, upstream)
    except BadRequest:
        return True
    plain = sent(dialect, before, upstream)
    # An object that asks for nothing but defaults is no loss.
    return changed.body != plain.body or bool(changed.losses - plain.losses)


@pytest.mark.parametrize("item", page_tables("responses")["Output items"])
def test_other_clients_get_an_output_item_or_a_report(item: str) -> None:
    (kind, *_) = variants(next(table.type for table in TABLES if table.name == "responses: Output items"))[item]
    body = {"id": "resp_1", "status": "completed", "model": "m", "output": [sample(kind, item)]}
    _check_answer("responses", body, page_tables("responses")["Output items"][item].words[0])


@pytest.mark.parametrize("block", page_tables("messages")["Blocks of an answer"])
def test_other_clients_get_a_block_or_a_report(block: str) -> None:
    (kind, *_) = variants(next(table.type for table in TABLES if table.name == "messages: Blocks of an answer"))[block]
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [sample(kind, block)]}
    _check_answer("messages", body, page_tables("messages")["Blocks of an answer"][block].words[0])


def _check_answer(dialect: str, body: dict[str, Any], word: str) -> None:
    """A part that stays opaque is reported to clients of other dialects (calls/turn.py)."""
    events = body_in(dialect, json.dumps(body).encode(), make_request("chat"))
    parts = [event.part for event in events if isinstance(event, PartEnded)]
    assert any(isinstance(part, Opaque) for part in parts) == (word == "lost")
    assert parts


@pytest.mark.parametrize(
    "name", [name for name, row in page_tables("messages")["Members of an answer"].items() if row.words == ("lost",)]
)
def test_other_clients_learn_of_lost_members_of_an_answer(name: str) -> None:
    value: Any = (
        [{"type": "thinking_dropped", "path": "p", "reason": "r"}] if name == "input_transformations" else {"x": 1}
    )
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], name: value}
    events = body_in("messages", json.dumps(body).encode(), make_request("chat"))
    assert any(isinstance(event, Noted) and isinstance(event.note, Loss) for event in events)
