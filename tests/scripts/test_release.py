"""scripts/release.py: the same bytes each time, checked in an empty environment, with checksums and a bill of materials."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from scripts.release import BILL, CHECKSUMS, ReleaseFault, check, commit_time, environment_with, main
from toolwire import __version__

ROOT = Path(__file__).resolve().parents[2]
MOMENT = "1700000000"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built, installed in an empty environment, and tried there."""
    if not (ROOT / ".git").exists():
        pytest.skip("a release is built from a git checkout")
    folder = tmp_path_factory.mktemp("release") / "dist"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", MOMENT)
        assert main(["--offline", str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_a_release_has_a_wheel_a_source_archive_checksums_and_a_bill(release: Path) -> None:
    assert sorted(path.name for path in release.iterdir()) == sorted(
        [CHECKSUMS, f"toolwire-{__version__}-py3-none-any.whl", f"toolwire-{__version__}.tar.gz", BILL]
    )
    for line in (release / CHECKSUMS).read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert digest == hashlib.sha256((release / name).read_bytes()).hexdigest()


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package_and_nothing_else(release: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "src/toolwire"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {name.removeprefix("src/") for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    with zipfile.ZipFile(next(release.glob("*.whl"))) as wheel:
        packed = {name for name in wheel.namelist() if not name.startswith(f"toolwire-{__version__}.dist-info/")}
    assert tracked - packed == {name for name in tracked - packed if name.endswith(".gitignore")}
    assert not [name for name in packed if name.endswith(".pyc") or "__pycache__" in name]


@pytest.mark.slow
def test_the_source_archive_can_be_built_from_and_has_one_time(release: Path) -> None:
    with tarfile.open(next(release.glob("*.tar.gz"))) as archive:
        members = archive.getmembers()
    names = {member.name.partition("/")[2] for member in members}
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "src/toolwire/__init__.py"} <= names
    assert {member.mtime for member in members} == {int(MOMENT)}
    assert not any("node_modules" in name for name in names)


@pytest.mark.slow
def test_a_wheel_that_does_not_work_is_no_release(release: Path, tmp_path: Path) -> None:
    wheel = next(release.glob("*.whl"))
    python = environment_with(wheel, tmp_path / "venv", offline=True)
    with pytest.raises(ReleaseFault, match=rf"--version printed 'toolwire {re.escape(__version__)}"):
        check(python, "9.9.9")
    (broken,) = (tmp_path / "venv").rglob("toolwire/cli/serve.py")
    broken.write_text("raise SystemExit(5)\n", encoding="utf-8")
    with pytest.raises(ReleaseFault, match="the gateway does not answer"):
        check(python, __version__)


@pytest.mark.slow
def test_the_bill_names_every_dependency_with_its_version(release: Path) -> None:
    bill = json.loads((release / BILL).read_text(encoding="utf-8"))
    names = {component["name"]: component for component in bill["components"]}
    assert {"uvicorn", "msgspec", "cyclopts", "rich", "httptools", "platformdirs"} <= names.keys()
    assert "mcp" not in names  # an extra
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"


def test_the_time_is_given_or_that_of_the_commit(tmp_path: Path) -> None:
    assert commit_time({"SOURCE_DATE_EPOCH": "7"}) == 7
    with pytest.raises(ReleaseFault, match="set SOURCE_DATE_EPOCH"):
        commit_time({}, tmp_path)
    environment = os.environ | {"GIT_COMMITTER_DATE": "1600000000 +0000", "HOME": str(tmp_path)}
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run(["git", *command], cwd=tmp_path, env=environment, check=True)
    assert commit_time({}, tmp_path) == 1_600_000_000
