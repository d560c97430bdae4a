"""`toolwire run` with the real programs: they finish the task, and the home folder stays byte-identical."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.free_port import free_port
from tests.programs.installed import ROOT, node_program
from tests.programs.opencode import OFFLINE
from tests.programs.stage import (
    CONTENT,
    Stage,
    Task,
    calling,
    final_text,
    gateway_config,
    prompt,
    reading,
    serving,
    upstream_config,
)

pytestmark = pytest.mark.slow
MODEL = "upstream/a-model"


def tree(folder: Path) -> dict[str, str]:
    """The name, mode and content of everything inside."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


def claude(task: Task) -> list[str]:
    script = prompt(
        reading("Read", arguments={"file_path": str(task.source)}),
        calling("Write", arguments={"file_path": str(task.target), "content": CONTENT}),
        final_text(),
    )
    return ["-p", script, "--allowedTools", "Read,Write"]


def codex(task: Task) -> list[str]:
    write = f"printf %s '{CONTENT}' > OUT.md"
    script = prompt(
        reading("exec_command", arguments={"cmd": "cat README.md", "workdir": str(task.project)}),
        calling("exec_command", arguments={"cmd": write, "workdir": str(task.project)}),
        final_text(),
    )
    return ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", script]


def opencode(task: Task) -> list[str]:
    script = prompt(
        reading("read", arguments={"filePath": str(task.source)}),
        calling("write", arguments={"filePath": str(task.target), "content": CONTENT}),
        final_text(),
    )
    return ["run", script]


CLIENTS: dict[str, Any] = {"claude": claude, "codex": codex, "opencode": opencode}
# Settings of the user, which must stay, and which the client must not need.
SETTINGS = {
    ".claude/settings.json": '{"model": "mine", "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}',
    ".claude/CLAUDE.md": "Be brief.\n",
    ".claude.json": '{"theme": "dark"}',
    ".codex/config.toml": 'model = "mine"\nmodel_provider = "nowhere"\n[model_providers.nowhere]\nname = "nowhere"\nbase_url = "http://127.0.0.1:9"\n',
    ".config/opencode/opencode.json": '{"model": "mine/mine"}',
    ".config/git/config": "[user]\n\tname = somebody\n",
    ".local/share/other/state": "something",
}


@pytest.mark.parametrize("has_key", [False, True], ids=["no key", "key"])
@pytest.mark.parametrize("client", CLIENTS)
def test_the_program_works_and_the_home_stays_as_it_was(client: str, has_key: bool, tmp_path: Path) -> None:
    node_program(client)
    upstream = free_port()
    (tmp_path / "upstream.toml").write_text(upstream_config(upstream), encoding="utf-8")
    settings = gateway_config(free_port(), upstream, "openai-chat").replace(
        "[server]", '[server]\nkeys = ["k-secret-1"]\n' if has_key else "[server]"
    )
    config = tmp_path / "toolwire.toml"
    config.write_text(f'{settings}\nmodels = ["a-model"]\ncontext_windows = {{ "*" = 64000 }}\n', encoding="utf-8")
    task = Task(Stage("openai-chat", "", tmp_path), tmp_path / "task")
    for name, text in SETTINGS.items():
        (task.home / name).parent.mkdir(parents=True, exist_ok=True)
        (task.home / name).write_text(text, encoding="utf-8")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    before = tree(task.home)
    play = [sys.executable, "-m", "tests.programs.upstream", str(tmp_path / "upstream.toml"), str(tmp_path / "journal")]
    with serving(play, upstream, tmp_path / "upstream.log"):
        output = task.run(
            [
                sys.executable,
                "-m",
                "toolwire",
                "run",
                client,
                "--config",
                config,
                "--model",
                MODEL,
                "--",
                *CLIENTS[client](task),
            ],
            timeout=180,
            TMPDIR=str(temporary),
            PYTHONPATH=str(ROOT / "src"),
            UPSTREAM_KEY="sk-upstream",
            **(OFFLINE if client == "opencode" else {}),
        )
    task.check(output)
    assert tree(task.home) == before
    errors = (task.folder / "errors").read_text(encoding="utf-8")
    assert f"uses {MODEL} at http://127.0.0.1:" in errors
