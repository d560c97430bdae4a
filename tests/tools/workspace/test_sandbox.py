from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.tools.workspace.box import CANARY, Box
from toolwire.errors import ConfigError
from toolwire.tools.workspace import Shell
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.messages import ToolRefused
from toolwire.tools.workspace.sandbox import find_sandbox, git_mounts

pytestmark = pytest.mark.slow


@pytest.fixture
def box(tmp_path: Path) -> Box:
    found = find_sandbox(Shell(), str(tmp_path), "/bin/bash", Budget(20))
    if found.why_not:
        pytest.skip(f"commands cannot be sandboxed here: {found.why_not}")
    return Box(tmp_path, shell=True)


def test_commands_write_in_the_root_and_nowhere_else(box: Box) -> None:
    text = box.text(
        "shell",
        command=f"echo hi > inside; cat {box.canary}; echo x > {box.outside}/new; touch /usr/x; ls {box.outside}",
    )
    assert text.endswith("; sandboxed]")
    assert CANARY not in text
    assert (box.root / "inside").read_text() == "hi\n"
    assert not Path("/usr/x").exists()
    assert box.is_untouched()


def test_a_link_out_of_the_root_leads_nowhere(box: Box) -> None:
    (box.root / "link").symlink_to(box.canary)
    assert CANARY not in box.text("shell", command="cat link")


def test_home_password_files_and_other_processes_are_not_there(box: Box) -> None:
    text = box.text(
        "shell", command="echo ~; ls ~ /root /home; cat /etc/shadow; ls /proc | grep -c '^[0-9]'; kill -0 1 && echo own"
    )
    assert "/tmp/home" in text
    assert "root:" not in text
    assert int(next(line for line in text.splitlines() if line.isdigit())) < 10


def test_there_is_no_network(box: Box) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"(exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}) 2>/dev/null && echo reached"
        assert "reached" not in box.text("shell", command=command)
        reaching = Box(box.root.parent, shell=Shell(network=True))
        assert "reached" in reaching.text("shell", command=command)


def test_folders_of_the_owner_can_be_read_but_not_written(box: Box) -> None:
    reading = Box(box.root.parent, shell=Shell(readable=(str(box.outside),)))
    assert CANARY in reading.text("shell", command=f"cat {box.canary}; echo x >> {box.canary}")
    assert box.is_untouched()


def test_nothing_stays_behind(box: Box) -> None:
    box.text("shell", command="setsid sleep 4713 >/dev/null 2>&1 & exit 0")
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            assert b"4713" not in Path(f"/proc/{number}/cmdline").read_bytes()
        except OSError:
            continue


def test_without_bubblewrap_the_reason_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_sandbox(Shell(), str(tmp_path), "/bin/bash", Budget(5)).why_not == "bubblewrap (bwrap) is not installed"
    assert find_sandbox(Shell(sandbox="never"), str(tmp_path), "/bin/bash", Budget(5)).why_not == "it is switched off"


def test_a_bubblewrap_that_does_not_work_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "bin" / "bwrap").write_text("#!/bin/sh\necho no user namespaces >&2\nexit 1\n")
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    found = find_sandbox(Shell(), str(tmp_path / "root"), "/bin/bash", Budget(5))
    assert found.why_not == "bubblewrap does not work here (no user namespaces)"
    assert found.arguments == ()


def test_a_variable_named_like_a_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="GITHUB_TOKEN"):
        Shell(environment=("CI", "GITHUB_TOKEN"))


GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


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
    with git_mounts(str(tmp_path)) as arguments:
        assert arguments == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [".git", ".git/hooks", ".git/config"])
def test_a_link_in_the_place_of_a_protected_entry_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to("elsewhere")
    with pytest.raises(ToolRefused, match="symbolic link"), git_mounts(str(tmp_path)):
        pass
