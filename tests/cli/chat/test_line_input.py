"""Typed lines: what goes on in the next, what is remembered, and where."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from toolwire.cli.chat.line_input import TypedLines, history_path

pytestmark = pytest.mark.slow

readline = pytest.importorskip("readline")


def typed(monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[str]:
    waiting, prompts = list(lines), list[str]()

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return waiting.pop(0)

    monkeypatch.setattr("builtins.input", answer)
    return prompts


def test_a_backslash_goes_on_in_the_next_line(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = typed(monkeypatch, "one\\", "two\\", "three")
    assert TypedLines(None).ask("> ") == "one\ntwo\nthree"
    assert prompts == ["> ", "... ", "... "]


def test_bytes_that_are_no_text_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "a\udcffb")
    assert TypedLines(None).ask("> ") == "a\ufffdb"


def test_colour_takes_no_room_in_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = typed(monkeypatch, "")
    TypedLines(None, has_colour=True).ask("> ")
    assert prompts == ["\1\x1b[1m\2> \1\x1b[0m\2"]


def test_lines_are_remembered_for_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    lines = TypedLines(path)
    lines.remember("first")
    lines.remember("  ")
    assert lines.problem == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    TypedLines(path).remember("second")
    assert [line for line in path.read_text().splitlines() if not line.startswith("_HiStOrY")] == ["first", "second"]


def test_a_file_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("old\n")
    path.chmod(0o644)
    TypedLines(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_long_history_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("".join(f"line {number}\n" for number in range(2500)))
    TypedLines(path)
    kept = path.read_text().splitlines()
    assert len(kept) <= 1001
    assert kept[-1] == "line 2499"


def test_without_a_place_for_it_there_is_no_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    lines = TypedLines(tmp_path / "file" / "history")
    lines.remember("a")
    assert "lines are not remembered" in lines.problem
    typed(monkeypatch, "still")
    assert lines.ask("> ") == "still"


def test_the_place_is_in_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert history_path().name == "chat_history"
    assert history_path().parent.name == "toolwire"
