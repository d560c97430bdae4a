"""The SDKs, LangChain, AI SDK, OpenAI Agents and pydantic-ai on Cursor's agent: every API that works on a plain model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.cursor.journal import check
from tests.programs.cursor.stage import RUN_ANEW, RUN_PARKED, SETTINGS, SSE_ANEW, SSE_PARKED, CursorStage
from tests.programs.libraries import LIBRARIES
from tests.thorough import some

pytestmark = pytest.mark.slow

PAIRS = [(library, setting) for library in LIBRARIES for setting in SETTINGS]
# LangChain for JavaScript covers the same as the Python one, and starts in a second.
KEPT = [("openai", RUN_ANEW), ("anthropic", SSE_PARKED), ("langchain.js", RUN_PARKED), ("langchain.js", SSE_ANEW)]


@pytest.mark.parametrize(("library", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_library(stage: CursorStage, tmp_path: Path, library: str) -> None:
    cases = LIBRARIES[library].cases
    LIBRARIES[library].run(stage, tmp_path)
    for case in cases:
        check(stage, tmp_path / case / "project", steps=3)
