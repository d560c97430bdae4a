"""The line editor, in a real terminal: paste, completion, history, diffs, resize, interrupt and resume."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path

import pytest

from tests.cli.chat.picture import styled_lines, svg_of
from tests.cli.chat.screen import chat_screen, has_tmux
from tests.cli.chat.typist import scripted
from toolwire import Conversation, Media, Text
from toolwire.cli.chat.editor import EditedLines, edit_text, open_lines
from toolwire.installation import install_command

ROOT = Path(__file__).resolve().parents[3]
PICTURE = ROOT / "docs" / "images" / "chat.svg"
needs_tmux = pytest.mark.skipif(not has_tmux(), reason="tmux is not installed")

MARKDOWN = (
    "# Plan\n\nThree **steps**, and `code`:\n\n| step | why |\n|---|---|\n| read | the file has the names that the second step"
    " needs, so it comes first |\n| edit | one line |\n\n```python\ndef total(prices):\n    return sum(prices)\n```\n\n"
    "1. Read it.\n2. Edit it, see [the page](https://docs.example/page).\n\nEscapes: \x1b[31mred\x1b[2J\x1b]0;title\x07 end."
)
EDIT = {"calls": [{"name": "edit", "arguments": {"path": "a.txt", "old_text": "two", "new_text": "TWO\n2.5"}}]}

WRITE = {"calls": [{"name": "write", "arguments": {"path": "deep/b.txt", "content": "alpha\nbeta\n"}}]}


def saved_prompts(folder: Path) -> list[str]:
    (path,) = (folder / "state" / "toolwire" / "chats").glob("*.json")
    messages = Conversation.load(path).messages
    return [
        part.text for message in messages if message.role == "user" for part in message.parts if isinstance(part, Text)
    ]


@pytest.mark.slow
@needs_tmux
def test_a_paste_of_thirty_lines_is_one_prompt_and_tab_completes(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "First."}, {"text": "Second."})
    lines = "\n".join(f"line {number}" for number in range(30))
    with chat_screen(tmp_path) as screen:
        screen.wait("\n>\n")
        screen.paste(lines)
        screen.wait("line 29")
        screen.key("Enter")
        screen.wait("First.")
        screen.type("/ver")
        screen.key("C-u")
        screen.type("/mod")
        screen.key("Tab")
        screen.wait("/model")
        screen.type(" play/s")
        screen.key("Tab")
        screen.wait("/model play/scripted")
        screen.key("Enter")
        screen.wait("model: play/scripted")
        screen.type("/model nothing/x")
        screen.key("Enter")
        screen.wait("error: ")
        screen.key("Up", "Up", "Up")
        screen.wait("line 29")
        screen.key("C-c")
        screen.wait("Ctrl-C again")
        screen.type("one")
        screen.key("M-Enter")
        screen.type("two")
        screen.key("Enter")
        screen.wait("Second.")
        screen.key("C-d")
    assert saved_prompts(tmp_path) == [lines, "one\ntwo"]


@pytest.mark.slow
@needs_tmux
def test_markdown_and_diffs_are_shown_as_documented(tmp_path: Path) -> None:
    path = scripted(tmp_path, {"text": MARKDOWN, "chunk": 5}, EDIT, {"text": "Done."}, WRITE, {"text": "Both."})
    with path.open("a") as file:
        file.write('[prices]\n"play/*" = { input = 1000, output = 1000 }\n')
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    with chat_screen(tmp_path, "--allow-write", columns=76, rows=44) as screen:
        screen.wait("\n>\n")
        screen.type("Make a plan")
        screen.key("Enter")
        screen.wait("0 calls")
        screen.type("Do it")
        screen.key("Enter")
        shown = screen.wait("allow edit?")
        styled = screen.styled()
        screen.type("y")
        screen.key("Enter")
        screen.wait("Done.")
        screen.wait("context ")
        assert re.search(r"\| cost \d+\.\d{4}\n", screen.wait("| cost "))
        screen.type("Now write")
        screen.key("Enter")
        written = screen.wait("allow write?")
        assert "    deep/b.txt (new file)\n    @@ -0,0 +1,2 @@\n    +alpha\n    +beta\n" in written
        screen.type("n")
        screen.key("Enter")
        screen.wait("Both.")
    assert not (tmp_path / "deep").exists()
    assert (tmp_path / "a.txt").read_text() == "one\nTWO\n2.5\nthree\n"
    for wanted in (
        " step  why\n",
        " read  the file has the names that the second step needs, so it comes\n",
        " def total(prices):\n     return sum(prices)\n",
        "the page (https://docs.example/page)",
        "Escapes: \\x1b[31mred\\x1b[2J\\x1b]0;title\\x07 end.",
        "    -two\n    +TWO\n    +2.5\n",
    ):
        assert wanted in shown
    # The picture in the documentation is this screen.
    captured = "".join(
        line.rstrip() + "\n" for line in shown[shown.index("> Make") :].rstrip().splitlines() if " in, " not in line
    )
    assert captured in (ROOT / "docs" / "chat.md").read_text(encoding="utf-8")
    lines = [line for line in styled_lines(styled) if " in, " not in line.plain]
    places = {line.plain.strip(): place for place, line in enumerate(lines)}
    start, end = places["> Make a plan"], places["allow edit? [y/n/a/e/v/?]"]
    made = svg_of(lines[start : end + 1], 76, "toolwire chat: a plan, and the diff of an edit before its approval")
    if os.environ.get("TOOLWIRE_WRITE_SCREENS"):
        PICTURE.write_text(made, encoding="utf-8")
    assert made == PICTURE.read_text(encoding="utf-8"), "run this test with TOOLWIRE_WRITE_SCREENS=1, and look at it"


@pytest.mark.slow
@needs_tmux
def test_a_stream_survives_a_resize_and_an_interrupt_and_is_resumed(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(400))
    scripted(tmp_path, {"text": f"{words}\n\nlast", "chunk": 20, "pace": 0.05}, {"text": "Again **here**."})
    with chat_screen(tmp_path) as screen:
        screen.wait("\n>\n")
        screen.type("Talk")
        screen.key("Enter")
        screen.wait("word30")
        screen.resize(50, 30)
        screen.wait("word60")
        screen.key("C-c")
        screen.wait("interrupted")
        screen.type("/quit")
        screen.key("Enter")
    with chat_screen(tmp_path, "--resume", "last") as screen:
        screen.wait("continuing")
        screen.type("/sessions")
        screen.key("Enter")
        screen.wait("Talk")
        screen.type("And now?")
        screen.key("Enter")
        screen.wait("Again here.")
    assert saved_prompts(tmp_path)[0] == "Talk"
    assert saved_prompts(tmp_path)[-1] == "And now?"


@pytest.mark.slow
@needs_tmux
def test_images_and_the_editor(tmp_path: Path) -> None:
    scripted(tmp_path, {"text": "Seen."}, {"text": "Read."})
    (tmp_path / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (tmp_path / "ed").write_text(
        f"#!{sys.executable}\nimport sys\nopen(sys.argv[1], 'w').write('from the editor\\n')\n"
    )
    (tmp_path / "ed").chmod(0o755)
    with chat_screen(tmp_path, EDITOR=str(tmp_path / "ed")) as screen:
        screen.wait("\n>\n")
        screen.type("/image dot.png")
        screen.key("Enter")
        screen.wait("attached dot.png (image/png)")
        screen.type("What is it?")
        screen.key("Enter")
        screen.wait("Seen.")
        screen.type("draft")
        screen.key("C-x", "C-e")
        screen.wait("> from the editor")
        screen.wait("Read.")
    assert saved_prompts(tmp_path)[-1] == "from the editor"
    (path,) = (tmp_path / "state" / "toolwire" / "chats").glob("*.json")
    parts = Conversation.load(path).messages[0].parts
    assert isinstance(parts[1], Media)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert edit_text("start", {"EDITOR": str(tmp_path / "ed")}) == "from the editor"
    with pytest.raises(OSError, match="exit code 1"):
        edit_text("", {"EDITOR": "false"})


def test_without_prompt_toolkit_single_lines_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    lines = open_lines(None, is_plain=False, has_colour=False)
    assert not isinstance(lines, EditedLines)
    assert install_command("chat") in lines.problem
