"""`toolwire init`: the file it writes, its questions, and that it replaces nothing unasked."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from toolwire.catalog.discovery import ACCOUNTS
from toolwire.cli.app import run
from toolwire.cli.start.init import configuration, describe
from toolwire.config.file import BackendConfig, Config, load

Shown = pytest.CaptureFixture[str]
SECRET = "sk-secret-of-the-test"
CLOSED = "http://127.0.0.1:9"  # nothing listens there, so that no test reaches a provider
SOURCE = Path(__file__).resolve().parents[3] / "src"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for account in ACCOUNTS:
        monkeypatch.delenv(account.key, raising=False)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder / "data"),
        "PATH": "/usr/bin:/bin",
        "OPENAI_API_KEY": SECRET,
        "OPENAI_BASE_URL": f"{CLOSED}/v1",
        "ANTHROPIC_API_KEY": SECRET,
        "ANTHROPIC_BASE_URL": CLOSED,
    }


@pytest.mark.slow
def test_the_file_has_what_was_found_and_no_secret(folder: Path, capsys: Shown) -> None:
    assert run(["init", "--yes"]) == 1  # the checks report that nothing listens
    text = (folder / "toolwire.toml").read_text()
    assert SECRET not in text
    data = tomllib.loads(text)
    assert data["backends"]["openai"] == {
        "kind": "openai-chat",
        "base_url": f"{CLOSED}/v1",
        "key": "env:OPENAI_API_KEY",
    }
    assert data["backends"]["anthropic"]["key"] == "env:ANTHROPIC_API_KEY"
    assert data["server"] == {"host": "127.0.0.1", "port": 18741, "default": "openai"}
    assert "# GEMINI_API_KEY" not in text
    assert '# key = "env:GEMINI_API_KEY"' in text
    shown = capsys.readouterr().out
    assert "  openai      OPENAI_API_KEY\n" in shown
    assert "WRONG back end openai: " in shown
    assert SECRET not in shown
    assert shown.endswith("`toolwire run` a client for one session.\n")


def test_every_commented_block_is_valid(folder: Path) -> None:
    """With every # removed that stands before a key or a table."""
    lines = configuration((), "")
    blocks = [line.removeprefix("# ") if " = " in line or line.startswith("# [") else line for line in lines]
    text = "\n".join(line for line in blocks if not line.startswith("#"))
    config = load_text(folder, text.replace('"openai/MODEL"', '"openai/m"'))
    assert {backend.name for backend in config.backends} >= {account.name for account in ACCOUNTS} | {"mine"}
    assert dict(config.aliases) == {"fast": "openai/m"}


def load_text(folder: Path, text: str) -> Config:
    (folder / "tried.toml").write_text(text)
    return load(folder / "tried.toml", {"TOOLWIRE_KEY": "k-1"})


def test_local_servers_and_programs(folder: Path) -> None:
    found = (
        BackendConfig(name="codex", kind="codex"),
        BackendConfig(name="ollama", kind="openai-chat", base_url="http://127.0.0.1:11434/v1", models=("a", "b")),
    )
    text = "\n".join(configuration(found, "ollama"))
    assert "# It answers on this machine, with 2 models.\n[backends.ollama]\n" in text
    config = load_text(folder, text)
    assert [backend.name for backend in config.backends][:2] == ["codex", "ollama"]
    assert config.server.default == "ollama"


def test_without_anything_the_demo_model_is_named() -> None:
    assert "Only the embedded demo model answers." in "\n".join(describe(()))
    assert "default" not in tomllib.loads("\n".join(configuration((), "")))["server"]


@pytest.mark.slow
def test_an_existing_file_is_not_replaced(folder: Path, capsys: Shown) -> None:
    (folder / "toolwire.toml").write_text("# mine\n")
    assert run(["init", "--yes"]) == 2
    assert "toolwire.toml: this file exists. --force replaces it" in capsys.readouterr().err
    assert (folder / "toolwire.toml").read_text() == "# mine\n"
    run(["init", "--yes", "--force"])
    (backup,) = folder.glob("toolwire.toml.*.bak")
    assert backup.read_text() == "# mine\n"
    assert "[backends.openai]" in (folder / "toolwire.toml").read_text()


def test_the_default_and_the_file_are_flags(folder: Path, capsys: Shown) -> None:
    run(["init", "--yes", "--default", "anthropic", "--file", "there/mine.toml"])
    assert tomllib.loads((folder / "there/mine.toml").read_text())["server"]["default"] == "anthropic"
    assert run(["init", "--yes", "--default", "anthropix"]) == 2
    assert 'found no back end "anthropix"; did you mean "anthropic"?' in capsys.readouterr().err
    assert not (folder / "toolwire.toml").exists()


@pytest.mark.slow
def test_two_questions_at_a_terminal(folder: Path) -> None:
    (folder / "toolwire.toml").write_text("# mine\n")
    text, code = typed(folder, "y\n7\n2\n")
    assert code == 1
    assert text.count("Which one gets model names") == 2  # 7 is none of them
    assert tomllib.loads((folder / "toolwire.toml").read_text())["server"]["default"] == "anthropic"


@pytest.mark.slow
def test_a_no_at_a_terminal_writes_nothing(folder: Path) -> None:
    (folder / "toolwire.toml").write_text("# mine\n")
    text, code = typed(folder, "\n")
    assert code == 1
    assert "Nothing was written." in text
    assert (folder / "toolwire.toml").read_text() == "# mine\n"


def typed(folder: Path, keys: str) -> tuple[str, int]:
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "toolwire", "init"],
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(folder) | {"PYTHONPATH": str(SOURCE)},
        cwd=folder,
        start_new_session=True,
    )
    os.close(follower)
    os.write(leader, keys.encode())
    output, _ = process.communicate(timeout=120)
    os.close(leader)
    return output.decode(), process.returncode
