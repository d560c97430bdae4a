"""Calls of clients older than tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects import chat
from toolwire.dialects.chat.old_calls import has_old_calls
from toolwire.profiles import PLAIN_CHAT
from toolwire.types import Request, ToolCall, ToolResult

ASKED = {"role": "user", "content": "hi"}
CALL = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
RESULT = {"role": "function", "name": "f", "content": "r"}
FUNCTIONS = [{"name": "f", "parameters": {"type": "object", "properties": {}}}]


def read(*items: Any, **members: Any) -> Request:
    body = {"model": "m", "messages": [ASKED, *items], **members}
    return chat.decode_request(json.dumps(body).encode(), {})


def written(request: Request) -> list[Any]:
    messages: list[Any] = json.loads(chat.encode_request(request, PLAIN_CHAT).body)["messages"]
    return messages


def ids(request: Request) -> list[str]:
    parts = [part for message in request.messages for part in message.parts]
    return [
        part.id if isinstance(part, ToolCall) else part.call_id
        for part in parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def test_regular_ones_stay_as_they_are_and_each_call_has_its_own_id() -> None:
    request = read(CALL, RESULT, CALL, RESULT, functions=FUNCTIONS)
    assert request.repaired == ()
    assert ids(request) == ["f", "f", "f_2", "f_2"]
    assert written(request) == [ASKED, CALL, RESULT, CALL, RESULT]


def test_without_declared_functions_they_are_tool_calls() -> None:
    request = read(CALL, RESULT)
    assert {loss.feature for loss in request.repaired} == {"history.form"}
    assert written(request)[1:] == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "f", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "f", "name": "f", "content": "r"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "items",
    [
        [CALL],
        [RESULT],
        [CALL, ASKED, RESULT],
        [CALL, {**RESULT, "name": "g"}],
        [CALL, RESULT, RESULT],
        [{**CALL, "function_call": {"name": "f", "arguments": {}}}, RESULT],
        [{**CALL, "function_call": "f"}, RESULT],
        [{**CALL, "function_call": {"name": "", "arguments": ""}}, {**RESULT, "name": ""}],
        [CALL, RESULT, {"role": "assistant", "tool_calls": [{"id": "c"}]}],
        [CALL, RESULT, {"role": "tool", "tool_call_id": "c"}],
        [5],
    ],
)
def test_irregular_ones(items: list[Any]) -> None:
    assert has_old_calls([ASKED, CALL, RESULT])
    assert not has_old_calls([ASKED, *items])
