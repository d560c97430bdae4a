"""The token that windows need: made once, private, the same for everybody, and never one that others could read."""

from __future__ import annotations

import stat
import sys
import threading
from pathlib import Path

import pytest

from toolwire.backends.vscode.token import FILE_NAME, VARIABLE, bridge_token, is_token, token_path
from toolwire.errors import ConfigError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "toolwire" / FILE_NAME


def test_it_is_made_once_for_its_user_alone(path: Path) -> None:
    token = bridge_token({}, path)
    assert len(token) >= 40
    assert bridge_token({}, path) == token
    assert path.read_text() == f"{token}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [found.name for found in path.parent.iterdir()] == [FILE_NAME]


def test_those_who_start_together_have_the_same_one(path: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(bridge_token({}, path))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {path.read_text().strip()}
    assert len(found) == 16


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_what_others_could_read_is_created_again(path: Path, mode: int) -> None:
    old = bridge_token({}, path)
    path.chmod(mode)
    new = bridge_token({}, path)
    assert new != old
    assert path.read_text().strip() == new
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "short", "with blanks in the middle of it", "x" * 5000, "é" * 40])
def test_what_is_no_token_is_created_again(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(content)
    path.chmod(0o600)
    assert bridge_token({}, path) == path.read_text().strip() != content


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("t" * 40)
    elsewhere.chmod(0o600)
    path.parent.mkdir(parents=True)
    path.symlink_to(elsewhere)
    assert bridge_token({}, path) != "t" * 40
    assert not path.is_symlink()
    assert elsewhere.read_text() == "t" * 40


def test_the_environment_goes_before_the_file(path: Path) -> None:
    assert bridge_token({VARIABLE: "t" * 20}, path) == "t" * 20
    assert not path.exists()
    for wrong in ("short", "with blanks in it and long"):
        with pytest.raises(ConfigError, match="16 printable") as caught:
            bridge_token({VARIABLE: wrong}, path)
        assert wrong not in caught.value.sentence()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be stored") as caught:
        bridge_token({}, tmp_path / "file" / FILE_NAME)
    assert str(tmp_path) in caught.value.where
    assert VARIABLE in caught.value.hint


def test_its_place_is_the_state_of_this_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert token_path() == tmp_path / "toolwire" / FILE_NAME
    assert token_path().name == FILE_NAME


def test_only_the_very_token_is_one() -> None:
    assert is_token("abc", "abc")
    assert not any(is_token(wrong, "abc") for wrong in ("", "ab", "abcd", "Abc", "é", "\udc80"))
