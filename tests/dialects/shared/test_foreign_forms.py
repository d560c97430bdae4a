"""What a value in the form of another dialect is."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.shared.foreign_forms import as_text, has_foreign_members, has_leftovers, is_foreign, medium_in
from toolwire.types import Media


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "input_text", "text": "a"}, True),
        ({"type": "tool_use"}, True),
        ({"type": "mystery"}, True),
        ({"type": "markdown", "text": "a"}, True),
        ({"toolUse": {}}, True),
        ({"type": "video_url"}, False),
        ({"type": "bash_code_execution_tool_result"}, False),
        ({"type": "server_tool_use"}, False),
        ({"type": "container_upload"}, False),
        ({"type": "thinking", "thinking": [{"type": "text", "text": "Mistral"}]}, False),
        ({"type": "thinking", "thinking": "Messages"}, True),
        ({"executableCode": {}}, False),
    ],
)
def test_parts_of_other_dialects_differ_from_new_ones_of_the_provider(part: dict[str, Any], expected: bool) -> None:
    assert is_foreign(part) is expected


def test_types_that_the_dialect_knows_elsewhere_are_its_own() -> None:
    assert not is_foreign({"type": "tool_use"}, frozenset({"tool_use"}))


def test_members_of_an_answer_and_of_another_dialect() -> None:
    assert has_leftovers({"usage": {}})
    assert has_leftovers({"name": None})
    assert not has_leftovers({"name": "x"})
    assert has_foreign_members({"tool_calls": []})
    assert not has_foreign_members({"role": "user", "content": "x"})


@pytest.mark.parametrize(("value", "text"), [("a", "a"), (None, ""), (5, "5"), ({"a": [True]}, '{"a":[true]}')])
def test_any_value_is_text(value: Any, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("part", "medium"),
    [
        ({"type": "image_url", "image_url": {"url": "https://a"}}, Media(kind="image", url="https://a")),
        ({"type": "input_image", "image_url": "data:image/png;base64,aGk="}, Media(kind="image", mime="image/png", data="aGk=")),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}, Media(kind="image", mime="image/png", data="aGk=")),
        ({"inlineData": {"mimeType": "image/png", "data": "aGk="}}, Media(kind="image", mime="image/png", data="aGk=")),
        ({"type": "image", "data": "aGk=", "mimeType": "image/png"}, Media(kind="image", mime="image/png", data="aGk=")),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, Media(kind="image", file_id="f")),
        ({"type": "image_url", "image_url": {}}, None),
        ({"type": "image"}, None),
    ],
)  # fmt: skip
def test_media_of_every_dialect(part: dict[str, Any], medium: Media | None) -> None:
    assert medium_in(part, "image") == medium
