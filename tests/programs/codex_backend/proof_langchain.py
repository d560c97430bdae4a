"""LangChain as a note-taking plugin uses it, on the real Codex: two searches one after the other, then a text; with the same result for both
ways of calling tools, and never with empty arguments."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.programs.codex_backend.binaries import plugin_langchain
from tests.programs.codex_backend.stage import Stage, backends_of, fresh_tag
from tests.programs.codex_backend.toolbox import SEARCHES, result
from tests.programs.installed import PYTHON, node_program, python_library, search_path

APIS = ("responses", "chat")
_HERE = Path(__file__).parent


@pytest.fixture(params=["javascript", "python"])
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The command of the program."""
    if request.param == "python":
        python_library("langchain_openai")
        return [str(PYTHON), "-W", "ignore", str(_HERE / "langchain_search.py")]
    # A script finds its libraries beside itself.
    (tmp_path / "node_modules").symlink_to(plugin_langchain())
    script = shutil.copy(_HERE.parent / "js" / "langchain_search.mjs", tmp_path)
    return [str(node_program("node")), str(script)]


def test_two_searches_and_an_answer(codex_stage: Stage, command: list[str], tmp_path: Path) -> None:
    for backend in backends_of(codex_stage.version):
        for api, (tag, outcome) in _run(codex_stage, backend, command, tmp_path).items():
            assert "error" not in outcome, f"{backend} {api}: {outcome['error']}"
            assert _plain(outcome, tag) == _expected()
            assert all(call["raw"] not in ("", "{}", '""') and call["args"] for call in outcome["called"])
            assert len({call["id"] for call in outcome["called"]}) == 2


def test_what_the_plugin_sends(codex_stage: Stage, command: list[str], tmp_path: Path) -> None:
    """The requests contain the forms on which other gateways failed."""
    _, outcome = _run(codex_stage, "native", command, tmp_path)["responses"]
    last = outcome["sent"][-1]
    calls = [item for item in last["input"] if item.get("type") == "function_call"]
    assert len(calls) == 2
    assert not any("id" in call for call in calls)
    assert "previous_response_id" not in last
    if command[0] != str(PYTHON):
        assert last["text"] == {}
        assert [tool["strict"] for tool in last["tools"]] == [None, None]


def _run(stage: Stage, backend: str, command: list[str], folder: Path) -> dict[str, tuple[str, Any]]:
    tags = {api: fresh_tag() for api in APIS}
    task = {
        "address": stage.address,
        "key": "sk-of-a-client",
        "model": stage.model(backend),
        "tools": [{"type": "function", "function": tool} for tool in SEARCHES],
        "cases": {
            api: {
                "prompt": f"SC=loop TAG={tag}",
                "results": [result(tool["name"], number, tag) for number, tool in enumerate(SEARCHES)],
            }
            for api, tag in tags.items()
        },
    }
    file = folder / f"{backend}.json"
    file.write_text(json.dumps(task), encoding="utf-8")
    clean = {"PATH": search_path(), "HOME": str(folder), "LANG": "C.UTF-8"}
    done = subprocess.run([*command, str(file)], env=clean, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    return {api: (tag, told[api]) for api, tag in tags.items()}


def _plain(outcome: dict[str, Any], tag: str) -> list[Any]:
    """Without the tag, which differs in every run."""
    text = json.dumps([[call["name"], call["args"]] for call in outcome["called"]] + [outcome["text"]])
    return list(json.loads(text.replace(tag, "TAG")))


def _expected() -> list[Any]:
    return [
        ["localSearch", {"query": "notes TAG", "limit": 3}],
        ["webSearch", {"query": 'FOUND_TAG0 é中 "q"', "deep": {"pages": [1, 2]}}],
        "ALLDONE TAG FOUND_TAG0 FOUND_TAG1",
    ]
