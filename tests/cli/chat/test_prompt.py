"""Prompt, answer, prompt: and the ways to leave."""

from __future__ import annotations

import io
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.chat.stage import Kept, session
from toolwire.agent import Conversation
from toolwire.agent.events import CompleteEvent
from toolwire.cli.chat.prompt import Commands, converse
from toolwire.cli.chat.terminal import Terminal, TypedLines
from toolwire.errors import BadRequest
from toolwire.tools.workspace import workspace


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


def check(model: str) -> None:
    if model == "wrong":
        raise BadRequest("there is no such model.")


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def commands(tmp_path: Path, kept: Kept) -> Iterator[Commands]:
    tools = workspace(tmp_path, allow=("read", "write"))
    with session(tmp_path, [{"text": "Hello."}], tools=[tools], reporter=kept) as talk:
        yield Commands(talk, (tools,), check)


def test_what_is_a_command_and_what_is_not(commands: Commands, kept: Kept) -> None:
    assert not any(commands.run(line) for line in ("hello", "/etc/hosts is what?", "/ what", "a /help", "//x"))
    assert all(commands.run(line) for line in ("/help", " /HELP ", "/?", "/nonsense at all"))
    assert len(kept.notes) == 3
    assert kept.faults == ["there is no command /nonsense; /help lists the commands."]


def test_help_names_every_command(commands: Commands, kept: Kept) -> None:
    commands.run("/help")
    assert all(f"/{name}" in kept.notes[0] for name in commands._known if name not in ("help", "exit"))


def test_the_model_is_changed_only_to_one_that_is_there(commands: Commands, kept: Kept) -> None:
    commands.run("/model wrong")
    commands.run("/model")
    commands.run("/model other/one")
    assert kept.faults == ["there is no such model."]
    assert kept.notes == ["model: play/scripted", "model: other/one"]


def test_tools_say_whether_they_change_things(commands: Commands, kept: Kept) -> None:
    commands.run("/tools")
    read, write = kept.notes[0].splitlines()
    assert read.startswith("  read: ")
    assert write.startswith("! write: ")


def test_a_conversation_is_saved_and_a_new_one_started(commands: Commands, kept: Kept, tmp_path: Path) -> None:
    commands._session.answer("hi")
    commands.run(f"/save {tmp_path / 'a file'}")
    commands.run("/usage")
    commands.run("/new")
    assert len(Conversation.load(tmp_path / "a file").messages) == 2
    assert commands._session.conversation == Conversation()
    assert kept.notes[1].startswith("1 answer, ")
    commands.run(f"/save {tmp_path / 'no' / 'folder'}")
    commands.run("/save")
    assert "cannot be saved" in kept.faults[0]
    assert "expected a file" in kept.faults[1]


@pytest.mark.parametrize("line", ["/quit", "/exit"])
def test_leaving(commands: Commands, line: str) -> None:
    assert not commands.is_over
    commands.run(line)
    assert commands.is_over
