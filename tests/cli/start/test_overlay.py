"""Temporary folders for a client: copies of settings, links to everything else, and nothing of it afterwards."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from toolwire.cli.clients.client import ClientRun, RunFolder
from toolwire.cli.start.overlay import overlay, replace_folders, temporary_folder
from toolwire.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    for name in (".client/skills/one/SKILL.md", ".client/settings.json", ".client/login.json", ".config/git/config"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"content of {name}")
    return folder


def made(home: Path, place: Path, *folders: RunFolder, **moved: str) -> dict[str, str]:
    setup = ClientRun(
        command="x", folders=folders, moved={name.replace("_", "."): path for name, path in moved.items()}
    )
    return overlay(setup, {"HOME": str(home)}, place)


def test_only_the_named_settings_are_copied(home: Path, tmp_path: Path) -> None:
    folder = RunFolder(variable="CLIENT_HOME", folder="~/.client", copied=("*ettings.json", "skills", "missing"))
    variables = made(home, tmp_path / "place", folder)
    copy = Path(variables["CLIENT_HOME"])
    assert sorted(path.name for path in copy.iterdir()) == ["settings.json", "skills"]
    assert (copy / "skills/one/SKILL.md").read_text() == "content of .client/skills/one/SKILL.md"
    (copy / "settings.json").write_text("changed")
    assert (home / ".client/settings.json").read_text() == "content of .client/settings.json"


def test_a_link_in_the_settings_becomes_a_copy(home: Path, tmp_path: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles/more.json").write_text("real")
    (home / ".client/more.json").symlink_to(home / "dotfiles/more.json")
    (home / ".client/skills/gone").symlink_to(home / "nowhere")
    os.mkfifo(home / ".client/skills/pipe")
    folder = RunFolder(variable="CLIENT_HOME", folder="~/.client", copied=("more.json", "skills"))
    copy = Path(made(home, tmp_path / "place", folder)["CLIENT_HOME"])
    assert not (copy / "more.json").is_symlink()
    assert sorted(path.name for path in (copy / "skills").iterdir()) == ["one"]


def test_the_variable_of_the_user_names_the_source(home: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/settings.json").write_text("other")
    folder = RunFolder(variable="CLIENT_HOME", folder="~/.client", copied=("settings.json",))
    setup = ClientRun(command="x", folders=(folder,))
    environ = {"HOME": str(home), "CLIENT_HOME": str(tmp_path / "other")}
    variables = overlay(setup, environ, tmp_path / "place")
    assert (Path(variables["CLIENT_HOME"]) / "settings.json").read_text() == "other"


def test_a_shared_folder_has_links_to_everything_else(home: Path, tmp_path: Path) -> None:
    folder = RunFolder(variable="HOME", folder="~", own=".client/data", copied=("*.json",))
    (home / ".client/data").mkdir()
    (home / ".client/data/a.json").write_text("a")
    place = Path(made(home, tmp_path / "place", folder)["HOME"])
    assert (place / ".config").is_symlink()
    assert (place / ".config/git/config").read_text() == "content of .config/git/config"
    assert (place / ".client/settings.json").is_symlink()
    assert not (place / ".client").is_symlink()
    assert not (place / ".client/data").is_symlink()
    assert (place / ".client/data/a.json").read_text() == "a"


def test_a_file_beside_the_folder_is_moved_into_it(home: Path, tmp_path: Path) -> None:
    (home / ".client.json").write_text("beside")
    folder = RunFolder(variable="CLIENT_HOME", folder="~/.client")
    variables = made(home, tmp_path / "place", folder, _client_json="~/.client.json")
    assert (Path(variables["CLIENT_HOME"]) / ".client.json").read_text() == "beside"


def test_a_second_run_keeps_what_the_client_wrote(home: Path, tmp_path: Path) -> None:
    folders = (
        RunFolder(variable="CLIENT_HOME", folder="~/.client", copied=("settings.json", "skills")),
        RunFolder(variable="XDG_CONFIG_HOME", folder="$config", own="client"),
    )
    variables = made(home, tmp_path / "place", *folders)
    (Path(variables["CLIENT_HOME"]) / "settings.json").write_text("by the client")
    assert made(home, tmp_path / "place", *folders) == variables
    assert (Path(variables["CLIENT_HOME"]) / "settings.json").read_text() == "by the client"


def test_a_home_without_the_folders(tmp_path: Path) -> None:
    folder = RunFolder(variable="XDG_DATA_HOME", folder="$data", own="client", copied=("*",))
    variables = replace_folders((folder,), {"HOME": str(tmp_path / "empty")}, tmp_path / "place")
    assert list(Path(variables["XDG_DATA_HOME"]).rglob("*")) == [Path(variables["XDG_DATA_HOME"]) / "client"]
    assert not (tmp_path / "empty").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_settings_that_cannot_be_read_are_named(home: Path, tmp_path: Path) -> None:
    (home / ".client/settings.json").chmod(0)
    folder = RunFolder(variable="CLIENT_HOME", folder="~/.client", copied=("settings.json",))
    with pytest.raises(ConfigError, match=r"settings\.json: this cannot be copied"):
        made(home, tmp_path / "place", folder)


def test_the_temporary_folder_is_private_and_removed() -> None:
    with temporary_folder() as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "file").write_text("x")
    assert not folder.exists()
