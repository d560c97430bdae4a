"""Words where nothing else can be shown, and foreign parts as words and pictures."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.shared.media.text import describe, in_units, opaque_text, placeholder, render, text_of
from toolwire.types import Loss, Media, Opaque, Text


def test_H098_what_cannot_be_shown_is_named_and_recorded() -> None:
    losses: list[Loss] = []
    words = placeholder(Media(kind="image", url="https://a/" + "x" * 999), "here", losses, "why")
    assert words.startswith("[image not shown: https://a/xxx")
    assert len(words) < 230
    assert losses == [Loss("media.image", "here", "why")]
    assert placeholder(Media(kind="audio"), "here", losses, "why") == "[audio not shown: unnamed]"


def test_names_types_and_sizes() -> None:
    media = Media(kind="file", name="a\nb", mime="image/bmp", data="A" * 4000)
    assert describe(media) == "a b, image/bmp, 3.0 kB"
    assert describe(Media(kind="file", file_id="file_1")) == "file_1"
    assert (in_units(999), in_units(5_250_000)) == ("999 bytes", "5.2 MB")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": "a"}]}, "T\nS\na"),
        ({"type": "document", "title": "T", "source": {"type": "content", "content": "words"}}, "T\nwords"),
        ({"type": "tool_reference", "tool_name": "f"}, "f"),
        ({"type": "container_upload", "file_id": "file_1"}, '{"type":"container_upload","file_id":"file_1"}'),
        ({"type": "x", "n": 1}, '{"type":"x","n":1}'),
        ({"type": 5}, '{"type":5}'),
        ({"content": {"source": {"url": "u"}}}, "u"),
    ],
)
def test_H101_foreign_parts_become_text(value: Any, text: str) -> None:
    losses: list[Loss] = []
    assert opaque_text(Opaque(dialect="messages", value=value), "here", losses) == text
    assert losses[0].why == "rendered as text"


@pytest.mark.parametrize(
    ("block", "media"),
    [
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            Media(kind="image", mime="image/png", data="aGk="),
        ),
        ({"type": "image", "source": {"type": "url", "url": "https://a"}}, Media(kind="image", url="https://a")),
        ({"type": "document", "source": {"type": "file", "file_id": "f"}}, Media(kind="file", file_id="f")),
        ({"type": "input_image", "image_url": "https://a"}, Media(kind="image", url="https://a")),
        ({"type": "image_url", "image_url": {"url": "https://a"}}, Media(kind="image", url="https://a")),
        ({"type": "input_file", "file_data": "aGk=", "filename": "a"}, Media(kind="file", data="aGk=", name="a")),
        (
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            Media(kind="image", mime="image/png", data="aGk="),
        ),
    ],
)
def test_pictures_inside_foreign_parts_keep_their_place(block: Any, media: Media) -> None:
    content = [{"type": "text", "text": "before"}, block, {"type": "text", "text": "after"}]
    part = Opaque(
        dialect="x", value={"type": "document", "title": "T", "source": {"type": "content", "content": content}}
    )
    losses: list[Loss] = []
    assert render(part, "here", losses) == [Text(text="T\nbefore"), media, Text(text="after")]
    assert opaque_text(part, "here", losses).startswith("T\nbefore\n[")
    assert len(losses) == 3


def test_words_are_whole_and_json_is_bounded() -> None:
    losses: list[Loss] = []
    assert len(opaque_text(Opaque(dialect="x", value={"text": "y" * 99_999}), "here", losses)) == 99_999
    shown = opaque_text(Opaque(dialect="x", value={"type": "v", "video_url": {"url": "z" * 99_999}}), "here", losses)
    assert len(shown) < 600
    assert "[99599 more characters not shown]" in shown
    many = opaque_text(Opaque(dialect="x", value={"n": list(range(9999))}), "here", losses)
    assert len(many) < 4100
    assert many.endswith("more characters not shown]")


def test_what_is_nested_too_deep_is_reported_as_missing() -> None:
    losses: list[Loss] = []
    deep: Any = {"text": "bottom"}
    for _ in range(900):
        deep = {"content": [deep]}
    words = opaque_text(Opaque(dialect="x", value={"text": "top", **deep}), "here", losses)
    assert words == "top\n[deeper values not shown]"
    nested: Any = 1
    for _ in range(900):
        nested = [nested]
    assert "deeper values not shown" in opaque_text(Opaque(dialect="x", value={"n": nested}), "here", losses)


def test_only_the_text_of_parts() -> None:
    losses: list[Loss] = []
    parts = (Text(text="a"), Media(kind="image", url="u"), Opaque(dialect="x", value={"text": "b"}))
    assert text_of(parts, "here", losses) == "a\nb"
