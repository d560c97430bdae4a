"""scripts/readme_picture.py: the picture of the README is what the program does now."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from scripts.readme_picture import PICTURE, WRITTEN, draw, main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_picture_is_what_the_program_does(tmp_path: Path) -> None:
    made = tmp_path / "before-after.svg"
    assert main([str(made)]) == 0
    assert made.read_text(encoding="utf-8") == PICTURE.read_text(encoding="utf-8"), "run scripts/readme_picture.py"


def test_the_call_is_repaired_and_the_repair_is_reported() -> None:
    shown = [element.text or "" for element in ElementTree.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text")]
    assert "  finish_reason: stop" in shown
    assert "  finish_reason: tool_calls" in shown
    assert '  tool_calls:    get_current_traffic({"location": "Sydney"})' in shown
    assert any(line.startswith("  x-toolwire-loss: call.unterminated") for line in shown)


def test_text_is_escaped_and_lines_appear_one_after_the_other() -> None:
    image = draw([("prompt", "a <b> & c"), ("", ""), ("good", "d")])
    first, second = ElementTree.fromstring(image).findall("{http://www.w3.org/2000/svg}text")
    assert (first.text, second.text) == ("a <b> & c", "d")
    assert first.get("style") == "animation-delay:0.3s"
    assert second.get("style") == "animation-delay:1.5s"
    assert "http" not in image.replace("http://www.w3.org/2000/svg", "")


def test_the_readme_shows_the_same_call() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "docs/images/before-after.svg" in readme
    assert WRITTEN.count("{") == WRITTEN.count("}") + 1  # the model left out the last brace
