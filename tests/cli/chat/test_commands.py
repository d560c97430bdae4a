"""Lines that begin with a slash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.chat.stage import Kept, session
from toolwire.agent import Conversation
from toolwire.cli.chat.commands import Commands
from toolwire.errors import BadRequest
from toolwire.tools.workspace import workspace

pytestmark = pytest.mark.slow


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
    assert kept.faults == ["there is no command /nonsense; /help lists what there is."]


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


def test_a_conversation_is_kept_and_begun_anew(commands: Commands, kept: Kept, tmp_path: Path) -> None:
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
