"""Undoing writes to settings files: what was there before returns, and what was changed later stays."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from toolwire.cli.clients.client import ConnectTarget, Format, settings_of
from toolwire.cli.clients.settings_file import plan, write
from toolwire.cli.clients.table import clients
from toolwire.cli.clients.undo import WriteJournal, plan_undo
from toolwire.errors import ConfigError

CASES: list[tuple[str, Format, str]] = [
    ("claude-code", "json", '{\n  "theme": "dark",\n  "env": {\n    "MINE": "1"\n  }\n}\n'),
    ("opencode", "json", '{\n  // mine\n  "theme": "system",\n}\n'),
    ("vscode", "json", '[\n  {\n    "name": "other",\n    "models": []\n  }\n]\n'),
    ("codex", "toml", 'model = "mine" # my model\n\n[tools]\nweb_search = true\n'),
    ("continue", "yaml", "name: mine\nmodels:\n  - name: other\n    provider: x\n"),
    ("claude-code", "json", '{"theme": "dark"}'),
    ("codex", "toml", 'model = "mine"\r\n[tools]\r\nweb_search = true\r\n'),
]


class Written:
    """One settings file of a client, with the journal of its writes."""

    def __init__(self, folder: Path, client: str, before: str | None) -> None:
        self._way = clients()[client].ways[0]
        self._file = self._way.files[0]
        self.kind: Format = self._file.format
        self.journal = WriteJournal(folder / "state" / "connect.json")
        self.path = folder / "settings"
        if before is not None:
            self.path.write_bytes(before.encode())

    def write(self, model: str = "a/b") -> str:
        target = ConnectTarget(address="http://127.0.0.1:1", model=model, has_key=False, contexts={model: 9000})
        change = plan(self.path, self.kind, settings_of(self._file, target, self._way.dialect))
        self.journal.add(change, write(change), self.kind)
        return change.after

    def undo(self) -> str:
        return plan_undo(self.path, self.kind, self.journal.records(self.path)).after

    def text(self) -> str:
        return self.path.read_bytes().decode()


@pytest.mark.parametrize(("client", "kind", "before"), CASES)
def test_the_file_is_as_it_was(client: str, kind: Format, before: str, tmp_path: Path) -> None:
    file = Written(tmp_path, client, before)
    assert file.write() != before
    assert file.kind == kind
    assert file.undo() == before


@pytest.mark.parametrize(("client", "kind", "before"), CASES)
def test_several_writes_are_undone_together(client: str, kind: Format, before: str, tmp_path: Path) -> None:
    file = Written(tmp_path, client, before)
    file.write()
    file.write("c/d")
    file.write("e/f")
    assert file.undo() == before


@pytest.mark.parametrize("client", ["claude-code", "vscode", "codex", "continue"])
def test_a_file_that_the_write_created_is_empty_again(client: str, tmp_path: Path) -> None:
    file = Written(tmp_path, client, None)
    file.write()
    assert file.undo() == ""


def test_later_changes_stay(tmp_path: Path) -> None:
    """As Codex does, which adds the projects that the user trusts."""
    file = Written(tmp_path, "codex", 'model = "mine"\n[tools]\nweb_search = true\n')
    file.path.write_text(file.write() + '\n[projects."/home/x"]\ntrust_level = "trusted"\n')
    assert tomllib.loads(file.undo()) == {
        "model": "mine",
        "tools": {"web_search": True},
        "projects": {"/home/x": {"trust_level": "trusted"}},
    }


def test_changes_between_two_writes_stay(tmp_path: Path) -> None:
    file = Written(tmp_path, "codex", 'model = "mine"\n')
    file.path.write_text(file.write() + "\n[tools]\nweb_search = true\n")
    file.write("c/d")
    assert tomllib.loads(file.undo()) == {"model": "mine", "tools": {"web_search": True}}


@pytest.mark.parametrize(
    "before", [None, '{\n  "theme": "dark"\n}\n', '{\n  "env": {\n    "A": "1"\n  },\n  "z": 1\n}\n']
)
def test_a_member_that_was_added_last_stays(before: str | None, tmp_path: Path) -> None:
    """As Claude Code does, which writes the whole file again. The commas are right for strict parsers."""
    file = Written(tmp_path, "claude-code", before)
    settings = json.loads(file.write()) | {"added": {"later": True}}
    file.path.write_text(json.dumps(settings, indent=2) + "\n")
    assert json.loads(file.undo()) == json.loads(before or "{}") | {"added": {"later": True}}


def test_a_changed_line_of_ours_is_a_conflict(tmp_path: Path) -> None:
    file = Written(tmp_path, "codex", 'model = "mine"\n')
    file.path.write_text(file.write().replace('model = "a/b"', 'model = "other"'))
    with pytest.raises(
        ConfigError, match=r"was changed after .* in the same lines\. Remove .* by hand\. The file before"
    ):
        file.undo()


def test_a_backup_that_is_gone(tmp_path: Path) -> None:
    file = Written(tmp_path, "codex", 'model = "mine"\n')
    file.write()
    for backup in tmp_path.glob("*.bak"):
        backup.unlink()
    with pytest.raises(ConfigError, match="this backup is gone"):
        file.undo()


def test_the_journal_has_no_text_of_the_file_and_is_private(tmp_path: Path) -> None:
    file = Written(tmp_path, "claude-code", '{"token": "very-secret"}')
    file.write()
    journal = tmp_path / "state" / "connect.json"
    assert "secret" not in journal.read_text()
    assert journal.stat().st_mode & 0o077 == 0
    file.journal.forget(file.path)
    assert file.journal.records(file.path) == []


def test_a_broken_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / "connect.json").write_text("{")
    with pytest.raises(ConfigError, match=r"connect\.json: the journal of earlier writes cannot be read\. Delete it\."):
        WriteJournal(tmp_path / "connect.json").records(tmp_path)
