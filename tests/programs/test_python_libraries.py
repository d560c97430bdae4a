"""Python libraries complete the task: the two vendors' SDKs with their tool runners and state, LangChain, OpenAI Agents, pydantic-ai."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.installed import PYTHON, python_library
from tests.programs.library import Cases
from tests.programs.stage import KINDS, Stage
from tests.thorough import some

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "python"
OPENAI = [
    "chat",
    "chat-raw-stream",
    "chat-stream-helper",
    "chat-asynchronous",
    "responses",
    "responses-stream-helper",
    "responses-stateful",
    "responses-stateful-stream",
    "responses-asynchronous",
    "responses-kept",
    "responses-in-background",
    "conversation",
    "tool-runner",
    "tool-runner-stream",
]
ANTHROPIC = [
    "messages",
    "messages-stream",
    "messages-asynchronous",
    "counted",
    "tool-runner",
    "tool-runner-stream",
    "tool-runner-without-thread",
    "tool-runner-asynchronous",
    "thread",
]
LANGCHAIN = [
    dialect + way for dialect in ("chat", "responses", "messages") for way in ("", "-stream", "-agent", "-agent-stream")
]

AGENTS = ["chat", "chat-stream", "responses", "responses-stream"]
PYDANTIC = [*AGENTS, "messages", "messages-stream"]


def on(kept: str) -> pytest.MarkDecorator:
    """Importing such a library takes longer than its test, so each library runs on one upstream, and each upstream gets one library.

    Each pair of dialects is in test_javascript_libraries.py, and in tests/clients for the vendors' own.
    """
    return pytest.mark.parametrize("stage", some(KINDS, [kept]), indirect=True)


@on("anthropic")
def test_openai_sdk(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "openai", "openai_sdk.py", OPENAI)


@on("openai-responses")
def test_anthropic_sdk(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "anthropic", "anthropic_sdk.py", ANTHROPIC)


@on("openai-chat")
def test_langchain(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "langchain", "langchain_agents.py", LANGCHAIN)


@on("openai-responses")
def test_openai_agents(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "agents", "openai_agents.py", AGENTS)


@on("anthropic")
def test_pydantic_ai(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "pydantic_ai", "pydantic_agents.py", PYDANTIC)


def _run(stage: Stage, folder: Path, library: str, script: str, cases: list[str]) -> None:
    python_library(library)
    Cases(stage, folder, cases).run([PYTHON, "-W", "ignore", FOLDER / script])
