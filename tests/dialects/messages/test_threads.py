"""What a thread remembers, and requests made whole from it."""

from __future__ import annotations

import json
from typing import Any

from toolwire.dialects.messages import decode_request, encode_request
from toolwire.dialects.messages.errors import encode_error
from toolwire.dialects.messages.threads import complete, messages_of, not_found, own_items, remembered
from toolwire.dialects.shared.memory import PastTurns
from toolwire.profiles import ANTHROPIC
from toolwire.types import Reasoning, Request, State
from toolwire.wire.exact_json import decode

TOOL = {"name": "look", "input_schema": {"type": "object"}}
SYSTEM = [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]
CONTENT = [
    {"type": "thinking", "thinking": "hm", "signature": "EqQB=="},
    {"type": "redacted_thinking", "data": "zzz"},
    {"type": "text", "text": "well"},
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": 1}},
]
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}


def read(headers: dict[str, str] | None = None, **members: Any) -> Request:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]} | members
    return decode_request(json.dumps(body).encode(), headers or {})


def continued(**members: Any) -> Request:
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    return read({"anthropic-beta": "a-1, message-threads-2026-08-12,b-2"}, thread=thread, **members)


def past() -> PastTurns:
    items = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": CONTENT}]
    return PastTurns(head={"system": SYSTEM, "tools": [TOOL]}, items=items, messages=messages_of(items))


def whole(request: Request) -> Request:
    return complete(request, own_items(request.source, {}), past(), looks_up=False)


def test_only_the_first_answer_keeps_system_and_tools() -> None:
    answer = {"id": "msg_1", "content": CONTENT, "stop_reason": "tool_use"}
    first = remembered(read(thread={"type": "create"}, system=SYSTEM, tools=[TOOL]), answer)
    assert first is not None
    assert first.head == {"system": SYSTEM, "tools": [TOOL]}
    assert first.output == [("msg_1", {"role": "assistant", "content": CONTENT})]
    later = remembered(continued(), answer)
    assert later is not None
    assert later.head == {}


def test_a_refused_answer_is_not_remembered() -> None:
    assert remembered(read(), {"id": "msg_1", "content": [], "stop_reason": "refusal"}) is None


def test_the_back_end_gets_it_whole_and_without_the_word_for_threads() -> None:
    request = whole(continued(messages=[RESULT]))
    body = decode(encode_request(request, ANTHROPIC).body)
    assert body["system"] == SYSTEM
    assert body["tools"] == [TOOL]
    assert body["messages"] == [{"role": "user", "content": "hi"}, {"role": "assistant", "content": CONTENT}, RESULT]
    assert "thread" not in body
    assert request.headers == {"anthropic-beta": "a-1,b-2"}
    assert request.extra == {}


def test_a_foreign_back_end_gets_the_same() -> None:
    request = whole(continued(messages=[RESULT]))
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    assert [tool.name for tool in request.tools] == ["look"]
    assert request.messages[2].parts[0] == Reasoning(text="hm", signature="EqQB==")


def test_a_paused_turn_resumes_without_text() -> None:
    body = decode(encode_request(whole(continued(messages=[])), ANTHROPIC).body)
    assert len(body["messages"]) == 2


def test_the_beta_alone_sends_no_empty_header() -> None:
    request = read({"anthropic-beta": "message-threads-2026-08-12"}, thread={"type": "create"})
    assert complete(request, own_items(request.source, {}), PastTurns(), looks_up=False).headers == {}


def test_a_missing_thread_is_reported_as_the_runners_read_it() -> None:
    error = not_found(State(previous="msg_1"), "msg_1")
    assert error.status == 404
    told = decode(encode_error(error, "req_1"))["error"]
    assert (told["type"], told["details"]) == ("not_found_error", {"error_code": "thread_not_found"})
