"""The folder for Codex: the login is linked, nothing else of the user's is there, and nothing stays."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.tools.workspace.box import needs_proc, open_below
from toolwire.backends.codex.home import Home, user_home
from toolwire.errors import UpstreamError


def home(tmp_path: Path, **environ: str) -> Home:
    return Home('model = "m"\n', {"HOME": str(tmp_path / "user"), **environ}, tmp_path / "cache")


def test_only_the_user_can_read_it_and_nothing_is_left(tmp_path: Path) -> None:
    made = home(tmp_path)
    assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((made.home / "config.toml").stat().st_mode) == 0o600
    assert (made.home / "config.toml").read_text() == 'model = "m"\n'
    assert list(made.work.iterdir()) == []
    made.remove()
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_login_is_linked_so_that_a_new_token_reaches_the_users_own(tmp_path: Path) -> None:
    own = tmp_path / "user" / ".codex"
    own.mkdir(parents=True)
    (own / "auth.json").write_text("old")
    (own / "config.toml").write_text("model = 'mine'")
    made = home(tmp_path)
    (made.home / "auth.json").write_text("new")
    made.remove()
    assert (own / "auth.json").read_text() == "new"
    assert (own / "config.toml").read_text() == "model = 'mine'"


def test_a_login_that_comes_later_is_linked_and_reported_once(tmp_path: Path) -> None:
    made = home(tmp_path)
    assert not made.has_new_login()
    own = tmp_path / "user" / ".codex"
    own.mkdir(parents=True)
    (own / "auth.json").write_text("new")
    made.link_login()
    made.link_login()
    assert (made.home / "auth.json").read_text() == "new"
    assert [made.has_new_login() for _ in range(2)] == [True, False]
    (own / "auth.json").unlink()
    assert not made.has_new_login()
    made.remove()


def test_the_users_own_place_counts_and_is_not_passed_on(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "mine"), "CODEX_SQLITE_HOME": "x", "MY_KEY": "k"}
    assert user_home(environ) == tmp_path / "mine"
    made = home(tmp_path, **environ)
    log = {"RUST_LOG": "error,codex_core::tools=warn"}
    assert made.environment() == {"HOME": str(tmp_path), "MY_KEY": "k", "CODEX_HOME": str(made.home), **log}
    made.remove()


def test_what_a_killed_gateway_left_is_swept_away_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    used = home(tmp_path)
    left = home(tmp_path)
    os.close(left._lock)  # what the end of a process does
    left._lock = -1
    made = home(tmp_path)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == sorted([used.folder.name, made.folder.name])
    used.remove()
    made.remove()


def test_a_cache_that_cannot_be_written_to_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    made = home(tmp_path)
    assert made.home.is_dir()
    made.remove()
    assert not made.folder.exists()


def test_only_files_in_the_home_are_forgotten(tmp_path: Path) -> None:
    made = home(tmp_path)
    inside, outside = made.home / "sessions.jsonl", tmp_path / "diary"
    inside.write_text("said")
    outside.write_text("mine")
    for path in (str(inside), str(outside), str(made.home / ".." / ".." / ".." / "diary"), "\0", ""):
        made.delete(path)
    assert not inside.exists()
    assert outside.read_text() == "mine"
    made.remove()


@needs_proc
def test_one_that_could_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    for _ in range(3):
        with pytest.raises(UpstreamError, match="File name too long"):
            home(tmp_path, CODEX_HOME="/" + "x" * 300)
    assert list((tmp_path / "cache").iterdir()) == []
    assert open_below(tmp_path) == []


def test_it_is_seen_when_it_was_removed(tmp_path: Path) -> None:
    made = home(tmp_path)
    assert made.is_there
    made.work.rmdir()
    assert not made.is_there
    made.remove()


def test_codex_is_not_pointed_back_at_a_gateway(tmp_path: Path) -> None:
    def told(url: str) -> str | None:
        home = Home("", {"HOME": str(tmp_path), "OPENAI_BASE_URL": url}, tmp_path / "cache")
        found = home.environment().get("OPENAI_BASE_URL")
        home.remove()
        return found

    assert told("http://127.0.0.1:18741/v1") is None
    assert told("http://localhost:18741/v1") is None
    assert told("https://models.example.com/v1") == "https://models.example.com/v1"
    assert told("http://[") == "http://["


def test_the_session_of_a_thread_is_replaced_in_its_place(tmp_path: Path) -> None:
    made = home(tmp_path)
    file = made.home / "rollout.jsonl"
    file.write_text('{"payload":{"session_id":"aaa","id":"aaa"}}\n{"session_id":"aaa"}\n')
    link = tmp_path / "link"
    link.symlink_to(made.home)
    with file.open("ab") as writer:  # Codex has it open
        assert made.set_session(str(link / "rollout.jsonl"), "aaa", "bbb")
        writer.write(b"more\n")
    assert file.read_text() == '{"payload":{"session_id":"bbb","id":"aaa"}}\n{"session_id":"aaa"}\nmore\n'
    made.remove()


def test_a_file_of_another_form_or_place_is_not_touched(tmp_path: Path) -> None:
    made = home(tmp_path)
    text = '{"session": "aaa"}\n{"session_id":"aaa"}\n'
    inside, outside = made.home / "rollout.jsonl", tmp_path / "rollout.jsonl"
    inside.write_text(text)
    outside.write_text('{"session_id":"aaa"}\n')
    for path in (str(inside), str(outside), str(made.home / "none"), "\0", ""):
        assert not made.set_session(path, "aaa", "bbb")
    assert not made.set_session(str(inside), "aaa", "longer")
    assert inside.read_text() == text
    assert outside.read_text() == '{"session_id":"aaa"}\n'
    made.remove()
