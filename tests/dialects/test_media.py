"""Media and foreign parts: addresses both ways, and words where nothing else can be shown."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.media import data_url, from_url, opaque_text, placeholder, split_data_url, text_of
from toolwire.types import Loss, Media, Opaque, Text


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("data:image/png;base64,aGk=", ("image/png", "aGk=")),
        ("data:text/plain;charset=utf-8;base64,aGk=", ("text/plain", "aGk=")),
        ("data:;base64,aGk=", ("", "aGk=")),
        ("data:image/png,raw", None),
        ("data:image/png;base64", None),
        ("https://a", None),
        ("", None),
    ],
)
def test_data_urls(url: str, parts: tuple[str, str] | None) -> None:
    assert split_data_url(url) == parts
    medium = from_url("image", url, detail="low")
    assert (medium.data is None) == (parts is None)
    assert medium.detail == "low"
    if parts is None:
        assert data_url(medium) == url


def test_addresses() -> None:
    assert data_url(Media(kind="file", data="aGk=")) == "data:application/octet-stream;base64,aGk="
    assert data_url(Media(kind="file", file_id="f")) is None


def test_H098_what_cannot_be_shown_is_named_and_recorded() -> None:
    losses: list[Loss] = []
    assert (
        placeholder(Media(kind="image", url="https://a/" + "x" * 999), "here", losses, "why")[:30]
        == "[image not shown: https://a/xxx"[:30]
    )
    assert len(placeholder(Media(kind="image", url="x" * 999), "here", losses, "why")) < 230
    assert losses[0] == Loss("media.image", "here", "why")
    assert placeholder(Media(kind="audio"), "here", losses, "why") == "[audio not shown: unnamed]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": "a"}]}, "T\nS\na"),
        ({"type": "tool_reference", "tool_name": "f"}, "f"),
        ({"type": "x", "n": 1}, '{"type":"x","n":1}'),
        ({"type": 5}, '{"type":5}'),
        ({"content": {"source": {"url": "u"}}}, "u"),
    ],
)
def test_foreign_parts_in_words(value: Any, text: str) -> None:
    losses: list[Loss] = []
    assert opaque_text(Opaque(dialect="messages", value=value), "here", losses) == text
    assert losses[0].why == "rendered as text"


def test_words_are_bounded_in_length_and_depth() -> None:
    losses: list[Loss] = []
    assert len(opaque_text(Opaque(dialect="x", value={"text": "y" * 99_999}), "here", losses)) == 4000
    deep: Any = {"text": "bottom"}
    for _ in range(900):
        deep = {"content": [deep]}
    assert "bottom" not in opaque_text(Opaque(dialect="x", value={"text": "top", **deep}), "here", losses)


def test_only_the_words_of_parts() -> None:
    losses: list[Loss] = []
    parts = (Text(text="a"), Media(kind="image", url="u"), Opaque(dialect="x", value={"text": "b"}))
    assert text_of(parts, "here", losses) == "a\nb"
