"""The vendors' own JavaScript clients against the gateway: their stream helpers and tool runners, through every kind of back end."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.gateway import KINDS, Gateway, clean_environment, scripted
from tests.programs.installed import NODE_MODULES, node_library, node_program

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "js"
UPSTREAMS = tuple(KINDS)
RAW = '{"location": "Paris"}'
LOOP = scripted(
    {"text": "Let me look.", "calls": [{"name": "get_weather", "arguments": RAW}]}, {"text": "I hear {{result:0}}."}
)
LIMITED = scripted({"error": {"status": 429, "message": "Slow down."}})
BREAKS = scripted({"text": "one two three four", "chunk": 4, "error": {"status": 529, "message": "Broke.", "after": 2}})
ANSWER = "I hear Paris has 18 C."


class Runner:
    """Runs a script once for each upstream and keeps what it said."""

    def __init__(self, gateway: Gateway, home: Path) -> None:
        self._gateway = gateway
        self._home = home
        # A script finds its libraries beside itself.
        self._scripts = shutil.copytree(FOLDER, home / "js", ignore=shutil.ignore_patterns("node_modules"))
        (self._scripts / "node_modules").symlink_to(NODE_MODULES)
        self._seen: dict[tuple[str, str], dict[str, Any]] = {}

    def __call__(self, script: str, upstream: str) -> dict[str, Any]:
        if (script, upstream) not in self._seen:
            self._seen[script, upstream] = self._run(script, self._gateway.model(upstream))
        return self._seen[script, upstream]

    def _run(self, script: str, model: str) -> dict[str, Any]:
        task = {"address": self._gateway.address, "key": self._gateway.key, "model": model}
        prompts = {"loop": LOOP, "limited": LIMITED, "breaks": BREAKS}
        done = subprocess.run(
            [str(node_program("node")), f"{script}.mjs", json.dumps(task | prompts)],
            cwd=self._scripts,
            env=clean_environment(self._home),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def run(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    node_library("openai")
    return Runner(gateway, tmp_path_factory.mktemp("home"))


OPENAI: dict[str, Any] = {
    "chatCreate": ["tool_calls", ANSWER],
    "chatStream": ["tool_calls", "Let me look.", RAW],
    "chatRunTools": [ANSWER, ["Paris has 18 C"]],
    "chatRunToolsStreaming": [ANSWER, ["Paris has 18 C"]],
    "responsesCreate": ["completed", ANSWER],
    "responsesStream": ["completed", "Let me look.", RAW],
    "models": True,
}
ANTHROPIC = {
    "create": ["tool_use", ANSWER],
    "stream": ["tool_use", ANSWER, "end_turn"],
    "toolRunner": [["tool_use", "end_turn"], ANSWER],
    "toolRunnerStreaming": [["tool_use", "end_turn"], ANSWER],
    "models": True,
    "counted": True,
}
GOOGLE = {
    "generate": ["STOP", ANSWER],
    "stream": ["STOP", "Let me look.", ANSWER],
    "chat": [ANSWER, 4],
    "interactions": ["requires_action", ANSWER],
    "models": True,
    "counted": True,
}
GOOGLE_ERRORS = {
    "rateLimit": (429, "Slow down."),
    "rateLimitStreaming": (429, "Slow down."),
    "wrongKey": (401, "key"),
    "unknownModel": (404, "nowhere/none"),
}
ERRORS = {
    "rateLimit": ("RateLimitError", 429, "Slow down."),
    "rateLimitStreaming": ("RateLimitError", 429, "Slow down."),
    "wrongKey": ("AuthenticationError", 401, "key"),
    "unknownModel": ("NotFoundError", 404, "nowhere/none"),
}


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", OPENAI)
def test_openai(run: Runner, upstream: str, name: str) -> None:
    expected = OPENAI[name]
    if upstream == "gemini" and name in ("chatStream", "responsesStream"):  # arguments are an object on the way
        expected = [*expected[:2], RAW.replace(" ", "")]
    assert run("openai", upstream)[name] == expected


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", ANTHROPIC)
def test_anthropic(run: Runner, upstream: str, name: str) -> None:
    assert run("anthropic", upstream)[name] == ANTHROPIC[name]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("script", ["openai", "anthropic"])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_their_class(run: Runner, script: str, upstream: str, name: str) -> None:
    kind, status, words = ERRORS[name]
    seen = run(script, upstream)[name]
    assert seen[:2] == [kind, status]
    assert words in seen[2]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("script", ["openai", "anthropic"])
def test_error_in_mid_stream(run: Runner, script: str, upstream: str) -> None:
    seen = run(script, upstream)["midStream"]
    assert seen[0].endswith("Error")
    assert "Broke." in seen[2]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", GOOGLE)
def test_google(run: Runner, upstream: str, name: str) -> None:
    node_library("@google/genai")
    assert run("google", upstream)[name] == GOOGLE[name]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("name", GOOGLE_ERRORS)
def test_errors_have_their_status_for_google(run: Runner, upstream: str, name: str) -> None:
    node_library("@google/genai")
    status, words = GOOGLE_ERRORS[name]
    seen = run("google", upstream)[name]
    assert seen[:2] == ["ApiError", status]
    assert words in seen[2]


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_error_in_mid_stream_for_google(run: Runner, upstream: str) -> None:
    node_library("@google/genai")
    assert "Broke." in run("google", upstream)["midStream"][2]


OLLAMA = {"chat": ["stop", ANSWER], "stream": ["stop", "Let me look.", ANSWER], "models": True}


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_ollama(run: Runner, upstream: str) -> None:
    node_library("ollama")
    seen = run("ollama", upstream)
    assert {name: seen[name] for name in OLLAMA} == OLLAMA
    for name, (status, words) in GOOGLE_ERRORS.items():
        assert seen[name][1] == status, name
        assert words in seen[name][2]
    assert "Broke." in seen["midStream"][2]
