"""Limits of back ends: refused in the asker's dialect, with the place the asker knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.media.limits import Tally, check_size, place_of
from toolwire.errors import BadRequest
from toolwire.profiles import ANTHROPIC_API, Profile
from toolwire.types import Media, Message, Request, Source, ToolResult

SMALL = Profile(name="small", max_image_bytes=9, max_file_bytes=6, max_images=2, max_request_bytes=10)
URL = "data:image/png;base64,aGk="


def image(size: int) -> Media:
    return Media(kind="image", mime="image/png", data="A" * (size // 3 * 4))


def test_one_medium_may_have_so_many_bytes() -> None:
    tally = Tally(SMALL)
    tally.add(image(9), lambda: "")
    with pytest.raises(BadRequest) as caught:
        tally.add(image(12), lambda: "messages[0].content[1]")
    assert caught.value.sentence() == (
        "messages[0].content[1]: the image has 12 bytes, and one may have 9 at the back end (small). "
        "Send a smaller one."
    )
    assert (caught.value.status, caught.value.code) == (400, "media_too_large")
    with pytest.raises(BadRequest, match="the file has 9 bytes"):
        tally.add(Media(kind="file", data="A" * 12), lambda: "x")


def test_a_request_may_have_so_many_images_and_bytes() -> None:
    tally = Tally(SMALL)
    for _ in range(2):
        tally.add(Media(kind="image", url="https://a"), lambda: "")
    with pytest.raises(BadRequest, match="more than 2 images"):
        tally.add(Media(kind="image", url="https://a"), lambda: "x")
    assert check_size(b"x" * 10, SMALL) == b"x" * 10
    with pytest.raises(BadRequest) as caught:
        check_size(b"x" * 11, SMALL)
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")


def test_without_known_limits_everything_passes() -> None:
    tally = Tally(Profile())
    for _ in range(2000):
        tally.add(image(3000), lambda: "")
    assert check_size(b"x" * 10_000, Profile()) == b"x" * 10_000


PLACES: list[tuple[str, dict[str, Any], str]] = [
    (
        "chat",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]}]},
        "messages[0].content[0]",
    ),
    (
        "chat",
        {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
            ]
        },
        "messages[1].content[0]",
    ),
    (
        "responses",
        {
            "instructions": "i",
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": URL}],
                }
            ],
        },
        "input[0].content[1]",
    ),
    (
        "responses",
        {
            "input": [
                {"role": "user", "content": "a"},
                {
                    "type": "function_call_output",
                    "call_id": "c",
                    "output": [{"type": "input_image", "image_url": URL}],
                },
            ]
        },
        "input[1].output[0]",
    ),
    (
        "messages",
        {
            "system": "s",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "a"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "t"},
                        {
                            "type": "tool_result",
                            "tool_use_id": "c",
                            "content": [
                                {
                                    "type": "image",
                                    "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
                                }
                            ],
                        },
                    ],
                },
            ],
        },
        "messages[1].content[1].content[0]",
    ),
    (
        "messages",
        {
            "max_tokens": 9,
            "system": [
                {"type": "text", "text": "t"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ],
            "messages": [{"role": "user", "content": "a"}],
        },
        "system[1]",
    ),
]


@pytest.mark.parametrize(("dialect", "body", "place"), PLACES)
def test_places_are_those_of_the_asker(dialect: str, body: dict[str, Any], place: str) -> None:
    request = DIALECTS[dialect].decode_request(json.dumps({"model": "m", **body}).encode(), {})
    parts = [part for message in request.messages for part in message.parts]
    media = [part for part in parts if isinstance(part, Media)]
    media += [
        part for result in parts if isinstance(result, ToolResult) for part in result.parts if isinstance(part, Media)
    ]
    assert [place_of(request, medium, "?") for medium in media] == [place]


def test_what_the_asker_did_not_send_has_our_own_place() -> None:
    medium = image(3)
    kept = Message(role="user", parts=(medium,), source=Source("chat", {}))
    for origin, source in (("chat", {"messages": []}), ("chat", {}), ("", {}), ("responses", {"input": "text"})):
        assert place_of(Request(model="m", messages=(kept,), origin=origin, source=source), medium, "?") == "?"
    head = Message(role="system", parts=(medium,), is_head=True, source=Source("responses", "x"))
    assert place_of(Request(model="m", messages=(head,), origin="responses"), medium, "?") == "?"
    assert place_of(Request(model="m", messages=()), medium, "?") == "?"


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_an_image_too_large_for_the_back_end_is_refused_before_it_travels(client: str) -> None:
    url = "data:image/png;base64," + "A" * (10 * (1 << 20) + 4)
    bodies: dict[str, Any] = {
        "chat": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]},
        "responses": {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]},
    }
    request = DIALECTS[client].decode_request(json.dumps({"model": "m", **bodies[client]}).encode(), {})
    with pytest.raises(BadRequest, match="the image has 7864323 bytes, and one may have 7864320") as caught:
        DIALECTS["messages"].encode_request(request, ANTHROPIC_API)
    assert caught.value.where.endswith(".content[0]")
    shown = json.loads(DIALECTS[client].encode_error(caught.value, "req_1"))
    assert shown["error"]["code"] == "media_too_large"
    assert shown["error"]["param"] == caught.value.where
