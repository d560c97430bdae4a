from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from toolwire.agent import Conversation
from toolwire.cli.chat import saved
from toolwire.cli.chat.saved import SavedChats
from toolwire.errors import ConfigError
from toolwire.types import Message, Text


def talk(text: str) -> Conversation:
    return Conversation(messages=(Message(role="user", parts=(Text(text=text),)),))


def test_chats_are_listed_newest_first_and_found_again(tmp_path: Path) -> None:
    chats = SavedChats(tmp_path / "chats")
    assert chats.newest() == []
    for day in (1, 2):
        talk(f"Question\n{day} " + "x" * 100 * (day - 1)).save(chats.new_path(datetime(2026, 1, day)))
    (tmp_path / "chats" / "2027.json").write_text("broken")
    titles = [chat.title for chat in chats.newest()]
    assert titles[1] == "Question 1"
    assert titles[0].endswith("...")
    assert chats.find("last") == chats.newest()[0].path
    assert chats.find("2") == chats.newest()[1].path
    assert chats.find(str(chats.newest()[1].path)) == chats.newest()[1].path
    with pytest.raises(ConfigError, match="found no saved chat '3'"):
        chats.find("3")
    assert (tmp_path / "chats").stat().st_mode & 0o77 == 0


def test_the_oldest_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MAX_SAVED", 2)
    chats = SavedChats(tmp_path)
    for day in (1, 2, 3):
        talk(str(day)).save(chats.new_path(datetime(2026, 1, day)))
    assert [chat.title for chat in chats.newest()] == ["3", "2"]
