"""Changing somebody's file: a backup, a diff without secrets, one step, links followed, refusals that change nothing."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from toolwire.cli.clients.client import FilePlace, Setting
from toolwire.cli.clients.settings_file import FileChange, difference, locate, plan, write
from toolwire.errors import ConfigError

SETTINGS = [Setting(("model",), "m")]


def test_a_new_file_is_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.json"
    change = plan(path, "json", SETTINGS)
    assert not path.parent.exists()
    assert write(change) is None
    assert path.read_text() == '{\n  "model": "m"\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not plan(path, "json", SETTINGS).is_needed


def test_a_backup_is_saved_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('model = "old"\n')
    path.chmod(0o640)
    backup = write(plan(path, "toml", SETTINGS))
    assert backup is not None
    assert re.fullmatch(r"a\.toml\.\d{8}-\d{6}\.bak", backup.name)
    assert backup.read_text() == 'model = "old"\n'
    assert path.read_text() == 'model = "m"\n'
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, backup)] == [0o640, 0o640]


def test_two_backups_in_one_second_are_two_files(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    backups = {write(plan(path, "json", [Setting(("model",), str(number))])) for number in range(3)}
    assert len(backups) == 3
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    ("line", "is_hidden"),
    [
        ('"maxInputTokens": 128000,', False),
        ('"tokens": true', False),
        ('"apiKey": "sk-123",', True),
        ('"token": 128000, "key": "sk-123"', True),
        ('"key": 12345678901234567890', True),
    ],
)
def test_a_number_of_tokens_is_no_secret(line: str, is_hidden: bool, tmp_path: Path) -> None:
    change = FileChange(path=tmp_path, target=tmp_path, before="", after=line)
    assert list(difference(change))[-1] == (f"+{line.partition(':')[0]}: (hidden)" if is_hidden else f"+{line}")


def test_a_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "real.json"
    target.parent.mkdir()
    target.write_text('{"kept": 1}')
    link = tmp_path / "a.json"
    link.symlink_to(target)
    backup = write(plan(link, "json", SETTINGS))
    assert link.is_symlink()
    assert '"model": "m"' in target.read_text()
    assert backup is not None
    assert backup.parent == target.parent


def test_a_link_to_nothing_yet_is_followed(tmp_path: Path) -> None:
    link = tmp_path / "a.json"
    link.symlink_to(tmp_path / "later" / "real.json")
    write(plan(link, "json", SETTINGS))
    assert link.is_symlink()
    assert (tmp_path / "later" / "real.json").is_file()


def test_the_diff_shows_the_change_and_hides_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n  "model": "old",\n  "apiKey": "sk-secret-1",\n  "auth_token": "token-secret-2"\n}\n')
    lines = list(difference(plan(path, "json", [*SETTINGS, Setting(("key",), "{env:TOOLWIRE_KEY}")])))
    assert lines[0] == f"--- {path}"
    assert '-  "model": "old",' in lines
    assert '+  "model": "m",' in lines
    assert '+  "key": "{env:TOOLWIRE_KEY}"' in lines
    assert not any(secret in line for line in lines for secret in ("sk-secret-1", "token-secret-2"))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"{broken", "not JSON"), (b"\xff\xfe{}", "not UTF-8"), (b'"' + b"x" * (4 * 1024 * 1024), "more than")],
)
def test_what_cannot_be_understood_is_refused_and_stays(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        plan(path, "json", SETTINGS)
    assert caught.value.where == str(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        plan(tmp_path, "json", SETTINGS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ConfigError, match="cannot be written"):
            write(plan(path, "json", SETTINGS))
    finally:
        tmp_path.chmod(0o700)
    assert path.read_text() == "{}"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(ConfigError, match="cannot be"):
        write(plan(tmp_path / "x" / "a.json", "json", SETTINGS))


def test_nothing_is_left_behind_when_the_step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    change = plan(path, "json", SETTINGS)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ConfigError, match="No space left"):
        write(change)
    assert path.read_text() == "{}"
    assert sorted(one.suffix for one in tmp_path.iterdir()) == [".bak", ".json"]


CODEX = FilePlace(folder="~/.codex", names=("config.toml",), variable="CODEX_HOME")
OPENCODE = FilePlace(folder="$config/opencode", names=("opencode.jsonc", "opencode.json"))
CODE = FilePlace(folder="$code", names=("chatLanguageModels.json",))


def test_the_home_folder_and_the_clients_own_variable() -> None:
    assert locate(CODEX, None, {"HOME": "/h"}) == Path("/h/.codex/config.toml")
    assert locate(CODEX, None, {"HOME": "/h", "CODEX_HOME": "/c"}) == Path("/c/config.toml")
    assert locate(CODEX, None, {"HOME": "/h", "CODEX_HOME": "~/c"}) == Path("/h/c/config.toml")
    assert locate(FilePlace(folder="~", names=("x",)), None, {"HOME": "/h"}) == Path("/h/x")


def test_the_folder_for_settings() -> None:
    assert locate(OPENCODE, None, {"HOME": "/h"}) == Path("/h/.config/opencode/opencode.json")
    assert locate(OPENCODE, None, {"HOME": "/h", "XDG_CONFIG_HOME": "/x"}) == Path("/x/opencode/opencode.json")
    assert locate(OPENCODE, None, {"HOME": "/h", "XDG_CONFIG_HOME": "x"}) == Path("/h/.config/opencode/opencode.json")


def test_the_file_that_exists_is_the_one(tmp_path: Path) -> None:
    (tmp_path / "opencode").mkdir()
    (tmp_path / "opencode" / "opencode.jsonc").write_text("{}")
    assert locate(OPENCODE, None, {"HOME": "/h", "XDG_CONFIG_HOME": str(tmp_path)}).name == "opencode.jsonc"


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        ("linux", {}, "/h/.config/Code/User"),
        ("darwin", {}, "/h/Library/Application Support/Code/User"),
        ("win32", {}, "/h/AppData/Roaming/Code/User"),
        ("win32", {"APPDATA": "/r"}, "/r/Code/User"),
    ],
)
def test_the_folder_of_vs_code(platform: str, environ: dict[str, str], folder: str) -> None:
    assert locate(CODE, None, {"HOME": "/h", **environ}, platform) == Path(folder, "chatLanguageModels.json")


def test_what_the_user_says_comes_first(tmp_path: Path) -> None:
    assert locate(CODEX, tmp_path / "mine.toml", {"HOME": "/h"}) == tmp_path / "mine.toml"
    assert locate(CODEX, tmp_path, {"HOME": "/h"}) == tmp_path / "config.toml"


def test_without_a_folder_the_user_must_say(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no standard place"):
        locate(FilePlace(names=("data.json",)), None, {"HOME": "/h"})
    assert locate(FilePlace(names=("data.json",)), tmp_path, {}) == tmp_path / "data.json"


@pytest.mark.parametrize("name", ["cdir", "config", "config.d", "no/such/config.toml", "no/such/plugin"])
def test_a_folder_that_is_not_there_is_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"found no") as caught:
        locate(CODEX, tmp_path / name, {"HOME": "/h"})
    assert caught.value.where == "--file"
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    assert locate(CODEX, tmp_path / "mine", {}) == tmp_path / "mine"
    assert locate(CODEX, tmp_path / "config.toml", {}) == tmp_path / "config.toml"
    nameless = FilePlace(folder="~", names=("rc",))
    assert locate(nameless, tmp_path / "rc", {}) == tmp_path / "rc"
    with pytest.raises(ConfigError, match="found nothing"):
        locate(nameless, tmp_path / "folder", {})


def test_an_unknown_home_folder_is_refused() -> None:
    with pytest.raises(ConfigError, match="found no folder"):
        locate(CODEX, Path("~nobody-of-this-name/config.toml"), {"HOME": "/h"})
