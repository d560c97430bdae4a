"""AutoGen, CrewAI and Semantic Kernel on a model of VS Code: two searches one after the other, then a text."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.programs.codex_backend.clients import KEY
from tests.programs.codex_backend.toolbox import SEARCHES, result
from tests.programs.installed import search_path
from tests.programs.vscode.installed import framework
from tests.programs.vscode.stage import PLAYER, Stage

_SCRIPTS = Path(__file__).with_name("frameworks")
_QUIET = {"OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true"}


def test_autogen(editor: Stage, tag: str, tmp_path: Path) -> None:
    _searches(editor, "autogen", tag, tmp_path)


def test_crewai(editor: Stage, tag: str, tmp_path: Path) -> None:
    _searches(editor, "crewai", tag, tmp_path)


def test_semantic_kernel(editor: Stage, tag: str, tmp_path: Path) -> None:
    _searches(editor, "semantic_kernel", tag, tmp_path)


def _searches(editor: Stage, name: str, tag: str, tmp_path: Path) -> None:
    python = framework(name)
    task = tmp_path / "task.json"
    results = [result(tool["name"], number, tag) for number, tool in enumerate(SEARCHES)]
    prompt = f"SC=loop TAG={tag}"
    words = {"address": editor.address, "key": KEY, "model": editor.model(PLAYER)}
    task.write_text(json.dumps(words | {"prompt": prompt, "results": results}), encoding="utf-8")
    clean = {"PATH": search_path(), "HOME": str(tmp_path), "LANG": "C.UTF-8", **_QUIET}
    command = [str(python), "-W", "ignore", str(_SCRIPTS / f"{name}_agent.py"), str(task)]
    done = subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["called"] == [
        {"name": "localSearch", "args": {"query": f"notes {tag}", "limit": 3}},
        {"name": "webSearch", "args": {"query": f'FOUND_{tag}0 é中 "q"', "deep": {"pages": [1, 2]}}},
    ]
    assert told["text"] == f"ALLDONE {tag} FOUND_{tag}0 FOUND_{tag}1"
    assert [record["state"] for record in editor.seen(tag)] == ["done"] * 3
