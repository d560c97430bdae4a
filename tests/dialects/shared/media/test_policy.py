"""The ends a medium can come to: as it is, as text, as a placeholder, or refused; none of them silent."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.media.policy import MediaAdapter, MediaSupport, check_size, place_of
from toolwire.errors import BadRequest
from toolwire.profiles import ANTHROPIC, ANTHROPIC_API, Profile
from toolwire.types import Loss, Media, Message, Opaque, Part, Request, Source, Text, ToolResult

PNG = b64encode(b"\x89PNG\r\n\x1a\n....").decode()
PDF = b64encode(b"%PDF-1.7....").decode()
TEXT = b64encode(b"a,b\n1,2\n").decode()
EVERYTHING = MediaSupport(
    has_text_files=True,
    file_schemes=frozenset({"https"}),
    audio_types=frozenset({"audio/wav"}),
    has_detail=True,
    named_files=frozenset({"data"}),
)
BARE = MediaSupport(image_schemes=frozenset({"https"}))
FILES = Profile(has_files=True)


def sent(
    part: Part, takes: MediaSupport = EVERYTHING, profile: Profile = FILES, only_text: str = "", origin: str = "other"
) -> tuple[list[Any], list[Loss]]:
    losses: list[Loss] = []
    adapter = MediaAdapter(Request(model="m", messages=(), origin=origin), profile, "here", takes, losses)
    return adapter.adapt(part, "messages[0]", only_text), losses


@pytest.mark.parametrize(
    "media",
    [
        Media(kind="image", mime="image/png", data=PNG, detail="low"),
        Media(kind="image", url="http://a/b"),
        Media(kind="file", mime="application/pdf", data=PDF),
        Media(kind="file", mime="text/csv", data=TEXT, name="a.csv"),
        Media(kind="file", url="https://a/b.pdf", mime="application/pdf"),
        Media(kind="audio", mime="audio/wav", data="AAEC"),
    ],
)
def test_what_has_a_place_goes_as_it_is(media: Media) -> None:
    assert sent(media) == ([media], [])


@pytest.mark.parametrize(
    ("media", "why"),
    [
        (Media(kind="image", mime="image/bmp", data="AAEC"), "image/bmp is no type of image that this back end takes"),
        (Media(kind="image", url="http://a/b"), "only https addresses are taken"),
        (Media(kind="image", url="file:///etc/passwd"), "only https addresses are taken"),
        (Media(kind="image", file_id="file_1"), "a file id is known only to the provider that gave it"),
        (Media(kind="file", url="https://a/b.pdf"), "this dialect takes it as data only, and nothing is fetched here"),
        (Media(kind="audio", mime="audio/wav", data="AAEC"), "this dialect has no place for audio/wav"),
        (Media(kind="file", mime="application/zip", data="AAEC"), "this dialect has no place for application/zip"),
    ],
)
def test_what_has_none_is_named_and_lost(media: Media, why: str) -> None:
    pieces, losses = sent(media, BARE)
    assert pieces[0].text.startswith(f"[{media.kind} not shown: ")
    assert losses == [Loss(f"media.{media.kind}", "messages[0]", why)]


def test_files_by_their_address_are_pdfs_unless_any_are_taken() -> None:
    table = Media(kind="file", url="https://a/b.csv")
    assert sent(table)[1][0].why == "this dialect takes no text/csv by its address"
    taking = MediaSupport(file_schemes=frozenset({"https"}), has_any_url=True)
    assert sent(table, taking)[1] == []
    assert sent(table, taking, Profile())[1][0].why == "this back end takes no files"


def test_text_files_are_written_into_the_conversation() -> None:
    pieces, losses = sent(Media(kind="file", name="a.csv", data=TEXT), BARE)
    assert pieces == [Text(text="[file: a.csv, text/csv, 8 bytes]\na,b\n1,2\n\n[end of file: a.csv, text/csv]")]
    assert losses == [Loss("media.file", "messages[0]", "written as text")]
    long, losses = sent(Media(kind="file", mime="text/plain", data=b64encode(b"x" * 400_007).decode()), BARE)
    assert "[7 more characters not shown]" in long[0].text
    assert losses[0].why == "written as text, 7 characters at its end dropped"
    assert sent(Media(kind="file", mime="text/plain", data=""))[0][0].text.startswith("[file: text/plain, 0 bytes]")


def test_where_only_text_may_stand_text_files_still_can() -> None:
    pieces, losses = sent(Media(kind="image", mime="image/png", data=PNG), only_text="because")
    assert pieces == [Text(text="[image not shown: image/png, 12 bytes]")]
    assert losses == [Loss("media.image", "messages[0]", "because")]
    assert "1,2" in sent(Media(kind="file", name="a.csv", data=TEXT), only_text="because")[0][0].text


def test_members_of_a_medium_are_kept_or_reported_by_name() -> None:
    members = {
        "context": "from the archive",
        "citations": {"enabled": True},
        "cache_control": {"type": "ephemeral"},
        "transformations": None,
    }
    media = Media(kind="file", mime="application/pdf", data=PDF, name="a.pdf", detail="high", extra={"other": members})
    pieces, losses = sent(media, MediaSupport())
    assert pieces == [Text(text="[about a.pdf, application/pdf, 12 bytes] from the archive"), media]
    assert [loss.feature for loss in losses] == ["media.detail", "media.citations", "media.cache_control", "media.name"]


def test_a_cache_hint_of_another_dialect_is_carried_where_that_dialect_has_it() -> None:
    extra = {name: {"cache_control": {"type": "ephemeral"}} for name in ("chat", "messages")}
    media = Media(kind="image", mime="image/png", data=PNG, extra=extra)
    assert [loss.feature for loss in sent(media)[1]] == ["media.cache_control"]
    losses: list[Loss] = []
    request = Request(model="m", messages=(), origin="chat")
    assert MediaAdapter(request, ANTHROPIC, "messages", MediaSupport(), losses).adapt_all([media], "messages[0]") == [
        media
    ]
    assert losses == []


def test_broken_data_is_refused_with_its_place() -> None:
    with pytest.raises(BadRequest) as caught:
        sent(Media(kind="image", mime="image/png", data="!!"))
    assert (caught.value.status, caught.value.where) == (400, "messages[0]")
    assert caught.value.code == "invalid_media"


@pytest.mark.parametrize(
    "media",
    [Media(kind="image", data="!!"), Media(kind="file", file_id="f"), Media(kind="image", url="file:///x", mime="x/y")],
)
def test_between_ends_of_one_dialect_nothing_is_touched(media: Media) -> None:
    assert sent(media, BARE, origin="here", only_text="because") == ([media], [])


def test_foreign_parts_become_text_and_keep_their_images() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    value = {"type": "document", "title": "T", "source": {"type": "content", "content": [picture]}}
    pieces, losses = sent(Opaque(dialect="other", value=value))
    assert pieces == [Text(text="T"), Media(kind="image", mime="image/png", data=PNG)]
    assert [loss.feature for loss in losses] == ["part.document"]
    own = Opaque(dialect="here", value=value)
    assert sent(own) == ([own], [])


SMALL = Profile(name="small", max_image_bytes=9, max_file_bytes=6, max_images=2, max_request_bytes=10)
URL = "data:image/png;base64,aGk="


def image(size: int) -> Media:
    return Media(kind="image", mime="image/png", data="A" * (size // 3 * 4))


def adapter_to(profile: Profile) -> MediaAdapter:
    return MediaAdapter(Request(model="m", messages=(), origin="other"), profile, "here", EVERYTHING, [])


def test_one_medium_may_have_so_many_bytes() -> None:
    adapter = adapter_to(SMALL)
    adapter.adapt(image(9), "messages[0]")
    with pytest.raises(BadRequest) as caught:
        adapter.adapt(image(12), "messages[0].content[1]")
    assert caught.value.sentence() == (
        "messages[0].content[1]: the image has 12 bytes, and one may have 9 at the back end (small). "
        "Send a smaller one."
    )
    assert (caught.value.status, caught.value.code) == (400, "media_too_large")
    with pytest.raises(BadRequest, match="the audio has 9 bytes"):
        adapter.adapt(Media(kind="audio", mime="audio/wav", data="A" * 12), "x")


def test_a_request_may_have_so_many_images_and_bytes() -> None:
    adapter = adapter_to(SMALL)
    for _ in range(2):
        adapter.adapt(Media(kind="image", url="https://a"), "x")
    with pytest.raises(BadRequest, match="more than 2 images"):
        adapter.adapt(Media(kind="image", url="https://a"), "x")
    assert check_size(b"x" * 10, SMALL) == b"x" * 10
    with pytest.raises(BadRequest) as caught:
        check_size(b"x" * 11, SMALL)
    assert (caught.value.status, caught.value.code) == (413, "request_too_large")


def test_without_known_limits_everything_passes() -> None:
    adapter = adapter_to(Profile())
    for _ in range(2000):
        adapter.adapt(image(3000), "x")
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
def test_error_locations_are_those_of_the_client(dialect: str, body: dict[str, Any], place: str) -> None:
    request = DIALECTS[dialect].decode_request(json.dumps({"model": "m", **body}).encode(), {})
    parts = [part for message in request.messages for part in message.parts]
    media = [part for part in parts if isinstance(part, Media)]
    media += [
        part for result in parts if isinstance(result, ToolResult) for part in result.parts if isinstance(part, Media)
    ]
    assert [place_of(request, medium, "?") for medium in media] == [place]


def test_what_the_client_did_not_send_has_our_own_location() -> None:
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
