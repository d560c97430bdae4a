"""A terminal is only appended to, and its last line replaced."""

from __future__ import annotations

import io
import json
import stat
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.cli.chat.typist import rendered
from toolwire.cli.chat.terminal import Terminal, TypedLines, cut, history_path, json_safe, one_line, safe, terminal_on


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_live_line_is_replaced_and_taken_away() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, has_screen=True)
    terminal.write("words")
    terminal.live("one")
    terminal.live("three")
    terminal.live("2")
    assert rendered(stream.getvalue()) == "words\n2"
    terminal.line("settled")
    terminal.write("more")
    assert rendered(stream.getvalue()) == "words\nsettled\nmore"


def test_a_live_line_never_fills_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    Terminal(stream, has_screen=True).live("漢" * 30)
    assert stream.getvalue() == "\r\x1b[K" + "漢" * 8 + "..."


def test_notes_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    terminal = Terminal(io.StringIO(), has_screen=True)
    assert terminal.wrapped("model a/b (--model selects another)") == "model a/b (--model\nselects another)"
    assert (
        terminal.wrapped("short  line\n  an indented one that is long")
        == "short  line\n  an indented one that\n  is long"
    )
    assert Terminal(io.StringIO()).wrapped("word " * 99) == "word " * 99


def test_in_a_pipe_there_are_no_live_lines_and_no_colours() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    terminal.live("growing")
    terminal.line("done", "red")
    terminal.short("x" * 300, tail=" (end)")
    first, second = stream.getvalue().splitlines()
    assert first == "done"
    assert len(second) == 199
    assert second.endswith("... (end)")


def test_styles_end_with_their_text() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, has_colour=True)
    terminal.write("a", "dim")
    terminal.write("\n", "dim")
    assert stream.getvalue() == "\x1b[2ma\x1b[0m\n"


def test_an_end_of_line_may_come_in_two_pieces() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    for piece in ("a\r", "\nb\r", "c\r"):
        terminal.write(piece)
    terminal.fresh()
    assert stream.getvalue() == "a\nb\\x0dc\n"


def test_an_echo_of_the_terminal_itself_does_not_stand_before_our_line() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, has_screen=True)
    terminal.note_echo()
    terminal.line("interrupted")
    assert stream.getvalue() == "\ninterrupted\n"


@pytest.mark.parametrize(
    ("environ", "has_screen", "has_colour"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, False, False),
        ({}, False, False),
    ],
)
def test_what_a_terminal_can_do(environ: dict[str, str], has_screen: bool, has_colour: bool) -> None:
    terminal = terminal_on(Screen(), environ)
    assert (terminal.has_screen, terminal.has_colour) == (has_screen, has_colour)
    assert not terminal_on(io.StringIO(), environ).has_screen


def test_an_encoding_that_lacks_letters_is_no_error() -> None:
    data = io.BytesIO()
    stream = io.TextIOWrapper(data, encoding="ascii")
    terminal_on(stream, {}).line("漢")
    assert data.getvalue() == b"\\u6f22\n"


ANY = st.text(st.characters(exclude_categories=()))


def test_what_people_write_stays() -> None:
    text = "Zeile\n\tπ 漢字 👩‍👩‍👧 می\u200cخواهم é עברית\u200f."
    assert safe(text) == text


def test_what_acts_is_spelled_out() -> None:
    assert safe("\x1b[2J\x9b1m\x7f\u202e\ufeff\ud800\U000e0041") == (
        "\\x1b[2J\\x9b1m\\x7f\\u202e\\ufeff\\ud800\\U000e0041"
    )


def test_ends_of_lines() -> None:
    assert safe("a\r\nb\rc") == "a\nb\\x0dc"
    assert one_line("  {\n   a,\r\n\tb\tc}") == "  { a, b    c}"


@given(ANY)
def test_nothing_acts_but_ends_of_lines_and_tabs(text: str) -> None:
    shown = safe(text)
    assert all(char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") for char in shown)
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069") & set(shown)
    assert "\n" not in one_line(text)
    assert safe(shown) == shown
    shown.encode()


@given(ANY, st.integers(4, 100))
def test_a_cut_line_fits(text: str, columns: int) -> None:
    line = one_line(text)
    shown = cut(line, columns)
    assert cell_len(shown) <= columns
    assert shown == line or shown.endswith("...")


def test_a_tower_of_marks_is_cut_too() -> None:
    assert len(cut("e" + "\u0301" * 10_000, 80)) <= 80


@given(ANY)
def test_json_stays_the_same_json(text: str) -> None:
    written = json.dumps(text, ensure_ascii=False)
    shown = json_safe(written)
    assert safe(shown) == shown
    # Two halves that stand beside each other become one character on their way through JSON.
    assert json.loads(shown).encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


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


def test_the_history_file_is_private(tmp_path: Path) -> None:
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
    assert "the input history is not saved" in lines.problem
    typed(monkeypatch, "still")
    assert lines.ask("> ") == "still"


def test_the_place_is_in_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert history_path().name == "chat_history"
    assert history_path().parent.name == "toolwire"
