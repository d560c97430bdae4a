"""LangChain on a model of VS Code: two searches one after the other, then a text, by the Chat and the Responses dialect."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.programs.codex_backend.clients import KEY
from tests.programs.codex_backend.stage import fresh_tag
from tests.programs.codex_backend.toolbox import SEARCHES, result
from tests.programs.installed import PYTHON, python_library, search_path
from tests.programs.vscode.stage import PLAYER, Stage

_SCRIPT = Path(__file__).parents[1] / "codex_backend" / "langchain_search.py"
APIS = ("responses", "chat")


def test_two_searches_and_an_answer(editor: Stage, tmp_path: Path) -> None:
    python_library("langchain_openai")
    tags = {api: fresh_tag() for api in APIS}
    task = tmp_path / "task.json"
    task.write_text(json.dumps(_task(editor, tags)), encoding="utf-8")
    clean = {"PATH": search_path(), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    command = [str(PYTHON), "-W", "ignore", str(_SCRIPT), str(task)]
    done = subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    for api, tag in tags.items():
        assert "error" not in told[api], told[api]["error"]
        assert [(call["name"], call["args"]) for call in told[api]["called"]] == [
            ("localSearch", {"query": f"notes {tag}", "limit": 3}),
            ("webSearch", {"query": f'FOUND_{tag}0 é中 "q"', "deep": {"pages": [1, 2]}}),
        ]
        assert told[api]["text"] == f"ALLDONE {tag} FOUND_{tag}0 FOUND_{tag}1"


def _task(editor: Stage, tags: dict[str, str]) -> dict[str, object]:
    cases = {
        api: {
            "prompt": f"SC=loop TAG={tag}",
            "results": [result(tool["name"], number, tag) for number, tool in enumerate(SEARCHES)],
        }
        for api, tag in tags.items()
    }
    tools = [{"type": "function", "function": tool} for tool in SEARCHES]
    return {
        "address": editor.address,
        "key": KEY,
        "model": editor.model(PLAYER),
        "tools": tools,
        "cases": cases,
    }
