"""Results of MCP servers as parts."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace as Made
from typing import Any

import pytest

from toolwire.tools.mcp.contents import output_of, sendable
from toolwire.types import Media, Text


def result(*content: Any, structured: Any = None, is_error: bool = False) -> Any:
    return Made(content=list(content), structured_content=structured, is_error=is_error)


def text(words: str) -> Any:
    return Made(type="text", text=words)


def texts(given: Any) -> list[str]:
    return [part.text for part in output_of(given).parts if isinstance(part, Text)]


def test_errors_stay_errors() -> None:
    output = output_of(result(text("no"), is_error=True))
    assert output.is_error
    assert output.parts == (Text(text="no"),)


def test_an_empty_result_is_reported_as_no_output() -> None:
    assert texts(result()) == ["(no output)"]
    assert texts(result(text(""))) == ["(no output)"]


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_media(kind: Any) -> None:
    block = Made(type=kind, mime_type=f"{kind}/x", data="AAE=")
    assert output_of(result(block)).parts == (Media(kind=kind, mime=f"{kind}/x", data="AAE="),)


@pytest.mark.parametrize(("data", "words"), [("not base64!", "could not be read"), ("", "without data")])
def test_invalid_media_become_text(data: str, words: str) -> None:
    (said,) = texts(result(Made(type="image", mime_type="image/png", data=data)))
    assert words in said


def test_resources() -> None:
    inner = Made(uri="file:///a.txt", text="body", mime_type=None)
    assert texts(result(Made(type="resource", resource=inner))) == ["[resource file:///a.txt]\nbody"]
    for mime, kind in (("image/png", "image"), ("audio/wav", "audio"), ("application/pdf", "file"), (None, "file")):
        blob = Made(type="resource", resource=Made(uri="file:///x/a.bin", blob="AAE=", mime_type=mime))
        assert output_of(result(blob)).parts == (Media(kind=kind, mime=mime or "", data="AAE=", name="a.bin"),)  # type: ignore[arg-type]
    link = Made(type="resource_link", title=None, name="n", uri="x://y", description="about")
    assert texts(result(link)) == ["[resource n at x://y]: about"]


def test_an_image_is_not_repeated_by_structured_content() -> None:
    """The reference server for files sends its blocks a second time."""
    image = Made(type="image", mime_type="image/png", data="AAE=")
    copy = {"type": "image", "data": "AAE=", "mimeType": "image/png"}
    assert texts(result(image, structured={"content": [copy]})) == []
    assert texts(result(image, structured={"content": [{**copy, "data": "AAI="}]})) != []
    note = {"type": "text", "text": "a note"}
    assert texts(result(image, text("a note"), structured={"content": [copy, note]})) == ["a note"]


def test_a_long_text_is_not_repeated_among_other_members() -> None:
    long = "line\n" * 40
    assert texts(result(text(long), structured={"content": long, "lines": 40})) == [long, '{"lines":40}']
    assert texts(result(text("ok"), structured={"status": "ok", "lines": 4})) == ["ok", '{"status":"ok","lines":4}']


def test_unknown_kinds_are_named() -> None:
    assert texts(result(Made(type="hologram"))) == ['[a part of the kind "hologram", which cannot be shown]']


@pytest.mark.parametrize(
    ("structured", "said", "told"),
    [
        ({"a": 1}, ["summary"], ["summary", '{"a":1}']),
        ({"a": 1}, ['{ "a": 1.0 }'], ['{ "a": 1.0 }']),
        ({"a": 1}, [], ['{"a":1}']),
        ({"result": 5}, ["5"], ["5"]),
        ({"result": "words"}, ["words"], ["words"]),
        ({"result": ["a", "b"]}, ["a", "b"], ["a", "b"]),
        ({"result": [1, 2]}, ["1", "2"], ["1", "2"]),
        ({"result": 6}, ["5"], ["5", '{"result":6}']),
        ({"content": "words"}, ["words"], ["words"]),
        ({"content": "a\nb"}, ["a", "b"], ["a", "b"]),
        ({"content": "words", "is_cut": True}, ["words"], ["words", '{"content":"words","is_cut":true}']),
        ({"content": "other"}, ["words"], ["words", '{"content":"other"}']),
        ({}, ["words"], ["words", "{}"]),
    ],
)
def test_structured_content_is_not_repeated(structured: Any, said: list[str], told: list[str]) -> None:
    assert texts(result(*map(text, said), structured=structured)) == told


def test_arguments_can_be_sent() -> None:
    assert sendable({"a": [Decimal("1.5"), "lone \ud800"], "b\udfff": 1}) == {"a": [1.5, "lone ?"], "b?": 1}
    with pytest.raises(ValueError, match="too large"):
        sendable({"a": Decimal("1e999")})
