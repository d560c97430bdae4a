from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.tools.workspace.using import CANARY, Box
from toolwire.errors import ConfigError
from toolwire.tools.workspace import Shell
from toolwire.tools.workspace.limits import Budget
from toolwire.tools.workspace.sandbox import walls

pytestmark = pytest.mark.slow


@pytest.fixture
def box(tmp_path: Path) -> Box:
    found = walls(Shell(), str(tmp_path), "/bin/bash", Budget(20))
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


def test_without_bubblewrap_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert walls(Shell(), str(tmp_path), "/bin/bash", Budget(5)).why_not == "bubblewrap (bwrap) is not installed"
    assert walls(Shell(sandbox="never"), str(tmp_path), "/bin/bash", Budget(5)).why_not == "it is switched off"


def test_a_bubblewrap_that_does_not_work_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "bin" / "bwrap").write_text("#!/bin/sh\necho no user namespaces >&2\nexit 1\n")
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    found = walls(Shell(), str(tmp_path / "root"), "/bin/bash", Budget(5))
    assert found.why_not == "bubblewrap does not work here (no user namespaces)"
    assert found.arguments == ()


def test_a_variable_named_like_a_secret_is_refused() -> None:
    with pytest.raises(ConfigError, match="GITHUB_TOKEN"):
        Shell(environment=("CI", "GITHUB_TOKEN"))
