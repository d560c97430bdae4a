"""The programs of examples/ and of docs/agent.md run and print the expected output."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server.harness import gateway, server_config
from toolwire.config.file import Config, with_backends
from toolwire.config.secret import Secret

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FRAMEWORKS = ("langchain_agent", "autogen_agent", "crewai_agent", "semantic_kernel_agent")  # run by tests/programs
SAID = {
    "function_tool": "get_weather said: Paris: rain, 1 day(s) long.\n2 requests, 40 tokens, ended by: done\n",
    "streaming": "> search_files {'pattern': '*.txt'}\n< [\"notes.txt\",\"todo.txt\"]\n"
    'search_files said: ["notes.txt","todo.txt"].\n(done)\n',
    "save_and_resume": "demo/echo-tools: roll_dice said: 4.\n" * 2 + "4 messages then, 8 now\n",
    "typed_output": "Rome, 3 days, sunglasses\ndone, True, cost None\n",
    "event_stream": "> count_words {'text': 'one two three'}\n. 3/3 counting\n< 3\ncount_words said: 3.\n(done after 2 requests)\n",
    "image_prompt": "[('image', 'image/png', ''), ('file', 'text/markdown', 'notes.md')]\n4 messages\n",
    "dependencies_and_hooks": "count_items {'item': 'lamp'}: 7\nended: done\ncount_items said: 7.\n"
    "count_items {'item': 'sofa'}: There is no sofa.\nended: done\ncount_items failed: There is no sofa.\n['lamp', 'lamp', 'sofa']\n",
    "approvals": 'list_files said: ["notes.txt","old.txt"].\n'
    "delete_file failed: Denied: the user did not allow this call, and it was not made. No terminal to ask for approval.\n",
}


def output_of(path: Path, folder: Path, more: dict[str, str] | None = None) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": str(ROOT / "src"),
        **(more or {}),
    }
    command = [sys.executable, "-W", "error", str(path)]
    found = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


def test_every_example_is_listed() -> None:
    others = {"mcp_server", "mcp_agent", "every_dialect", *FRAMEWORKS}
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {*SAID, *others}


def test_a_round_trip_in_every_dialect(tmp_path: Path) -> None:
    config = with_backends(Config(server=server_config(keys=(Secret("k-1"),))), ())
    with gateway(config) as running:
        more = {"TOOLWIRE_URL": f"http://127.0.0.1:{running.port}", "TOOLWIRE_KEY": "k-1"}
        said = output_of(ROOT / "examples" / "every_dialect.py", tmp_path, more)
    dialects = ("chat", "responses", "messages", "gemini")
    assert said.splitlines() == [f"{name}: get_weather said: 18 degrees and rain in Paris." for name in dialects]


@pytest.mark.parametrize("name", SAID)
def test_an_example(name: str, tmp_path: Path) -> None:
    assert output_of(ROOT / "examples" / f"{name}.py", tmp_path) == SAID[name]


@pytest.mark.slow
def test_the_example_with_a_server(tmp_path: Path) -> None:
    if importlib.util.find_spec("mcp") is None:
        pytest.skip("the extra toolwire[mcp] is not installed")
    said = output_of(ROOT / "examples" / "mcp_server.py", tmp_path)
    assert said == "['stock__count_items']\nstock__count_items said: 7 of lamp.\n"
    said = output_of(ROOT / "examples" / "mcp_agent.py", tmp_path)
    assert said.startswith("notes__add_note said: stored 'buy milk'.\nnotes__add_note failed: Denied")


def test_the_page_about_agents(tmp_path: Path) -> None:
    """All of its programs, one after the other."""
    page = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 11
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    said = output_of(program, tmp_path).splitlines()
    assert said[0] == "get_weather said: Paris: rain for 1 days."
    assert "count_items said: 7." in said
    assert "get_weather failed: Denied: the user did not allow this call, and it was not made." in said
    assert re.fullmatch(r"\d+ tokens so far", said[-1])
