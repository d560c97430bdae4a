"""docs/simulated.md and docs/codex.md are correct: their configurations load, and the prompt is the one that models get."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from toolwire import profiles
from toolwire.backends.codex.wire.versions import TIERS
from toolwire.calls.written.request import tool_rules
from toolwire.config.file import load
from toolwire.types import Tool

DOCS = Path(__file__).parents[2] / "docs"
PAGE, CODEX = ((DOCS / name).read_text(encoding="utf-8") for name in ("simulated.md", "codex.md"))
SAMPLES = re.findall(r"```toml\n(.*?)```", PAGE + CODEX, re.DOTALL)
SILENT = {"openai", "openai-responses", "azure", "anthropic-api", "anthropic-oauth"}


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_configuration_loads(tmp_path: Path, sample: str) -> None:
    path = tmp_path / "toolwire.toml"
    path.write_text(sample, encoding="utf-8")
    config = load(path, {})
    for backend in config.backends:
        if backend.is_simulated:
            assert backend.guard == "retry"
            assert backend.policy == ("error" if backend.name == "strict" else "text")
    assert not config.warnings


def test_every_server_has_a_sample() -> None:
    assert {"ollama", "llamacpp", "lmstudio", "vllm", "codex"} <= set(re.findall(r"\[backends\.([a-z]+)\]", PAGE))


def test_the_prompt_begins_as_shown() -> None:
    (shown,) = re.findall(r"```text\n(# Tools\n.*?)\.\.\.\n```", PAGE, re.DOTALL)
    told = tool_rules((Tool(name="read", schema={"type": "object"}),))
    assert told.startswith(shown)


def test_profiles_whose_text_is_not_scanned() -> None:
    not_looked_into = {name for name, profile in profiles.BY_NAME.items() if not profile.writes_calls}
    assert {name for name in not_looked_into if not name.startswith("gemini")} == SILENT


def test_the_page_on_codex_lists_the_tiers() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:from (\S+)|all) \|", CODEX, re.MULTILINE)
    assert dict(rows) == {
        tier.name: "" if tier.name == "sentinel" else str(tier.since).removesuffix(".0") for tier in TIERS.values()
    }
