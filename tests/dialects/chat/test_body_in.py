"""Whole answers of Chat Completions servers that are not as documented."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.playing import body_in, failure, terminal
from tests.dialects.wires import TOP
from toolwire.dialects.chat.body_in import body_events, is_counted, usage_in
from toolwire.events import Finished

MESSAGE = {"role": "assistant", "content": "a"}


def body(**members: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": MESSAGE, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    return {**TOP, "object": "chat.completion", "choices": [choice], "usage": usage, **members}


def test_a_regular_body_is_regular() -> None:
    events, irregular = body_events(body(), is_single=True)
    assert irregular == ""
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    "members",
    [
        {"usage": {"prompt_tokens": -1, "completion_tokens": 5}},
        {"usage": {"prompt_tokens": 9, "completion_tokens": True}},
        {"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "delta": MESSAGE, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "STOP"}]},
    ],
)
def test_what_is_wrong_in_it_is_said_and_does_no_harm(members: dict[str, Any]) -> None:
    events, irregular = body_events(body(**members), is_single=True)
    assert irregular
    assert isinstance(events[-1], Finished)
    assert events[-1].choices[0].reason == "stop"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"error": {"message": "busy"}}, "busy"),
        ({"choices": None, "detail": "busy"}, "busy"),
        ({"choices": [{"index": 0, "finish_reason": "stop"}]}, "no message"),
        ({"choices": [{"index": 0, "message": MESSAGE, "finish_reason": "abort"}]}, "with an error"),
    ],
)
def test_H114_H154_an_error_in_a_200_is_an_error(members: dict[str, Any], words: str) -> None:
    events = body_in("chat", json.dumps(body(**members)).encode())
    assert words in failure(events).error.message
    assert terminal(events) is events[-1]


def test_counts_are_whole_numbers() -> None:
    assert is_counted({"prompt_tokens": 0, "completion_tokens": 5})
    assert not is_counted({"prompt_tokens": 1 << 60, "completion_tokens": 5})
    assert usage_in({"prompt_tokens": "9", "completion_tokens": 5}).input == 0
