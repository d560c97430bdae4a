"""LangChain for JavaScript with bound tools and streams on models without tools: a loop over two searches, with the same results everywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.programs.installed import NODE_MODULES, node_library, node_program
from tests.programs.simulated.stage import Setting
from tests.programs.stage import KEY, Task, prompt

pytestmark = pytest.mark.slow

LOCAL: dict[str, Any] = {"query": 'green "tea" </tool_call>', "salientTerms": ["tea", "grün"]}
WEB: dict[str, Any] = {"query": "tea", "salientTerms": []}
BOTH = [{"name": "localSearch", "arguments": LOCAL}, {"name": "webSearch", "arguments": WEB}]
SCRIPT = prompt(
    {"text": "I look at both.", "calls": BOTH},
    {"calls": [{"name": "localSearch", "arguments": WEB}]},
    {"text": "ALLDONE {{result:0}}, {{result:1}}, {{result:2}}"},
)
EXPECTED = [("localSearch", LOCAL), ("webSearch", WEB), ("localSearch", WEB)]
SETTINGS = [
    Setting("plain"),
    Setting("plain", more='guard = "check"'),
    Setting("plain", "openai-responses"),
    Setting("hermes"),
    Setting("qwen-xml"),
]


@pytest.mark.parametrize("stage", SETTINGS, indirect=True)
def test_search_loop(task: Task, tmp_path: Path) -> None:
    node_library("@langchain/openai")
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    script = shutil.copy(Path(__file__).parent / "search_loop.mjs", tmp_path)
    told = {"address": task.stage.address, "key": KEY, "model": "a-model", "prompt": SCRIPT}
    (tmp_path / "task.json").write_text(json.dumps(told), encoding="utf-8")
    output = json.loads(task.run([node_program("node"), script, tmp_path / "task.json"]).splitlines()[-1])
    for way in ("chat", "responses"):
        seen = output[way]
        assert seen["text"] == "ALLDONE a note about tea, a page about tea, a note about tea", task.stage.tail()
        assert [(call["name"], call["args"]) for call in seen["called"]] == EXPECTED
        assert len({call["id"] for call in seen["called"]}) == 3
