"""Results: words, images and failures as a waiting run takes them."""

from __future__ import annotations

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.request.results import mcp_result, sendable, told
from toolwire.types import Loss, Media, Opaque, Text, ToolResult

PNG = b"\x89PNG\r\n\x1a\n0000"
IMAGE = Media(kind="image", mime="image/png", data=b64encode(PNG).decode())


def result(*parts: Text | Media | Opaque, is_error: bool = False) -> agent.McpResult:
    made = mcp_result(ToolResult(call_id="a", parts=parts, is_error=is_error))
    return agent.McpResult.FromString(made.SerializeToString())


def test_words_and_images_keep_their_order() -> None:
    made = result(Text(text="before"), IMAGE, Text(text="after"))
    before, image, after = made.success.content
    assert (before.text.text, after.text.text) == ("before", "after")
    assert (image.image.data, image.image.mime_type) == (PNG, "image/png")
    assert made.success.is_error is False


def test_a_failure_is_a_success_that_says_so() -> None:
    made = result(Text(text="no such file"), is_error=True)
    assert made.WhichOneof("result") == "success"
    assert made.success.is_error is True
    assert [item.text.text for item in made.success.content] == ["no such file"]


def test_nothing_is_an_empty_text() -> None:
    (item,) = result().success.content
    assert item.WhichOneof("content") == "text"


def test_what_cannot_be_shown_is_named_and_lost() -> None:
    losses: list[Loss] = []
    parts = (
        Media(kind="image", mime="image/png", data="%%%"),
        Media(kind="image", url="https://host/cat.png"),
        Media(kind="audio", mime="audio/wav", data=b64encode(b"RIFF0000WAVE").decode()),
        Media(kind="file", mime="text/plain", name="a.txt", data=b64encode(b"words").decode()),
    )
    broken, address, sound, file = map(str, told(parts, "messages[0]", losses))
    assert broken.startswith("[image not shown")
    assert "https://host/cat.png" in address
    assert sound.startswith("[audio not shown")
    assert file.endswith("words")
    assert [loss.feature for loss in losses] == ["media.image", "media.image", "media.audio", "media.file"]


def test_a_foreign_part_is_told_by_its_words_and_images() -> None:
    part = Opaque(
        dialect="messages",
        value={
            "type": "search_result",
            "title": "T",
            "content": [{"type": "image", "data": IMAGE.data, "mimeType": "image/png"}],
        },
    )
    words, image = result(part).success.content
    assert words.text.text == "T"
    assert image.image.data == PNG


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_text_can_be_sent(text: str) -> None:
    (item,) = result(Text(text=text)).success.content
    assert item.text.text == sendable(text)
    assert sendable(text).encode().decode() == sendable(text)


def test_halves_of_a_pair_that_stand_together_are_one_character() -> None:
    assert sendable("\ud83d\ude00") == "😀"
    assert sendable("a\ud83d") == "a\ufffd"
    assert sendable("é") == "é"
