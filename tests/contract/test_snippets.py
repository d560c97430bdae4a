"""The Python programs of the documentation and of examples/ pass `mypy --strict`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "\n```python\n" in page.read_text(encoding="utf-8")
)
EXAMPLES = (
    "typed_output",
    "event_stream",
    "image_prompt",
    "mcp_agent",
    "dependencies_and_hooks",
    "function_tool",
    "streaming",
    "save_and_resume",
    "approvals",
    "mcp_server",
    "every_dialect",
)
WRONG = "from toolwire import Agent, Agnet\n\nAgent('m', tool=[])\nreveal_type(Agent('m', output_type=int).run_sync('').output)\n"


def mypy(*arguments: str, cache: Path) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    command += ["--config-file=", f"--cache-dir={cache}", *arguments]
    found = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, env={"MYPYPATH": "src:examples/cassette_test"}
    )
    return found.stdout + found.stderr


@pytest.mark.slow
def test_programs_are_typed_and_wrong_imports_are_found(tmp_path: Path) -> None:
    programs = [str(ROOT / "examples" / f"{name}.py") for name in EXAMPLES]
    assert {page.name for page in PAGES} >= {"agent.md", "python-tools.md", "workspace.md", "backend-plugin.md"}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        program = tmp_path / f"{page.stem.replace('-', '_')}_page.py"
        program.write_text("\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)))
        programs.append(str(program))
    assert mypy(*programs, cache=tmp_path / "cache") == ""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    found = mypy(str(wrong), cache=tmp_path / "cache")
    assert 'Module "toolwire" has no attribute "Agnet"' in found
    assert "No overload variant" in found
    assert 'Revealed type is "int"' in found or 'Revealed type is "builtins.int"' in found
