"""JavaScript libraries complete the task: the two vendors' SDKs with their tool runners and state, AI SDK, LangChain."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.programs.installed import NODE_MODULES, node_library, node_program
from tests.programs.library import Cases
from tests.programs.stage import Stage

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "js"
OPENAI = [
    "chat",
    "chat-stream",
    "chat-tool-runner",
    "chat-tool-runner-stream",
    "responses",
    "responses-stream",
    "responses-stateful",
    "responses-stateful-stream",
]
ANTHROPIC = ["messages", "messages-stream", "tool-runner", "tool-runner-stream", "thread"]
AI_SDK = [name + way for name in ("compatible", "chat", "responses", "messages") for way in ("", "-stream")]
LANGCHAIN = [name + way for name in ("chat", "responses", "messages") for way in ("", "-stream")]


def test_openai_sdk(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "openai", "openai_sdk.mjs", OPENAI)


def test_anthropic_sdk(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "@anthropic-ai/sdk", "anthropic_sdk.mjs", ANTHROPIC)


def test_ai_sdk(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "ai", "ai_sdk.mjs", AI_SDK)


def test_langchain(stage: Stage, tmp_path: Path) -> None:
    _run(stage, tmp_path, "langchain", "langchain.mjs", LANGCHAIN)


def _run(stage: Stage, folder: Path, library: str, script: str, cases: list[str]) -> None:
    node_library(library)
    # A script finds its libraries beside itself.
    scripts = shutil.copytree(FOLDER, folder / "js")
    (scripts / "node_modules").symlink_to(NODE_MODULES)
    Cases(stage, folder, cases).run([node_program("node"), scripts / script])
