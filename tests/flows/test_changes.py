"""The first byte that differs from the previous request, in the order in which providers cache."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flows.drafts import begin, end, recorder
from toolwire.flows.changes import FlowChanges, changes_between

USER, ANSWER = {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}
BEFORE: dict[str, Any] = {"model": "m", "system": "be good", "tools": [{"name": "f"}], "messages": [USER]}


def changes(before: Any, after: Any, *, is_upstream: bool = False) -> FlowChanges | None:
    flows = recorder()
    found = []
    for body in (before, after):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        draft = begin(flows, b"{}" if is_upstream else data)
        if is_upstream:
            draft.exchange("messages", "POST", "http://host", {}, data)
        found.append(end(flows, draft))
    return changes_between(*found)


def test_a_request_that_only_appends_changes_nothing() -> None:
    found = changes(BEFORE, BEFORE | {"messages": [USER, ANSWER, USER]})
    assert found is not None
    assert found.first_change is None
    assert found.same_prefix_bytes > 50


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"model": "other"}, "model"),
        ({"tools": [{"name": "g"}]}, "tools"),
        ({"system": "be bad"}, "system"),
        ({"messages": [{"role": "user", "content": "hullo"}, ANSWER]}, "messages[0]"),
        ({"messages": []}, "messages[0]"),
        ({"system": "be bad", "messages": [ANSWER]}, "system"),
    ],
)
def test_the_first_change_is_named(change: dict[str, Any], part: str) -> None:
    for is_upstream in (False, True):
        found = changes(BEFORE, BEFORE | change, is_upstream=is_upstream)
        assert found is not None
        assert found.first_change is not None
        assert found.first_change.part == part


def test_the_offset_is_that_of_the_first_byte() -> None:
    found = changes(BEFORE, BEFORE | {"system": "be bad"})
    assert found is not None
    change = found.first_change
    assert change is not None
    assert (change.offset, change.before, change.after) == (5, '["be good"]', '["be bad"]')
    assert found.same_prefix_bytes == len('"m"' + '[{"name":"f"}]') + 5


def test_system_messages_of_chat_are_the_system_prompt() -> None:
    system = {"role": "system", "content": "be good"}
    found = changes({"messages": [system, USER]}, {"messages": [system | {"content": "today is Monday"}, USER]})
    assert found is not None
    assert found.first_change is not None
    assert found.first_change.part == "system"


def test_marks_for_the_cache_may_move() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}
    plain = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    found = changes({"messages": [marked]}, {"messages": [plain, ANSWER, marked]})
    assert found is not None
    assert found.first_change is None


@pytest.mark.parametrize("body", [b"no json", b"[]", b""])
def test_requests_that_cannot_be_read_are_not_compared(body: bytes) -> None:
    assert changes(body, BEFORE) is None
