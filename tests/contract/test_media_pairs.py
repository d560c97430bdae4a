"""Images, files and audio between every two dialects: unchanged, as text, or named; never silently dropped (H098-H101)."""

from __future__ import annotations

import json
import re
import time
import types
import typing
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from anthropic.types import MessageParam, TextBlockParam
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam

from tests.contract.sourceless import without_sources
from tests.dialects.codec_harness import NAMES
from tests.thorough import examples
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.profiles import OPENAI_CHAT

from .media_requests import PLACES, TARGETS, Sent, arrived, end_of, part_of, request_with

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "media.md"
PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF-1.7\n"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

KINDS: dict[str, Sent] = {
    "PNG, JPEG, GIF or WebP as data": Sent("image", "image/png", PNG + b"\0\1"),
    "another image (SVG, BMP, HEIC, ...) as data": Sent("image", "image/bmp", b"\0\1\2"),
    "an image at an https address": Sent("image", "", url="https://a.example/b"),
    "an image at an http address": Sent("image", "", url="http://a.example/b"),
    "an image at any other address": Sent("image", "", url="file:///etc/passwd"),
    "an image by its file id": Sent("image", "", file_id="file_7"),
    "a PDF as data": Sent("file", "application/pdf", PDF + b"\0", name="a.pdf"),
    "a PDF at an https address": Sent("file", "", url="https://a.example/b.pdf"),
    "a file by its id": Sent("file", "", file_id="file_8"),
    "a text file (plain, CSV, Markdown, JSON, code)": Sent("file", "text/plain", b"some words\n", name="a.txt"),
    "a text file at an https address": Sent("file", "", url="https://a.example/b.csv"),
    "an office document as data": Sent("file", DOCX, b"PK\x03\x04\0", name="a.docx"),
    "another file as data": Sent("file", "application/zip", b"PK\x03\x04\1", name="a.zip"),
    "WAV or MP3 as data": Sent("audio", "audio/wav", b"RIFF....WAVEfmt "),
}
each_pair = pytest.mark.parametrize(
    ("client", "target"), [(client, target) for client in NAMES for target in TARGETS if TARGETS[target][0] != client]
)


def ends(client: str, target: str, place: str, sent: Sent) -> str | None:
    part = part_of(client, sent)
    if part is None:
        return None
    return end_of(sent, arrived(request_with(client, {place: [part]}), *TARGETS[target]))


def table() -> dict[str, dict[str, str]]:
    """The document's table: medium -> target -> end."""
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("| medium |"))
    heads = [cell.strip() for cell in lines[start].strip("|").split("|")][1:]
    rows: dict[str, dict[str, str]] = {}
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[name] = dict(zip(heads, cells, strict=True))
    return rows


def test_the_document_lists_every_kind_and_every_target() -> None:
    assert list(table()) == list(KINDS)
    assert all(list(row) == list(TARGETS) for row in table().values())


@each_pair
@pytest.mark.parametrize("place", ["user", "result"])
def test_H098_H100_each_medium_arrives_as_documented(client: str, target: str, place: str) -> None:
    for name, sent in KINDS.items():
        end = ends(client, target, place, sent)
        assert end in (None, table()[name][target]), f"{name} in the {place}"


@each_pair
@pytest.mark.parametrize("place", ["assistant", "system"])
def test_media_are_named_where_only_text_is_allowed(client: str, target: str, place: str) -> None:
    for name, sent in KINDS.items():
        end = ends(client, target, place, sent)
        if target == "Responses" and place == "system":
            assert end in (None, table()[name][target])
        else:
            assert end in (None, "text" if sent.mime == "text/plain" else "named"), name


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("place", PLACES)
def test_within_one_dialect_everything_is_forwarded_unchanged(client: str, place: str) -> None:
    for sent in KINDS.values():
        if (part := part_of(client, sent)) is None:
            continue
        request = request_with(client, {place: [part]})
        for target, (dialect, profile) in TARGETS.items():
            if dialect == client and (client, place) != ("chat", "result"):
                assert arrived(request, dialect, profile).body == {**request.source, "model": "m"}, target
        if place in ("user", "result"):
            again = arrived(without_sources(request), *next(one for one in TARGETS.values() if one[0] == client))
            assert end_of(sent, again) == "as it is"
            moved = ["result.media"] if (client, place) == ("chat", "result") else []  # results are text there
            assert [loss.feature for loss in again.losses] == moved


@each_pair
def test_H098_H099_results_stay_together_and_media_follow_them(client: str, target: str) -> None:
    part = part_of(client, KINDS["PNG, JPEG, GIF or WebP as data"])
    assert part is not None
    body = arrived(request_with(client, {"result": [part, part]}), *TARGETS[target]).body
    if TARGETS[target][0] == "chat":
        roles = [message["role"] for message in body["messages"]]
        assert roles[-4:] == ["assistant", "tool", "tool", "user"]
        assert [part["type"] for part in body["messages"][-1]["content"]] == ["text", "image_url", "image_url"]
        assert "call_1" in body["messages"][-1]["content"][0]["text"]
        strings = [isinstance(message["content"], str) for message in body["messages"][-3:-1]]
        assert strings == ([True, True] if target == "Chat, any server" else [False, True])
    elif target == "Responses":
        assert [part["type"] for part in body["input"][-2]["output"]] == ["input_text", "input_image", "input_image"]
        assert body["input"][-1]["output"] == "plain"
    elif target == "Gemini":
        kinds = [next(iter(part)) for part in body["contents"][-1]["parts"]]
        assert kinds == ["functionResponse", "functionResponse", "text", "inlineData", "inlineData"]
        assert "call_1" in body["contents"][-1]["parts"][2]["text"]
    else:
        (first, second) = body["messages"][-1]["content"]
        assert [block["type"] for block in first["content"]] == ["text", "image", "image"]
        assert second["content"] == "plain"


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_failed_result_holds_text_only_in_messages(client: str) -> None:
    part = part_of(client, KINDS["PNG, JPEG, GIF or WebP as data"])
    assert part is not None
    wire = json.dumps(request_with(client, {"result": [part]}).source).replace(
        "the result", "Error: the tool call failed.\\nx"
    )
    found = arrived(DIALECTS[client].decode_request(wire.encode(), {}), *TARGETS["Messages"])
    failed, plain, label, image = found.body["messages"][-1]["content"]
    assert (failed["is_error"], failed["content"], plain["content"]) == (True, "x", "plain")
    assert "call_1" in label["text"]
    assert image["type"] == "image"


BLOCKS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "search result": (
        {
            "type": "search_result",
            "title": "T1",
            "source": "https://s",
            "content": [{"type": "text", "text": "found it"}],
        },
        ["T1", "https://s", "found it"],
    ),
    "document of blocks": (
        {
            "type": "document",
            "title": "T2",
            "citations": {"enabled": True},
            "source": {
                "type": "content",
                "content": [
                    {"type": "text", "text": "one"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": b64encode(PNG).decode()},
                    },
                ],
            },
        },
        ["T2", "one"],
    ),
    "container upload": ({"type": "container_upload", "file_id": "file_9"}, ["file_9"]),
}


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "Messages"])
@pytest.mark.parametrize("place", ["user", "result"])
@pytest.mark.parametrize("name", BLOCKS)
def test_H101_blocks_that_only_one_dialect_has(target: str, place: str, name: str) -> None:
    block, words = BLOCKS[name]
    found = arrived(request_with("messages", {place: [block]}), *TARGETS[target])
    assert all(word in found.words for word in words)
    assert len(found.media) == (1 if name == "document of blocks" else 0)
    assert f"part.{block['type']}" in [loss.feature for loss in found.losses]


@each_pair
@pytest.mark.parametrize("broken", ["!!", "aaaaa", "a=aa"])
def test_invalid_data_is_rejected_with_its_location(client: str, target: str, broken: str) -> None:
    part = part_of(client, Sent("image", "image/png", PNG))
    wire = json.dumps(part).replace(b64encode(PNG).decode(), broken)
    request = request_with(client, {"user": [json.loads(wire)]})
    with pytest.raises(BadRequest) as caught:
        arrived(request, *TARGETS[target])
    places = {
        "chat": "messages[1].content[1]",
        "responses": "input[1].content[1]",
        "messages": "messages[0].content[1]",
    }
    assert caught.value.where == places[client]
    own = next(one for one in TARGETS.values() if one[0] == client)
    assert arrived(request, *own).body["model"] == "m"


BYTES = st.binary(min_size=1, max_size=40)
ANY = st.one_of(
    st.builds(lambda raw: Sent("image", "image/png", PNG + raw), BYTES),
    st.builds(lambda raw: Sent("image", "image/jpg", b"\xff\xd8\xff" + raw), BYTES),
    st.builds(lambda raw: Sent("image", "image/x-odd", b"\0" + raw), BYTES),
    st.builds(lambda raw: Sent("file", "application/pdf", PDF + raw, name="p.pdf"), BYTES),
    st.builds(lambda raw: Sent("file", "application/x-odd", b"\0" + raw, name="odd.bin"), BYTES),
    st.builds(lambda text: Sent("file", "text/plain", text.encode(), name="t.txt"), st.text("ab\né", min_size=1)),
    st.builds(lambda path: Sent("image", "", url=f"https://i.example/{path}"), st.text("abc/.", max_size=9)),
    st.builds(lambda path: Sent("file", "", url=f"http://f.example/{path}"), st.text("abc/.", max_size=9)),
    st.builds(lambda name: Sent("file", "", file_id=f"file_{name}"), st.text("abc", min_size=1, max_size=5)),
)


@given(st.lists(st.tuples(st.sampled_from(PLACES), ANY), min_size=1, max_size=6), st.sampled_from(NAMES), st.data())
@examples(150)
def test_nothing_disappears(media: list[tuple[str, Sent]], client: str, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(sorted(TARGETS)))
    parts: dict[str, list[Any]] = {}
    told: list[Sent] = []
    for place, sent in media:
        if (part := part_of(client, sent)) is not None:
            parts.setdefault(place, []).append(part)
            told.append(sent)
    request = request_with(client, parts)
    found = arrived(request, *TARGETS[target])
    for sent in told:
        end_of(sent, found)
    if TARGETS[target][0] != client:
        kept = len(found.media) + found.words.count("not shown:") + found.words.count("[end of file:")
        assert kept == len(told)
        check_shape(TARGETS[target][0], found.body)


def check_shape(dialect: str, body: dict[str, Any]) -> None:
    if dialect == "chat":
        assert all(fits(message, ChatCompletionMessageParam) for message in body["messages"]), body
    elif dialect == "responses":
        assert all(fits(item, ResponseInputItemParam) for item in body["input"]), body
    elif dialect == "gemini":
        held = {"text", "inlineData", "fileData", "functionCall", "functionResponse"}
        parts = [part for content in body["contents"] for part in content["parts"]]
        assert all(len(part.keys() & held) == len(part) == 1 for part in parts), body
    else:
        assert all(fits(message, MessageParam) for message in body["messages"]), body
        assert fits(body["system"], str | Iterable[TextBlockParam]), body


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is as the vendor's own types for requests have it, members that they do not know included."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (typing.Required, typing.NotRequired, typing.Annotated):
        return fits(value, inside[0])
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inside)
    if origin is Literal:
        return value in inside
    if typing.is_typeddict(kind) or hasattr(kind, "__required_keys__"):
        hints = typing.get_type_hints(kind, include_extras=True)
        if (
            not isinstance(value, dict)
            or not value.keys() <= hints.keys()
            or not kind.__required_keys__ <= value.keys()
        ):
            return False
        return all(fits(item, hints[name]) for name, item in value.items())
    if origin is dict or kind is dict:
        return isinstance(value, dict)
    if origin is not None and inside:
        return isinstance(value, list) and all(fits(item, inside[0]) for item in value)
    return value is None if kind is type(None) else kind in (Any, object) or isinstance(value, kind)


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_work_is_linear_in_the_size_of_an_image(client: str, target: str) -> None:
    profile = OPENAI_CHAT if target == "chat" else next(one[1] for one in TARGETS.values() if one[0] == target)

    def cost(size: int) -> float:
        part = part_of(client, Sent("image", "image/png", PNG + bytes(size)))
        assert part is not None
        wire = json.dumps(request_with(client, {"result": [part]}).source).encode()
        times = []
        for _ in range(3):
            start = time.process_time()
            DIALECTS[target].encode_request(DIALECTS[client].decode_request(wire, {}), profile)
            times.append(time.process_time() - start)
        return min(times)

    assert cost(2_000_000) < 16 * cost(250_000) + 0.02


def test_the_document_names_the_limits_in_force() -> None:
    words = DOCUMENT.read_text(encoding="utf-8")
    for number in re.findall(r"`max_\w+` (\d+)", words):
        assert int(number) in (7_864_320, 600, 32 << 20, 50_000_000, 1500)
