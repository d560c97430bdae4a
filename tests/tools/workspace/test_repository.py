from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tools.workspace.using import Box
from toolwire.tools.workspace import Shell
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.messages import Refused
from toolwire.tools.workspace.repository import protected
from toolwire.tools.workspace.sandbox import walls

pytestmark = pytest.mark.slow

GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def box(tmp_path: Path) -> Box:
    found = walls(Shell(), str(tmp_path), "/bin/bash", Budget(20))
    if found.why_not:
        pytest.skip(f"commands cannot be sandboxed here: {found.why_not}")
    return Box(tmp_path, shell=True)


def repository_in(root: Path) -> None:
    settings = {"HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    for words in (["init", "-q"], ["config", "user.name", "A"], ["config", "user.email", "a@b"]):
        subprocess.run(["git", *words], cwd=root, env=settings, check=True)


@GIT
def test_commands_can_commit(box: Box) -> None:
    repository_in(box.root)
    text = box.text("shell", command="echo x > a && git add a && git commit -qm first && git log --format=%s")
    assert "first" in text
    assert text.endswith("; sandboxed]")


@GIT
@pytest.mark.parametrize(
    "command",
    [
        "echo 'touch ran' > .git/hooks/pre-commit",
        "printf '[core]\\n\\tfsmonitor = touch ran\\n' >> .git/config",
        "rm .git/config",
        "git config core.fsmonitor 'touch ran'",
        "mv .git/hooks .git/gone && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
        "mv .git other && mkdir .git && cp -r other/. .git && echo x > .git/hooks/pre-commit",
        "chmod u+w .git/config; mount -o remount,rw .git/config; echo x >> .git/config",
    ],
)
def test_commands_change_neither_hooks_nor_configuration(box: Box, command: str) -> None:
    repository_in(box.root)
    before = (box.root / ".git/config").read_bytes()
    hooks = sorted(os.listdir(box.root / ".git/hooks"))
    box.text("shell", command=command)
    assert (box.root / ".git/config").read_bytes() == before
    assert sorted(os.listdir(box.root / ".git/hooks")) == hooks


@GIT
def test_what_is_missing_cannot_be_created(box: Box) -> None:
    repository_in(box.root)
    shutil.rmtree(box.root / ".git/hooks")
    (box.root / ".git/config").unlink()
    box.text("shell", command="mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo x > .git/config")
    assert os.listdir(box.root / ".git/hooks") == []
    assert (box.root / ".git/config").read_bytes() == b""


@GIT
def test_a_file_that_redirects_git_is_removed_after_the_command(box: Box) -> None:
    repository_in(box.root)
    box.text("shell", command="mkdir evil && echo ../evil > .git/commondir")
    assert not (box.root / ".git/commondir").exists()
    (box.root / ".git/commondir").write_text("..")
    box.text("shell", command="true")
    assert (box.root / ".git/commondir").exists()


def test_submodules_are_read_only(box: Box) -> None:
    box.file(".git/modules/a/config", "kept")
    box.text("shell", command="echo changed > .git/modules/a/config")
    assert (box.root / ".git/modules/a/config").read_text() == "kept"


def test_a_git_file_cannot_be_replaced(box: Box) -> None:
    box.file(".git", "gitdir: ../elsewhere\n")
    box.text("shell", command="echo 'gitdir: evil' > .git; mv .git other; rm -f .git")
    assert (box.root / ".git").read_text() == "gitdir: ../elsewhere\n"


def test_without_a_repository_nothing_is_mounted(tmp_path: Path) -> None:
    with protected(str(tmp_path)) as arguments:
        assert arguments == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [".git", ".git/hooks", ".git/config"])
def test_a_link_in_the_place_of_a_protected_entry_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to("elsewhere")
    with pytest.raises(Refused, match="symbolic link"), protected(str(tmp_path)):
        pass
