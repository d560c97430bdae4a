"""The SDKs, LangChain, AI SDK, OpenAI Agents and pydantic-ai on a model without tools: every API that works on one with tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.libraries import LIBRARIES
from tests.programs.simulated.stage import CORRECTED, Setting, steps_of, straight
from tests.programs.stage import Stage
from tests.thorough import some

pytestmark = pytest.mark.slow

VENDORS = ("openai", "anthropic", "langchain", "langchain.js")
OTHERS = (Setting("plain", "anthropic"), Setting("plain", "openai-responses"))
PAIRS = [(library, setting) for library in VENDORS for setting in OTHERS]
# LangChain for JavaScript supports all dialects and starts in a second; the Python libraries take five.
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
    cases = LIBRARIES[library].cases
    LIBRARIES[library].run(stage, folder)
    assert {case: steps_of(stage, folder / case / "project") for case in cases} == dict.fromkeys(cases, steps)
