"""Conversations of earlier chats: each interactive chat has a file in the state folder, the newest ones are listed and resumed."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from msgspec import Struct
from platformdirs import user_state_path

from ...agent import Conversation
from ...errors import BadRequest, ConfigError
from ...types import Text

MAX_SAVED = 200  # files; the oldest ones are deleted
_TITLE = 60  # characters
LAST = "last"


class SavedChat(Struct, frozen=True):
    """One file; title is the beginning of the first prompt."""

    path: Path
    title: str
    messages: int
    changed: float


class SavedChats:
    """folder is created when the first chat is saved."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or user_state_path("toolwire", appauthor=False) / "chats"

    def new_path(self, now: datetime) -> Path:
        """A file for a new chat, in a private folder. Deletes the oldest files beyond MAX_SAVED."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in self._paths()[MAX_SAVED - 1 :]:
            path.unlink(missing_ok=True)
        return self._folder / f"{now:%Y%m%d-%H%M%S-%f}.json"

    def newest(self, most: int = 20) -> list[SavedChat]:
        """Newest first. Files that are no conversations are skipped."""
        found: list[SavedChat] = []
        for path in self._paths():
            if len(found) >= most:
                break
            try:
                conversation = Conversation.load(path)
            except BadRequest:
                continue
            title = title_of(conversation)
            found.append(SavedChat(path, title, len(conversation.messages), path.stat().st_mtime))
        return found

    def find(self, name: str) -> Path:
        """The file of a number of newest(), counted from 1, of "last", or of a path. Raises ConfigError."""
        chats = self.newest() if name == LAST or name.isdigit() else []
        number = 1 if name == LAST else int(name) if name.isdigit() else 0
        if number and 0 < number <= len(chats):
            return chats[number - 1].path
        if not number and Path(name).expanduser().is_file():
            return Path(name).expanduser()
        raise ConfigError(f"found no saved chat {name[:100]!r}; /sessions lists them.", where="resume")

    def _paths(self) -> list[Path]:
        try:
            return sorted(self._folder.glob("*.json"), key=lambda path: path.name, reverse=True)
        except OSError:
            return []


def title_of(conversation: Conversation) -> str:
    texts = (
        part.text
        for message in conversation.messages
        if message.role == "user"
        for part in message.parts
        if isinstance(part, Text)
    )
    words = " ".join(next(iter(texts), "").split())
    return words if len(words) <= _TITLE else words[: _TITLE - 3] + "..."
