"""Images and files in prompts."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.agent_harness import IN_PROCESS, MODEL, script
from toolwire import Agent, BadRequest, Media, Text, file, image
from toolwire.agent import prompt as prompts
from toolwire.agent.prompt import message_of

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_an_image_from_a_path_bytes_and_addresses(tmp_path: Path) -> None:
    path = tmp_path / "dot.jpg"  # the name is wrong; the first bytes decide
    path.write_bytes(PNG)
    for source in (path, str(path), PNG):
        assert image(source) == Media(kind="image", mime="image/png", data=base64.b64encode(PNG).decode())
    assert image("https://a.example/b.png", detail="low").url == "https://a.example/b.png"


def test_files_have_a_type_and_a_name(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n")
    found = file(path)
    assert (found.kind, found.mime, found.name) == ("file", "text/csv", "data.csv")
    assert file(b"%PDF-1.7", name="a.pdf").mime == "application/pdf"
    assert file(PNG).kind == "image"


def test_what_cannot_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        file(tmp_path / "missing.pdf")
    with pytest.raises(BadRequest, match="expected an image"):
        image(b"text")
    with pytest.raises(BadRequest, match="in the prompt"):
        message_of([Path("a.png")])  # type: ignore[list-item] # a mistake that users make
    monkeypatch.setattr(prompts, "MAX_BYTES", 4)
    with pytest.raises(BadRequest, match="at most 4"):
        file(b"12345")


def test_parts_stay_in_order() -> None:
    picture = image(PNG)
    assert message_of(["Look:", picture, "What is it?"]).parts == (
        Text(text="Look:"),
        picture,
        Text(text="What is it?"),
    )
    assert message_of("hi").parts == (Text(text="hi"),)


def test_the_model_gets_them_and_the_conversation_has_them(tmp_path: Path) -> None:
    result = Agent(MODEL, config=IN_PROCESS).run_sync([script({"text": "A dot."}), image(PNG)])
    assert result.text == "A dot."
    result.conversation.save(tmp_path / "talk.json")
    parts = result.conversation.load(tmp_path / "talk.json").messages[0].parts
    assert parts[1] == image(PNG)
