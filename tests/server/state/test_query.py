"""Queries and pages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.errors import BadRequest
from toolwire.memory.store import Item
from toolwire.server.state.query import StateQuery, list_of, page, query_in


def query_of(query: bytes = b"") -> StateQuery:
    return StateQuery(method="GET", path=("responses", "r", "input_items"), owner="o", query=query_in(query))


def items(count: int) -> list[Item]:
    return [Item(f"i{number}", json.dumps({"id": f"i{number}"}).encode()) for number in range(count)]


def read(query: bytes, count: int) -> Any:
    return json.loads(page(query_of(query), items(count)))


@given(st.integers(0, 30), st.integers(1, 7), st.sampled_from(["asc", "desc"]))
def test_pages_add_up_to_the_list(count: int, limit: int, order: str) -> None:
    seen: list[str] = []
    after = ""
    while True:
        found = read(f"limit={limit}&order={order}&after={after}".encode(), count)
        seen += [item["id"] for item in found["data"]]
        after = found["last_id"]
        if not found["has_more"]:
            break
    names = [item.id for item in items(count)]
    assert seen == (names if order == "asc" else names[::-1])


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=-1", "limit=9999999999999", "limit=²", "order=x"])
def test_what_is_wrong_is_refused(query: str) -> None:
    with pytest.raises(BadRequest):
        read(query.encode(), 3)


def test_too_much_text_is_refused() -> None:
    with pytest.raises(BadRequest):
        query_in(b"&".join(b"a=1" for _ in range(100)))


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert query_in(b"\xff=\xfe&limit=3")["limit"] == ["3"]


def test_only_known_parameters_are_relayed() -> None:
    wanted = query_of(b"include[]=a&include[]=b%26c&stream=true&key=secret&x=1").relayed_query()
    assert wanted == "?include%5B%5D=a&include%5B%5D=b%26c&stream=true"
    assert query_of().relayed_query() == ""


def test_an_empty_list() -> None:
    assert json.loads(list_of([])) == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}
