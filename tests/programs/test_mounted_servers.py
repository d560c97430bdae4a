"""Real MCP servers, mounted on the gateway and used by clients that know nothing of them: the reference servers for files, time, pages and git,
and the one with everything."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs.installed import FOLDER, PYTHON, node_program, python_library
from tests.programs.stage import KEY, KINDS, WORD, Stage, Task, calling, prompt, running
from tests.server.harness import ask, wait_until

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parent / "python" / "mounted_tools.py"
CASES = (
    *("openai-chat", "openai-chat-stream", "openai-responses", "anthropic", "anthropic-stream"),
    *("langchain-chat", "langchain-responses", "langchain-agent"),
)


def tables(project: Path) -> str:
    """The configuration of the servers. All commands are those that `make programs` installs."""
    node = node_program("node")
    for library in ("mcp_server_time", "mcp_server_fetch", "mcp_server_git"):
        python_library(library)
    scripts = FOLDER / "python" / "bin"
    servers: dict[str, list[Any]] = {
        "files": [node, node_program("mcp-server-filesystem"), project],
        "everything": [node, node_program("mcp-server-everything")],
        "time": [scripts / "mcp-server-time"],
        "fetch": [scripts / "mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"],
        "git": [scripts / "mcp-server-git"],
    }
    return "".join(
        f"\n[mcp.servers.{name}]\ncommand = {json.dumps(list(map(str, command)))}\n"
        for name, command in servers.items()
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mounted")
    git = ["git", "-C", str(folder), "-c", "user.name=T", "-c", "user.email=t@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "the first commit"], check=True)
    return folder


@pytest.fixture(scope="module", params=KINDS)
def stage(request: pytest.FixtureRequest, project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running(request.param, tmp_path_factory.mktemp(request.param), tables(project)) as opened:
        yield opened


def calls(stage: Stage, project: Path, word: str) -> dict[str, Any]:
    (project / f"{word}.txt").write_text(f"The code word is {word}.", encoding="utf-8")
    wanted = {
        "files__read_text_file": {"path": str(project / f"{word}.txt")},
        "time__get_current_time": {"timezone": "UTC"},
        "git__git_log": {"repo_path": str(project)},
        "everything__echo": {"message": "friend"},
        "fetch__fetch": {"url": f"{stage.address}/healthz", "raw": True},
    }
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in wanted.items()]}


def final(first: int) -> dict[str, Any]:
    """A text with something of each result; first: the number of the result after that of the file."""
    patterns = ("UTC", "the first commit", "Echo: friend", "ok")
    facts = [f"{{{{result:{first + number}:{pattern}}}}}" for number, pattern in enumerate(patterns)]
    return {"text": " ".join(("ALLDONE", WORD, *facts))}


def test_five_servers_at_once(stage: Stage, project: Path, tmp_path: Path) -> None:
    python_library("langchain")
    task = Task(stage, tmp_path / "task")
    mounted = calls(stage, project, task.word)
    own = calling("read_file", arguments={"path": str(task.source)})
    prompts = dict.fromkeys(CASES, prompt(mounted, final(1)))
    prompts["langchain-agent"] = prompt(own, mounted, final(2))
    file = tmp_path / "task.json"
    described = {"address": stage.address, "key": KEY, "model": "a-model", "prompts": prompts}
    file.write_text(json.dumps(described), encoding="utf-8")
    output = task.run([PYTHON, "-W", "ignore", SCRIPT, file], timeout=120)
    outcomes = json.loads(output.splitlines()[-1])
    expected = f"{task.final} UTC the first commit Echo: friend ok"
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome.get("text") != expected}
    assert outcomes.keys() == set(CASES)
    assert not wrong, task.story(json.dumps(wrong, indent=1), output, "")


def test_the_text_of_a_file_and_an_image_are_sent_once(stage: Stage, project: Path, tmp_path: Path) -> None:
    """The server for files repeats both as structured content."""
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    (project / "pixel.png").write_bytes(base64.b64decode(pixel))
    task = Task(stage, tmp_path / "task")
    (project / "word.txt").write_text(f"The code word is {task.word}.", encoding="utf-8")
    wanted = {
        "files__read_text_file": {"path": str(project / "word.txt")},
        "files__read_media_file": {"path": str(project / "pixel.png")},
    }
    turn = {"calls": [{"name": name, "arguments": arguments} for name, arguments in wanted.items()]}
    asked = {"role": "user", "content": prompt(turn, {"text": f"ALLDONE {WORD}"})}
    port = int(stage.address.rpartition(":")[2])
    answer = ask(port, "POST", "/v1/chat/completions", {"model": "a-model", "messages": [asked]})
    assert task.final in answer.body.decode(), stage.tail()
    journal = stage.folder / "journal"
    wait_until(lambda: task.word in journal.read_text(encoding="utf-8"))  # the upstream may write it after its answer
    last = next(line for line in journal.read_text(encoding="utf-8").splitlines() if task.word in line)
    assert last.count(task.word) == 1
    assert last.count(pixel) == 1
