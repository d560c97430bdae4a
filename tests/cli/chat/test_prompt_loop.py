"""Prompt, answer, prompt: and the ways to leave."""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest

from tests.cli.chat.stage import Kept, session
from toolwire.agent.events import CompleteEvent
from toolwire.cli.chat.commands import Commands
from toolwire.cli.chat.line_input import TypedLines
from toolwire.cli.chat.prompt_loop import converse
from toolwire.cli.chat.terminal import Terminal

pytestmark = pytest.mark.slow


class Typed(TypedLines):
    """What is typed: lines, and what is raised in their place."""

    def __init__(self, *lines: str | BaseException) -> None:
        super().__init__(None)
        self._waiting = list(lines)
        self.remembered: list[str] = []

    def ask(self, prompt: str, prefill: str = "") -> str:
        line = self._waiting.pop(0)
        if isinstance(line, BaseException):
            raise line
        return line

    def remember(self, line: str) -> None:
        self.remembered.append(line)


def conversed(folder: Path, *lines: str | BaseException) -> tuple[int, Kept, Typed, str]:
    kept, typed, stream = Kept(), Typed(*lines), io.StringIO()
    with session(folder, [{"text": "First."}, {"text": "Second."}], reporter=kept) as talk:
        code = converse(talk, Commands(talk, (), lambda model: None), typed, Terminal(stream))
    return code, kept, typed, stream.getvalue()


def test_one_question_after_the_other(tmp_path: Path) -> None:
    code, kept, typed, _ = conversed(tmp_path, "one", "  ", "two", "/quit")
    assert code == 0
    assert [event.text for event in kept.events if isinstance(event, CompleteEvent)] == ["First.", "Second."]
    assert typed.remembered == ["one", "two", "/quit"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((EOFError(),), 0),
        ((KeyboardInterrupt(), KeyboardInterrupt()), 130),
        ((KeyboardInterrupt(), "hi", KeyboardInterrupt(), EOFError()), 0),
    ],
)
def test_ways_to_leave(lines: tuple[str | BaseException, ...], code: int, tmp_path: Path) -> None:
    assert conversed(tmp_path, *lines)[0] == code


def test_a_first_ctrl_c_says_how_to_leave(tmp_path: Path) -> None:
    assert "Ctrl-C again" in conversed(tmp_path, KeyboardInterrupt(), EOFError())[3]


def test_a_ctrl_c_that_comes_when_the_answer_is_over_ends_nothing(tmp_path: Path) -> None:
    class Late(Terminal):
        """The person presses it while the line after the answer is written."""

        def line(self, text: str = "", style: str = "") -> None:
            signal.raise_signal(signal.SIGINT)

    typed = Typed("one", "two", "/quit")
    kept = Kept()
    with session(tmp_path, [{"text": "First."}, {"text": "Second."}], reporter=kept) as talk:
        assert converse(talk, Commands(talk, (), lambda model: None), typed, Late(io.StringIO())) == 0
    assert [event.text for event in kept.events if isinstance(event, CompleteEvent)] == ["First.", "Second."]


def test_a_command_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    kept, typed = Kept(), Typed("/model slow", "/quit")
    with session(tmp_path, [{"text": "First."}], reporter=kept) as talk:
        commands = Commands(talk, (), lambda model: signal.raise_signal(signal.SIGINT))
        assert converse(talk, commands, typed, Terminal(io.StringIO())) == 0
    assert kept.faults == ["interrupted"]
