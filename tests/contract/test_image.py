"""examples/operating/Dockerfile, as far as it can be checked without a Docker engine: its steps, the size of what it installs, and its user and file system."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest

from scripts.release import build, environment_with
from tests.free_port import free_port
from tests.server.harness import ask
from tests.server_process import server_process

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "operating"
DOCKERFILE = re.sub(r"^#.*\n", "", (FOLDER / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
STEPS = [tuple(line.split(maxsplit=1)) for line in DOCKERFILE.replace("\\\n", " ").splitlines() if line]
LARGEST = 120_000_000
BASE = 50_000_000  # python:3.13-alpine has about 45 MB


def values(instruction: str) -> list[str]:
    return [value for name, value in STEPS if name == instruction]


def test_it_is_built_in_two_stages_and_runs_as_an_ordinary_user() -> None:
    assert [value.partition(" ")[0] for value in values("FROM")] == ["python:${PYTHON}-alpine"] * 2
    names = [name for name, _ in STEPS]
    assert values("USER") == ["1000:1000"]
    assert "RUN" not in names[names.index("USER") :]
    assert values("ADD") == []
    assert values("ENTRYPOINT") == ['["toolwire"]']


def test_only_files_that_exist_and_are_in_the_context_are_copied() -> None:
    ignored = (FOLDER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    copied = [name for value in values("COPY") if not value.startswith("--from") for name in value.split()[:-1]]
    assert copied == ["pyproject.toml", "README.md", "LICENSE", "src"]
    assert all((ROOT / name).exists() and f"!{name}" in ignored for name in copied)


def test_the_health_check_asks_a_path_that_needs_no_key() -> None:
    (check,) = values("HEALTHCHECK")
    assert "http://127.0.0.1:18741/healthz" in check
    assert values("EXPOSE") == ["18741"]


def test_the_script_is_valid_and_starts_it_as_the_page_says() -> None:
    script = FOLDER / "build-image.sh"
    subprocess.run(["sh", "-n", str(script)], check=True)
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    for option in ("--read-only", "--tmpfs /tmp", "--cap-drop ALL"):
        assert option in script.read_text(encoding="utf-8")
        assert option in page
    assert str(LARGEST) in script.read_text(encoding="utf-8")


def test_what_it_installs_leaves_the_image_under_its_limit() -> None:
    """The sizes of the packages on this system, with bytecode, which is about as large as the source."""
    assert installed_bytes() < LARGEST - BASE


def installed_bytes() -> int:
    sizes, seen, waiting = (
        0,
        set[str](),
        ["toolwire", "asyncpg", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"],
    )
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        waiting += [re.match(r"[\w.-]+", line)[0] for line in found.requires or () if ";" not in line]
        files = [Path(str(found.locate_file(file))) for file in found.files or ()]
        if name == "toolwire":
            files = [path for path in (ROOT / "src").rglob("*") if path.is_file()]
        for path in files:
            if path.is_file() and path.suffix not in {".c", ".pyx", ".pxd", ".pyi", ".pyc"}:
                sizes += path.stat().st_size * (2 if path.suffix == ".py" else 1)
    return sizes


@pytest.mark.slow
def test_the_gateway_works_as_user_1000_on_a_read_only_file_system(tmp_path: Path) -> None:
    sandbox = shutil.which("bwrap")
    probe = ["--ro-bind", "/", "/", "--unshare-user", "--uid", "1000", "--gid", "1000"]
    if sandbox is None or subprocess.run([sandbox, *probe, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap is not installed, or may not make a user namespace")
    if not (ROOT / ".git").exists():
        pytest.skip("a release is built from a git checkout")
    (wheel,) = (path for path in build(tmp_path / "dist", 1_700_000_000) if path.suffix == ".whl")
    python = environment_with(wheel, tmp_path / "venv", offline=True)
    home, port, key = tmp_path / "home", free_port(), "a-key-for-this-test-alone"
    home.mkdir()
    config = tmp_path / "toolwire.toml"
    config.write_text(f'[server]\nhost = "0.0.0.0"\nport = {port}\nkeys = ["env:TOOLWIRE_KEY"]\n', encoding="utf-8")
    places = ["--proc", "/proc", "--dev", "/dev", "--bind", str(home), str(home)]
    command = [
        sandbox,
        *probe,
        *places,
        "--die-with-parent",
        str(python.with_name("toolwire")),
        "serve",
        "--config",
        str(config),
    ]
    environment = {"PATH": os.defpath, "HOME": str(home), "TOOLWIRE_KEY": key, "PYTHONDONTWRITEBYTECODE": "1"}
    with server_process(command, port, tmp_path / "log", environment):
        assert ask(port, "GET", "/healthz").status == 200
        body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "hello"}]}
        answer = ask(port, "POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
        assert answer.status == 200, answer.body
    assert any(home.rglob("state.db"))
