"""The examples for frameworks run as a reader would start them, against `toolwire serve` with its demo model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.installed import PYTHON, ROOT, python_library, search_path
from tests.programs.stage import free_port, serving
from tests.programs.vscode.installed import framework

pytestmark = pytest.mark.slow

FRAMEWORKS = {"autogen_agent": "autogen", "crewai_agent": "crewai", "semantic_kernel_agent": "semantic_kernel"}
SAID = ("get_weather said: 18 degrees and rain in Paris.", "get_time said: 12:30 in Paris.")
_QUIET = {"OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("gateway"), free_port()
    file = folder / "toolwire.toml"
    file.write_text(f'[server]\nport = {port}\n[store]\nkind = "memory"\n', encoding="utf-8")
    with serving([sys.executable, "-m", "toolwire", "serve", "--config", str(file)], port, folder / "gateway.log"):
        yield f"http://127.0.0.1:{port}"


def test_langchain(address: str, tmp_path: Path) -> None:
    python_library("langchain_openai")
    _check(PYTHON, "langchain_agent", address, tmp_path)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework(name: str, address: str, tmp_path: Path) -> None:
    _check(framework(FRAMEWORKS[name]), name, address, tmp_path)


def _check(python: Path, name: str, address: str, folder: Path) -> None:
    environment = {"PATH": search_path(), "HOME": str(folder), "LANG": "C.UTF-8", "TOOLWIRE_URL": address, **_QUIET}
    command = [str(python), "-W", "ignore", str(ROOT / "examples" / f"{name}.py")]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    assert all(words in done.stdout.splitlines()[-1] for words in SAID), done.stdout[-1000:]
