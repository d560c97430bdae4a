"""The vendors' SDKs with their tool runners and state, LangChain, AI SDK, OpenAI Agents and pydantic-ai complete the task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.libraries import NODE_LIBRARIES, PYTHON_LIBRARIES
from tests.programs.stage import KINDS, Stage
from tests.thorough import some

pytestmark = pytest.mark.slow

PAIRS = [(library, kind) for library in PYTHON_LIBRARIES for kind in KINDS]
# Importing a Python library takes longer than its test, so each one runs on one upstream, and each upstream gets a library. All pairs of
# dialects are among the JavaScript libraries, and in tests/clients for the vendors' own.
FEW = [
    ("openai", "anthropic"),
    ("anthropic", "openai-responses"),
    ("langchain", "openai-chat"),
    ("langchain-ollama", "anthropic"),
    ("openai-agents", "openai-responses"),
    ("pydantic-ai", "anthropic"),
]


@pytest.mark.parametrize(("library", "stage"), some(PAIRS, FEW), indirect=["stage"])
def test_a_python_library(stage: Stage, tmp_path: Path, library: str) -> None:
    PYTHON_LIBRARIES[library].run(stage, tmp_path)


@pytest.mark.parametrize("library", NODE_LIBRARIES)
def test_a_javascript_library(stage: Stage, tmp_path: Path, library: str) -> None:
    NODE_LIBRARIES[library].run(stage, tmp_path)
