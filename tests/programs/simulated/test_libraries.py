"""The SDKs, LangChain, AI SDK, OpenAI Agents and pydantic-ai on a model without tools: every way that works on one that has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import test_javascript_libraries as javascript
from tests.programs import test_python_libraries as python
from tests.programs.simulated.stage import CORRECTED, Setting, steps_of, straight
from tests.programs.stage import Stage
from tests.thorough import some

pytestmark = pytest.mark.slow

Library = tuple[Callable[[Stage, Path], None], list[str]]
PYTHON: dict[str, Library] = {
    "openai": (python.test_openai_sdk, python.OPENAI),
    "anthropic": (python.test_anthropic_sdk, python.ANTHROPIC),
    "langchain": (python.test_langchain, python.LANGCHAIN),
    "openai-agents": (python.test_openai_agents, python.AGENTS),
    "pydantic-ai": (python.test_pydantic_ai, python.PYDANTIC),
}
JAVASCRIPT: dict[str, Library] = {
    "openai.js": (javascript.test_openai_sdk, javascript.OPENAI),
    "anthropic.js": (javascript.test_anthropic_sdk, javascript.ANTHROPIC),
    "ai-sdk.js": (javascript.test_ai_sdk, javascript.AI_SDK),
    "langchain.js": (javascript.test_langchain, javascript.LANGCHAIN),
}
LIBRARIES = PYTHON | JAVASCRIPT
VENDORS = ("openai", "anthropic", "langchain", "langchain.js")
OTHERS = (Setting("plain", "anthropic"), Setting("plain", "openai-responses"))
PAIRS = [(library, setting) for library in VENDORS for setting in OTHERS]
# LangChain for JavaScript speaks all dialects and starts in a second; those for Python take five.
KEPT = [("openai", OTHERS[0]), ("anthropic", OTHERS[1]), *(("langchain.js", setting) for setting in OTHERS)]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("stage", [Setting("plain")], indirect=True)
def test_library(stage: Stage, tmp_path: Path, library: str) -> None:
    _run(stage, tmp_path, library, straight(3))


@pytest.mark.parametrize(("library", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_library_on_servers_of_other_dialects(stage: Stage, tmp_path: Path, library: str) -> None:
    _run(stage, tmp_path, library, straight(3))


@pytest.mark.parametrize("library", some(VENDORS, ["openai", "langchain.js"]))
@pytest.mark.parametrize("stage", [Setting("sloppy")], indirect=True)
def test_library_with_a_model_that_is_sloppy(stage: Stage, tmp_path: Path, library: str) -> None:
    _run(stage, tmp_path, library, CORRECTED)


def _run(stage: Stage, folder: Path, library: str, steps: list[tuple[int, int]]) -> None:
    run, cases = LIBRARIES[library]
    run(stage, folder)
    assert {case: steps_of(stage, folder / case / "project") for case in cases} == dict.fromkeys(cases, steps)
