from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.backends.cursor.machine import branches_in, folder_of, this_machine
from toolwire.types import Message, Text


def message(role: str, text: str) -> Message:
    return Message(role=role, parts=(Text(text=text),))  # type: ignore[arg-type] # one of the roles


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Europe/Rome", "Europe/Rome"),
        (":Asia/Tokyo", "Asia/Tokyo"),
        ("/usr/share/zoneinfo/America/Argentina/Salta", "America/Argentina/Salta"),
        ("UTC", "UTC"),
        ("no zone at all", "UTC"),
    ],
)
def test_the_time_zone_is_a_name(zone: str, expected: str) -> None:
    assert this_machine({"TZ": zone}).time_zone == expected


def test_nothing_about_this_machine_is_empty() -> None:
    machine = this_machine({})
    assert machine.os
    assert machine.shell == "/bin/sh"
    assert machine.time_zone
    assert this_machine({"SHELL": "/bin/fish"}).shell == "/bin/fish"


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("<env>\n  Working directory: /home/me/project\n  Is directory a git repo: Yes", "/home/me/project"),
        (" - Primary working directory: /w", "/w"),
        ("<environment_context>\n  <cwd>/srv/app</cwd>\n</environment_context>", "/srv/app"),
        ("Be kind.", ""),
        ("working directory: relative", ""),
    ],
)
def test_the_folder_of_a_client_is_the_one_it_names(text: str, folder: str) -> None:
    assert folder_of([message("system", text)]) == folder
    assert folder_of([message("user", "hi"), message("user", text)]) == folder
    assert folder_of([message("user", "hi"), message("assistant", "hello"), message("user", text)]) == ""


def test_the_branch_is_read_without_git(tmp_path: Path) -> None:
    assert branches_in(tmp_path) == {}
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/feature/x\n")
    assert branches_in(tmp_path) == {str(tmp_path): "feature/x"}
    (tmp_path / ".git/HEAD").write_text("a" * 40)
    assert branches_in(tmp_path) == {str(tmp_path): ""}
