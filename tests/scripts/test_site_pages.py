"""The documentation site builds without warnings, and has its generated pages."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.site_pages import commands_page, hazards_page, python_page, site_links
from toolwire.cli.app import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def test_links_to_pages_stay_and_links_to_sources_become_text() -> None:
    assert site_links("[a](guard.md#x)", "docs/agent.md") == "[a](guard.md#x)"
    assert site_links("[`loop.py`](../src/loop.py)", "docs/agent.md") == "`loop.py`"
    assert site_links("[programs](../examples)", "docs/agent.md") == "programs (`examples`)"
    assert site_links("[a](docs/tour.md)", "") == "[a](tour.md)"
    assert site_links("[a](../../CONTRIBUTING.md#b)", "docs/dialects/chat.md") == "[a](../contributing.md#b)"
    assert site_links("[a](https://b.example/c.md) [d](#e)", "docs/agent.md") == "[a](https://b.example/c.md) [d](#e)"


def test_the_python_reference_has_every_name_with_its_text() -> None:
    page = python_page()
    for name in ("Agent", "AgentHooks", "Context", "tool", "image", "Terms"):
        assert f"\n## {name}\n" in page
    assert "### Agent.run_sync" in page
    assert "output_type" in page


def test_the_hazards_are_a_list_on_the_site() -> None:
    page = hazards_page()
    assert "**H001.** All parallel calls have index 0" in page
    assert "`tests/dialects/chat/test_answer_in.py`" in page
    assert "|---" not in page
    assert page.count("\n**H") == (ROOT / "docs" / "hazards.md").read_text(encoding="utf-8").count("\n| H")


@pytest.mark.slow
def test_the_commands_are_listed_with_their_options() -> None:
    page = commands_page()
    for place in COMMANDS:
        assert f"\n## toolwire {place.rpartition(':')[2]}\n" in page
    assert "--max-iterations" in page


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, env=environment)
    assert (built.returncode, built.stderr, built.stdout) == (0, "", "")
    for name in ("index", "symptoms", "reference-commands", "reference-python", "contributing"):
        assert (tmp_path / f"{name}.html").is_file()
    assert (tmp_path / "search" / "search_index.json").is_file()
    pages = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.html"))
    assert 'src="http' not in pages  # nothing is loaded from other servers
