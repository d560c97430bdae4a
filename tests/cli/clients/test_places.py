"""Where clients keep their settings: the home folder, XDG, a client's own variable, each system's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwire.cli.clients.client import Place
from toolwire.cli.clients.places import locate
from toolwire.errors import ConfigError

CODEX = Place(folder="~/.codex", names=("config.toml",), variable="CODEX_HOME")
OPENCODE = Place(folder="$config/opencode", names=("opencode.jsonc", "opencode.json"))
CODE = Place(folder="$code", names=("chatLanguageModels.json",))


def test_the_home_folder_and_the_clients_own_variable() -> None:
    assert locate(CODEX, None, {"HOME": "/h"}) == Path("/h/.codex/config.toml")
    assert locate(CODEX, None, {"HOME": "/h", "CODEX_HOME": "/c"}) == Path("/c/config.toml")
    assert locate(CODEX, None, {"HOME": "/h", "CODEX_HOME": "~/c"}) == Path("/h/c/config.toml")
    assert locate(Place(folder="~", names=("x",)), None, {"HOME": "/h"}) == Path("/h/x")


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
    with pytest.raises(ConfigError, match="no one place"):
        locate(Place(names=("data.json",)), None, {"HOME": "/h"})
    assert locate(Place(names=("data.json",)), tmp_path, {}) == tmp_path / "data.json"


@pytest.mark.parametrize("name", ["cdir", "config", "config.d", "no/such/config.toml", "no/such/plugin"])
def test_a_folder_that_is_not_there_is_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^found no") as caught:
        locate(CODEX, tmp_path / name, {"HOME": "/h"})
    assert caught.value.where == "--file"
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    assert locate(CODEX, tmp_path / "mine", {}) == tmp_path / "mine"
    assert locate(CODEX, tmp_path / "config.toml", {}) == tmp_path / "config.toml"
    nameless = Place(folder="~", names=("rc",))
    assert locate(nameless, tmp_path / "rc", {}) == tmp_path / "rc"
    with pytest.raises(ConfigError, match="found nothing"):
        locate(nameless, tmp_path / "folder", {})


def test_a_home_of_nobody_is_not_there() -> None:
    with pytest.raises(ConfigError, match="found no folder"):
        locate(CODEX, Path("~nobody-of-this-name/config.toml"), {"HOME": "/h"})
