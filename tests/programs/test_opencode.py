"""OpenCode completes the task with each of its three providers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.programs.installed import node_program
from tests.programs.stage import CONTENT, KEY, KINDS, Task, calling, prompt, reading, telling
from tests.thorough import some

pytestmark = pytest.mark.slow

PROVIDERS = ("@ai-sdk/openai-compatible", "@ai-sdk/openai", "@ai-sdk/anthropic")
OFFLINE = {
    f"OPENCODE_DISABLE_{what}": "1" for what in ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
}


PAIRS = [(provider, kind) for provider in PROVIDERS for kind in KINDS]
# Each provider and each upstream once; the same dialect on both sides is in simulated/test_beside_native.py.
KEPT = list(zip(PROVIDERS, ("anthropic", "openai-chat", "openai-responses"), strict=True))


@pytest.mark.parametrize(("provider", "stage"), some(PAIRS, KEPT), indirect=["stage"])
def test_opencode(task: Task, provider: str) -> None:
    program = node_program("opencode")
    _configure(task.home, provider, task.stage.openai_url)
    script = prompt(
        reading("read", arguments={"filePath": str(task.source)}),
        calling("write", arguments={"filePath": str(task.target), "content": CONTENT}),
        telling(),
    )
    task.check(task.run([program, "run", script], timeout=120, **OFFLINE))


def _configure(home: Path, provider: str, url: str) -> None:
    settings = {
        "provider": {
            "toolwire": {
                "npm": provider,
                "options": {"baseURL": url, "apiKey": KEY},
                "models": {"a-model": {"name": "a-model", "tool_call": True}},
            }
        },
        "model": "toolwire/a-model",
        "small_model": "toolwire/a-model",
        "permission": {"edit": "allow", "bash": "allow"},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
