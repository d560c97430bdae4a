"""A terminal is only appended to, and its last line replaced."""

from __future__ import annotations

import io

import pytest

from tests.cli.chat.typist import rendered
from toolwire.cli.chat.terminal import Terminal, terminal_on

pytestmark = pytest.mark.slow


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
