"""Code that users copy runs unchanged: the examples for frameworks, and the code that `toolwire connect` shows for libraries.

The model is the demo model of `toolwire serve`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.free_port import free_port
from tests.programs.installed import NODE_MODULES, PYTHON, ROOT, node_library, node_program, python_library, search_path
from tests.programs.stage import serving
from tests.programs.vscode.installed import framework
from toolwire.cli.clients.client import ConnectTarget, fill
from toolwire.cli.clients.table import read_clients

pytestmark = pytest.mark.slow

FRAMEWORKS = {"autogen_agent": "autogen", "crewai_agent": "crewai", "semantic_kernel_agent": "semantic_kernel"}
SAID = ("get_weather said: 18 degrees and rain in Paris.", "get_time said: 12:30 in Paris.")
CALLED = "get_weather said: 18 degrees and rain in Paris."
PYTHONS = {
    "openai-python": "openai",
    "anthropic-python": "anthropic",
    "ollama-python": "ollama",
    "langchain": "langchain_openai",
    "openai-agents": "agents",
    "pydantic-ai": "pydantic_ai",
}
NODES = {
    "openai-node": "openai",
    "anthropic-node": "@anthropic-ai/sdk",
    "ollama-node": "ollama",
    "langchain-js": "langchain",
    "ai-sdk": "ai",
}
ALONE = {
    **{"autogen": "autogen", "crewai": "crewai", "semantic-kernel": "semantic_kernel"},
    **dict.fromkeys(("litellm", "llamaindex", "smolagents"), "libraries"),
}
# These programs print the tool's own result: the first two stop there, and smolagents wants a call of its final_answer tool, which the demo
# model does not make.
PRINTED = {
    "litellm": "get_weather 18 degrees and rain in Paris",
    "llamaindex": "18 degrees and rain in Paris",
    "smolagents": "Observations: 18 degrees and rain in Paris",
}
LIBRARIES = read_clients("libraries")
CASES = [(client.name, way.dialect) for client in LIBRARIES for way in client.ways]
_QUIET = {"OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


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


@pytest.mark.parametrize(("name", "dialect"), CASES)
def test_what_connect_shows_calls_the_tool(name: str, dialect: str, address: str, tmp_path: Path) -> None:
    client = next(client for client in LIBRARIES if client.name == name)
    target = ConnectTarget(address=address, model="demo/echo-tools", has_key=False)
    program = tmp_path / ("program.mjs" if name in NODES else "program.py")
    program.write_text(fill(client.way(dialect).code, target.placeholders(dialect)), encoding="utf-8")
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    output = _output(_command(name), program, {}, tmp_path)
    if name in PRINTED:
        assert PRINTED[name] in output.splitlines(), output[-1000:]
    else:
        assert output.splitlines()[-1].endswith(CALLED), output[-1000:]


def _command(name: str) -> list[str]:
    if name in NODES:
        node_library(NODES[name])
        return [str(node_program("node")), "--no-warnings"]
    if name in PYTHONS:
        python_library(PYTHONS[name])
        return [str(PYTHON), "-W", "ignore"]
    return [str(framework(ALONE[name])), "-W", "ignore"]


def _check(python: Path, name: str, address: str, folder: Path) -> None:
    program = ROOT / "examples" / f"{name}.py"
    output = _output([str(python), "-W", "ignore"], program, {"TOOLWIRE_URL": address}, folder)
    assert all(words in output.splitlines()[-1] for words in SAID), output[-1000:]


def _output(command: list[str], program: Path, more: dict[str, str], folder: Path) -> str:
    environment = {"PATH": search_path(), "HOME": str(folder), "LANG": "C.UTF-8", **_QUIET, **more}
    done = subprocess.run(
        [*command, str(program)], env=environment, cwd=folder, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout
