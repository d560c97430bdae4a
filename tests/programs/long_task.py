"""A task that is too long for the context of its model: the model reads a file again and again, and must know two code words at the end.

One word is in the first message, the other in the first result. The model knows only what its messages contain, and answers a request for a
summary with the words that it finds in them.
"""

from __future__ import annotations

import json
import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tests.free_port import free_port
from tests.programs.stage import Stage, Task, serving
from tests.programs.upstream import PATHS
from toolwire.dialects import DIALECTS
from toolwire.dialects.base import AnswerContext
from toolwire.events import Event, Finished, FoldedAnswer, PartEnded, Started, unfold
from toolwire.ids import new_id
from toolwire.types import Choice, Part, Request, Text, ToolCall, ToolResult, Usage

DIALECT = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "messages"}
STEPS = 9
FILLER = 12_000  # characters of each result
_CODE = re.compile(r"CODE-[0-9a-f]{8}")
_SUMMARY = re.compile(
    r"(?:summari[sz]e|create|write|provide|produce|update)\b[^.]{0,80}(?:conversation|summary)", re.IGNORECASE
)


class Asked(NamedTuple):
    """One request to the model: whether it was for a summary, its size in tokens, and the words in it."""

    is_summary: bool
    tokens: int
    words: tuple[str, ...]


class AnsweringModel(Protocol):
    def answer(self, request: Request) -> list[Event]: ...


class Model:
    """call: the tool call that reads the file."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self._call = (name, json.dumps(arguments))
        self._steps = 0
        self._lock = threading.Lock()
        self.asked: list[Asked] = []

    @property
    def summaries(self) -> int:
        return sum(asked.is_summary for asked in self.asked)

    def answer(self, request: Request) -> list[Event]:
        with self._lock:
            texts = list(_texts(request))
            whole = "\n".join(texts)
            words = tuple(dict.fromkeys(_CODE.findall(whole)))
            tokens = len(whole) // 4
            part = self._part(request, texts, words, tokens)
        reason: Any = "tool_calls" if isinstance(part, ToolCall) else "stop"
        finished = Finished(choices=(Choice(reason=reason),), usage=Usage(input=tokens, output=20))
        started = Started(id=new_id("gen_"), model=request.model)
        return unfold(FoldedAnswer(started=started, parts=(PartEnded(index=0, part=part),), finished=finished))

    def _part(self, request: Request, texts: list[str], words: tuple[str, ...], tokens: int) -> Part:
        names = {tool.name for tool in request.tools}
        if any(map(_SUMMARY.search, texts[-3:])):
            self.asked.append(Asked(True, tokens, words))
            return Text(text=f"<summary>The words are {' '.join(words)}. The file was read.</summary>")
        if self._call[0] not in names:  # another job of the client, such as a title
            return Text(text="A title")
        self.asked.append(Asked(False, tokens, words))
        self._steps += 1
        if self._steps > STEPS:
            return Text(text=f"ALLDONE {' '.join(words)}")
        return ToolCall(id=new_id("call_"), name=self._call[0], raw=self._call[1])


def _texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Text):
                yield part.text
            elif isinstance(part, ToolResult):
                yield from (one.text for one in part.parts if isinstance(one, Text))


@contextmanager
def upstream(kind: str, model: AnsweringModel) -> Iterator[int]:
    """The port of a server that speaks one dialect."""
    dialect = DIALECTS[DIALECT[kind]]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != PATHS[kind]:
                self._send(404, b'{"error":{"message":"unknown path"}}', "application/json")
                return
            request = dialect.decode_request(body, {"anthropic-beta": "x"} if kind == "anthropic" else {})
            encoder = dialect.encoder(AnswerContext(request=request, mint=new_id, now=1))
            wire = b"".join(encoder.send(event) for event in model.answer(request)) + encoder.close()
            self._send(200, wire, "text/event-stream" if request.stream else "application/json")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def long_stage(kind: str, folder: Path, model: Model) -> Iterator[Stage]:
    """A gateway in front of that model."""
    gateway = free_port()
    with upstream(kind, model) as port:
        path = "" if kind == "anthropic" else "/v1"
        (folder / "gateway.toml").write_text(
            f"""
            [server]
            port = {gateway}
            log = "debug"
            [backends.upstream]
            kind = "{kind}"
            base_url = "http://127.0.0.1:{port}{path}"
            key = "env:UPSTREAM_KEY"
            retries = 0
            """,
            encoding="utf-8",
        )
        serve = [sys.executable, "-m", "toolwire", "serve", "--config", str(folder / "gateway.toml")]
        with serving(serve, gateway, folder / "gateway.log"):
            yield Stage(kind, f"http://127.0.0.1:{gateway}", folder)


class LongTask:
    """A project with the file, and the two words."""

    def __init__(self, kind: str, folder: Path) -> None:
        self._kind = kind
        self._folder = folder
        self._told, self._found = (f"CODE-{secrets.token_hex(4)}" for _ in range(2))

    @property
    def prompt(self) -> str:
        return f"The code word is {self._told}. Run read.sh until I stop you, then repeat all code words."

    def run(self, name: str, argument: str, play: Callable[[Task], str]) -> str:
        """play runs a program, whose tool and its argument for a command are given. Returns the log of the gateway."""
        model = Model(name, {argument: "sh read.sh", **({"description": "read"} if argument == "command" else {})})
        with long_stage(self._kind, self._folder, model) as stage:
            task = Task(stage, self._folder / "task")
            filler = "\n".join(f"line {line} of the notes" for line in range(FILLER // 25))
            (task.project / "filler.txt").write_text(filler)
            (task.project / "notes.txt").write_text(f"{self._found}\n{filler}")
            (task.project / "read.sh").write_text("cat notes.txt; cp filler.txt notes.txt\n")  # the word is shown once
            output = play(task)
            story = f"{model.asked}\n{stage.tail()}"
        assert f"ALLDONE {self._told} {self._found}" in output, f"{output}\n{story}"
        assert model.summaries >= 2, story
        return (self._folder / "gateway.log").read_text(encoding="utf-8")
