"""The environment of a program under test: an upstream of one kind, a gateway, a project with a secret word, a separate home."""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.free_port import free_port
from tests.programs.installed import ROOT, search_path
from tests.server_process import server_process

KINDS = ("openai-chat", "openai-responses", "anthropic")
ONLY_FUNCTIONS = ("openai-responses-functions", "anthropic-functions")  # openai-chat is one, too
KEY = "sk-fake-key-of-the-tests"
WORD = "{{result:0:SECRET-[0-9a-f]+}}"
_OTHER = "{{result:1:OTHER-[0-9a-f]+}}"
_PAYLOAD = 'é中😀 "q" \\ tab\tend'
CONTENT = f"found {WORD} {_PAYLOAD}"
_TAIL = 4000


class Stage(NamedTuple):
    """A gateway with one back end for every model name."""

    kind: str
    address: str
    folder: Path

    @property
    def openai_url(self) -> str:
        return f"{self.address}/v1"

    def tail(self) -> str:
        """The end of the logs of gateway and upstream, for failures."""
        logs = [f"--- {name}\n{_end_of(self.folder / name)}" for name in ("gateway.log", "upstream.log")]
        return "\n".join([*logs, "--- requests to the upstream", *self._requests()])

    def _requests(self) -> Iterator[str]:
        journal = self.folder / "journal"
        lines = journal.read_text(encoding="utf-8").splitlines()[-4:] if journal.exists() else []
        for line in lines:
            request = json.loads(line)
            body = json.dumps(request.pop("body"), ensure_ascii=False)
            yield f"{request} {body[:300]} ... {body[-1500:]}"


class Task:
    """One run of the task: read the word, write it to a file, repeat it in the answer."""

    def __init__(self, stage: Stage, folder: Path, word: str = "") -> None:
        self.stage = stage
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        self.word = word or f"SECRET-{secrets.token_hex(8)}"
        self.source = self.project / "README.md"
        self.target = self.project / "OUT.md"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.source.write_text(f"# Sample {_PAYLOAD}\n\nThe code word is {self.word}.\n", encoding="utf-8")

    @property
    def content(self) -> str:
        return CONTENT.replace(WORD, self.word)

    @property
    def final(self) -> str:
        return f"ALLDONE {self.word}"

    def run(self, command: Sequence[str | Path], *, timeout: float = 60, **environment: str) -> str:
        """The output of the program; if it fails, raises with output and logs."""
        clean = {"PATH": search_path(), "HOME": str(self.home), "LANG": "C.UTF-8", "TMPDIR": str(self.home)}
        # Only loopback is reachable: everything else is https, and goes to a closed port.
        clean |= {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
        done = subprocess.Popen(
            [str(word) for word in command],
            cwd=self.project,
            env=clean | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            output, errors = done.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGKILL)
            output, errors = done.communicate()
            raise AssertionError(self.story(f"it did not end in {timeout} s", output, errors)) from None
        if done.returncode:
            raise AssertionError(self.story(f"it ended with {done.returncode}", output, errors))
        (self.folder / "output").write_text(output, encoding="utf-8")
        (self.folder / "errors").write_text(errors, encoding="utf-8")
        return output

    def check(self, output: str, *, line_end: str = "") -> None:
        """The word must be in the file and in the last text of the program."""
        errors = (self.folder / "errors").read_text(encoding="utf-8")
        written = self.target.read_text(encoding="utf-8") if self.target.exists() else None
        if written != self.content + line_end:
            raise AssertionError(
                self.story(f"the file has {written!r}, expected {self.content + line_end!r}", output, errors)
            )
        if self.final not in output:
            raise AssertionError(self.story(f"it did not say {self.final!r}", output, errors))

    def story(self, what: str, output: str, errors: str) -> str:
        return f"{what}\n--- its output\n{output[-_TAIL:]}\n--- its errors\n{errors[-_TAIL:]}\n{self.stage.tail()}"


class TwoReadsTask(Task):
    """The first turn reads a second file, too, whose word must also be in the last text: two calls in one answer."""

    def __init__(self, stage: Stage, folder: Path, word: str = "") -> None:
        super().__init__(stage, folder, word)
        self.other = f"OTHER-{secrets.token_hex(8)}"
        (self.project / "NOTES.md").write_text(f"The other word is {self.other}.\n", encoding="utf-8")

    @property
    def final(self) -> str:
        return f"{super().final} AND {self.other}"

    def prompt(self, read: dict[str, Any], write: dict[str, Any]) -> str:
        """read: a turn with one call that reads the source."""
        second = json.loads(json.dumps(read["calls"][0]).replace("README.md", "NOTES.md"))
        both = {**read, "calls": [*read["calls"], second]}
        return prompt(both, write, final_text(f" AND {_OTHER}"))


def prompt(*turns: dict[str, Any]) -> str:
    """A prompt with the turns of the scripted model, in strict mode."""
    script = json.dumps({"strict": True, "turns": list(turns)}).encode()
    return f"Do it. [[script:{base64.b64encode(script).decode()}]]"


def reading(name: str, **call: Any) -> dict[str, Any]:
    """The first turn: text before a call must survive."""
    return {"text": "I will read it.", "calls": [{"name": name, **call}]}


def calling(name: str, **call: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, **call}]}


def final_text(more: str = "") -> dict[str, Any]:
    return {"text": f"ALLDONE {WORD}{more}"}


@contextmanager
def running(kind: str, folder: Path, options: str = "") -> Iterator[Stage]:
    """options: more keys of the back end."""
    upstream, gateway = free_port(), free_port()
    (folder / "upstream.toml").write_text(upstream_config(upstream), encoding="utf-8")
    (folder / "gateway.toml").write_text(gateway_config(gateway, upstream, kind) + options, encoding="utf-8")
    play = [sys.executable, "-m", "tests.programs.upstream", str(folder / "upstream.toml"), str(folder / "journal")]
    serve = [sys.executable, "-m", "toolwire", "serve", "--config", str(folder / "gateway.toml")]
    with serving(play, upstream, folder / "upstream.log"), serving(serve, gateway, folder / "gateway.log"):
        yield Stage(kind, f"http://127.0.0.1:{gateway}", folder)


def upstream_config(port: int) -> str:
    return f'[server]\nport = {port}\ndefault = "scripted"\nlog = "warning"\n[backends.scripted]\nkind = "scripted"\n'


def gateway_config(port: int, upstream: int, kind: str) -> str:
    dialect = kind.removesuffix("-functions")
    path = "" if dialect == "anthropic" else "/v1"
    return f"""
        [server]
        port = {port}
        [backends.upstream]
        kind = "{dialect}"
        tool_kinds = "{"auto" if dialect == kind else "functions"}"
        base_url = "http://127.0.0.1:{upstream}/{kind}{path}"
        key = "env:UPSTREAM_KEY"
        retries = 0
    """


@contextmanager
def serving(command: Sequence[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        "PATH": search_path(),
        "HOME": str(log.parent),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "UPSTREAM_KEY": "sk-upstream",
    }
    with server_process(command, port, log, environment) as process:
        yield process


def _end_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-_TAIL:] if path.exists() else "(nothing)"
