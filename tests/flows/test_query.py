"""Filters, search and pages of a list."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.flows.drafts import begin, finish, recorder
from toolwire.flows.query import FlowPage, FlowQuery


def page(count: int = 3, **query: Any) -> FlowPage:
    flows = recorder()
    for number in range(count):
        body = f'{{"text": "Line {number}\\nZ\u00fcrich"}}'.encode()
        draft = begin(flows, body, model=f"m{number}", backend="up" if number % 2 else "other")
        finish(draft, outcome="error" if number == 1 else "ok")
    return asyncio.run(flows.page(FlowQuery(**query)))


@pytest.mark.parametrize(
    ("query", "seqs"),
    [
        ({}, [3, 2, 1]),
        ({"backend": "up"}, [2]),
        ({"model": "m2"}, [3]),
        ({"outcome": "error"}, [2]),
        ({"dialect": "messages"}, []),
        ({"q": "LINE 1"}, [2]),
        ({"q": "z\u00fcrich"}, [3, 2, 1]),
        ({"q": "2\nz"}, [3]),
        ({"q": "m0"}, [1]),
        ({"q": "not there"}, []),
    ],
)
def test_filters_and_search(query: dict[str, str], seqs: list[int]) -> None:
    found = page(**query)
    assert [flow.seq for flow in found.flows] == seqs
    assert found.total == len(seqs)


def test_pages_continue_where_the_last_one_ended() -> None:
    first = page(5, limit=2)
    assert ([flow.seq for flow in first.flows], first.next, first.total) == ([5, 4], 4, 5)
    last = page(5, limit=3, before=4)
    assert ([flow.seq for flow in last.flows], last.next, last.total) == ([3, 2, 1], None, 5)


def test_a_secret_cannot_be_found_by_searching() -> None:
    flows = recorder("known-secret")
    finish(begin(flows, b"known-secret"))
    assert asyncio.run(flows.page(FlowQuery(q="known-s"))).total == 0


def test_large_flows_are_listed_in_order() -> None:
    """They are read in several batches."""
    flows = recorder(max_mb=64)
    for number in range(12):
        finish(begin(flows, b'{"n": %d, "text": "%s"}' % (number, b"x" * 1_000_000)))
    page = asyncio.run(flows.page(FlowQuery()))
    assert [flow.seq for flow in page.flows] == list(range(12, 0, -1))
    assert page.total == 12
    assert asyncio.run(flows.page(FlowQuery(q='"n": 7', limit=5))).total == 1
    assert [flow.seq for flow in asyncio.run(flows.page(FlowQuery(limit=5, before=9))).flows] == [8, 7, 6, 5, 4]
