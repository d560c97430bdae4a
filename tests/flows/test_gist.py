"""Requests of one conversation are recognised, and each shows what the user wrote last."""

from __future__ import annotations

import json

from tests.flows.drafts import begin, end, recorder
from toolwire.dialects import DIALECTS
from toolwire.flows.gist import conversation_of
from toolwire.types import Message, Request, Text


def request(*texts: str, owner: str = "") -> Request:
    roles = ("user", "assistant")
    messages = [Message(role=roles[place % 2], parts=(Text(text=text),)) for place, text in enumerate(texts)]
    return Request(model="m", messages=tuple(messages), owner=owner)


def test_requests_that_repeat_a_history_are_one_conversation() -> None:
    first, second = conversation_of(request("hello")), conversation_of(request("hello", "hi", "more"))
    assert first == second != ""
    assert conversation_of(request("other")) != first
    assert conversation_of(request("hello", owner="someone else")) != first
    assert conversation_of(Request(model="m", messages=())) == ""


def test_the_body_is_known_after_the_request_is_freed() -> None:
    flows = recorder()
    body = {"model": "m", "messages": [{"role": "user", "content": "what is the weather?"}]}
    draft = begin(flows, json.dumps(body).encode())
    draft.decode = DIALECTS["chat"].decode_request
    draft.request = request("what is the weather?")
    expected = conversation_of(draft.request)
    summary = end(flows, draft).summary
    assert (summary.conversation, summary.preview) == (expected, "what is the weather?")


def test_a_body_that_is_too_large_or_no_request_needs_no_decoding() -> None:
    flows = recorder(max_body_kb=1)
    draft = begin(flows, b"x" * 5000)
    draft.decode = DIALECTS["chat"].decode_request
    draft.request = request("hello")
    assert end(flows, draft).summary.preview == "hello"
    broken = begin(flows, b"{no json")
    broken.decode = DIALECTS["chat"].decode_request
    assert end(flows, broken).summary.preview == ""
