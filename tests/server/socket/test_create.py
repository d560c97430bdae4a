"""The messages of a client."""

from __future__ import annotations

import json

import pytest

from toolwire.errors import BadRequest
from toolwire.server.socket.create import Create, Steer, decode_create, read_message, request_headers


def test_members_of_the_connection_are_not_part_of_the_request() -> None:
    text = '{"type":"response.create","model":"m","input":[],"generate":true,"stream_id":"a","top_p":0.10}'
    found = read_message(text)
    assert isinstance(found, Create)
    assert found.body == b'{"model":"m","input":[],"top_p":0.10,"stream":true}'
    assert (found.stream_id, found.is_warm_up) == ("a", False)


@pytest.mark.parametrize("members", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
def test_a_warm_up_is_asked_for_in_two_ways(members: dict[str, object]) -> None:
    found = read_message(json.dumps({"type": "response.create", "previous_response_id": "resp_1", **members}))
    assert isinstance(found, Create)
    assert found.is_warm_up
    assert found.previous == "resp_1"


def test_a_steer_is_read_with_its_input() -> None:
    assert read_message('{"type":"response.steer","input":"x","stream_id":"l"}') == Steer("l", "x")


@pytest.mark.parametrize("lane", ['""', "7", '"a b"', '"' + "a" * 257 + '"'])
def test_a_lane_has_a_plain_name(lane: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_message(f'{{"type":"response.create","stream_id":{lane}}}')
    assert caught.value.code == "invalid_stream_id"


def test_a_request_without_a_store_has_a_state_of_its_connection() -> None:
    request = decode_create(b'{"model":"m","input":"x","store":false,"stream":true}', {})
    assert request.state is not None
    assert not request.state.is_kept


def test_the_feature_of_the_connection_is_not_forwarded() -> None:
    given = {"openai-beta": "responses_websockets=2026-02-06, other=1", "sec-websocket-key": "k", "session-id": "s"}
    assert request_headers(given) == {"openai-beta": "other=1", "session-id": "s"}
    assert request_headers({"openai-beta": "responses_websockets=2026-02-06"}) == {}
