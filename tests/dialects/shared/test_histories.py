"""Histories that were decoded before: the next request of a conversation gets the same messages as without the cache."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.histories import SMALL, DecodedHistories
from toolwire.errors import BadRequest
from toolwire.types import Request
from toolwire.wire.fields import body_object

TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
FILLER = "x" * SMALL


def turn(number: int) -> list[dict[str, Any]]:
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": '{"n": 1.50}'}}
    return [
        {"role": "user", "content": f"é {number} ]}}"},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
        {"role": "tool", "tool_call_id": call["id"], "content": "[]"},
    ]


def history(turns: int, name: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": name + FILLER}]
    return messages + [message for number in range(turns) for message in turn(number)]


def decoded(body: bytes) -> Request:
    return DIALECTS["chat"].decode_request(body, {})


def alone(body: bytes) -> Request:
    """As decoded where nothing is known: the first member differs from that of every other body."""
    return decoded(b'{"stream": null, ' + body[1:])


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("order", [("messages", "tools"), ("tools", "messages")])
def test_a_growing_conversation_is_decoded_as_each_of_its_requests_alone(
    order: tuple[str, str], indent: int | None
) -> None:
    name = f"{order} {indent}"
    for turns in (1, 2, 2, 5, 3, 6):
        members = {"messages": history(turns, name), "tools": [TOOL]}
        body = json.dumps({"model": "m"} | {key: members[key] for key in order}, indent=indent).encode()
        found, expected = decoded(body), alone(body)
        assert found.messages == expected.messages
        assert found.tools == expected.tools
        assert found.source == json.loads(body, parse_float=lambda text: text) | {"messages": members["messages"]}
        assert found.wire == body


def test_known_messages_are_the_same_objects() -> None:
    bodies = [json.dumps({"model": "m", "messages": history(turns, "same")}).encode() for turns in (1, 2)]
    first, second = map(decoded, bodies)
    assert len(second.messages) == len(first.messages) + 3
    assert all(one is other for one, other in zip(first.messages, second.messages, strict=False))


def test_errors_name_the_place_in_the_whole_body() -> None:
    good = {"model": "m", "messages": history(1, "errors")}
    decoded(json.dumps(good).encode())
    bad = {**good, "messages": [*good["messages"], 5]}
    with pytest.raises(BadRequest) as caught:
        decoded(json.dumps(bad).encode())
    assert caught.value.where == "messages[4]"
    broken = json.dumps(good).encode()[:-1] + b",}"
    with pytest.raises(BadRequest) as caught:
        decoded(broken)
    with pytest.raises(BadRequest) as expected:
        body_object(broken)
    assert caught.value.message == expected.value.message


def test_a_second_list_of_messages_replaces_known_ones() -> None:
    known = json.dumps({"model": "m", "messages": history(1, "twice")})
    decoded(known.encode())
    twice = known[:-1] + ', "messages": [{"role": "user", "content": "other"}]}'
    assert [message.role for message in decoded(twice.encode()).messages] == ["user"]


def test_messages_elsewhere_in_the_body_are_not_taken_for_its_messages() -> None:
    messages = json.dumps(history(1, "elsewhere"))
    body = f'{{"model": "m", "metadata": {{"messages": {messages}}}, "messages": {messages}}}'
    for _ in range(3):
        found = decoded(body.encode())
        assert len(found.messages) == 4
        assert found.metadata == {"messages": json.loads(messages)}


def test_messages_that_declare_tools_are_read_again() -> None:
    flat = {"role": "system", "tools": [{"type": "function", "name": "late"}]}
    messages = [*history(1, "declaring"), flat]
    for count in (1, 2, 3):
        body = json.dumps({"model": "m", "messages": messages + turn(count)}).encode()
        found = decoded(body)
        assert [tool.name for tool in found.tools] == ["late"]
        assert found.messages == alone(body).messages
        assert found.source["messages"][4]["tools"][0]["function"] == {"name": "late"}


def test_small_bodies_are_not_stored_and_the_cache_is_bounded() -> None:
    cache = DecodedHistories()
    for number in range(200):
        values = history(1, str(number))
        body = json.dumps({"messages": values}).encode()
        messages = decoded(json.dumps({"model": "m", "messages": values}).encode()).messages
        top, known = cache.decode(body, body_object)
        assert known is None
        cache.add(body, top["messages"], messages, known)
        assert cache.decode(body, body_object)[1] is not None
    assert len(cache) == 64
    large = json.dumps({"messages": [{"role": "user", "content": "x" * (5 << 20)}]}).encode()
    cache.add(large, [], messages, None)
    assert cache.decode(large, body_object)[1] is None
    assert len(cache) == 64
