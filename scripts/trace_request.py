"""Count the modules, functions and Python calls of one warm request, by stage.

Run from anywhere: `python scripts/trace_request.py [--functions] [CASE ...]`. It starts the gateway and an OpenAI-compatible upstream on
127.0.0.1, sends each standard request until caches are warm, then once more with a profiler in the gateway's thread. Only code of toolwire
counts. With --functions every function is listed below its module.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

Calls: TypeAlias = Counter[tuple[str, str]]  # (module, function) -> calls

WARM_REQUESTS = 5
QUIET_SECONDS = 0.2  # the gateway closes its record of a request just after the last byte
FRAGMENTS = 20
SCHEMA = {
    "type": "object",
    "properties": {"filePath": {"type": "string"}, "content": {"type": "string"}},
    "required": ["filePath"],
}
WRITE = {"name": "write", "description": "Writes a file.", "parameters": SCHEMA}
MESSAGES = [{"role": "user", "content": "write"}]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "messages-to-chat": (
        "/v1/messages",
        {
            "model": "tools",
            "max_tokens": 500,
            "stream": True,
            "messages": MESSAGES,
            "tools": [{"name": "write", "description": "Writes a file.", "input_schema": SCHEMA}],
        },
    ),
    "chat-verbatim": (
        "/v1/chat/completions",
        {"model": "tools", "stream": True, "messages": MESSAGES, "tools": [{"type": "function", "function": WRITE}]},
    ),
    "chat-plain": ("/v1/chat/completions", {"model": "plain", "messages": MESSAGES}),
    "responses-to-chat": (
        "/v1/responses",
        {
            "model": "tools",
            "stream": True,
            "store": False,
            "input": "write",
            "tools": [{"type": "function", **WRITE, "strict": False}],
        },
    ),
}
# The first pattern that matches a module's name decides its stage.
STAGES = (
    ("telemetry", r"telemetry"),
    ("server", r"server|offload|ids"),
    ("decode request", r"dialects\.\w+\.request_in"),
    ("encode answer", r"dialects\.\w+\.answer_out"),
    ("back end", r"backends|profiles|dialects\.\w+\.request_out"),
    ("answer", r"wire|dialects\.\w+\.answer_in|pipeline\.(answer|verbatim|guard|correction)"),
    ("answer", r"calls\.(turn|stream_checks|written|validation|arguments|parts|counts)"),
    ("prepare", r"runtime|catalog|memory|pipeline|calls|config"),
    ("dialects, shared", r""),
)
ORDER = ("server", "decode request", "prepare", "back end", "answer", "encode answer", "telemetry", "dialects, shared")


class Upstream(BaseHTTPRequestHandler):
    """Answers a chat request with text, or streams one tool call in fragments."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = stream_of_call() if request.get("stream") else json.dumps(completion("message", TEXT)).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if request.get("stream") else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing."""


TEXT = {"role": "assistant", "content": "Hello."}
USAGE = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}


def completion(member: str, value: dict[str, Any], finish: str | None = "stop") -> dict[str, Any]:
    kind = "chat.completion" if member == "message" else "chat.completion.chunk"
    choice = {"index": 0, member: value, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "m", "choices": [choice], "usage": USAGE}


def stream_of_call() -> bytes:
    first = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write", "arguments": ""}}
    pieces = ['{"filePath":"a.txt","content":"', *["word "] * FRAGMENTS, '"}']
    deltas = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    chunks = [completion("delta", {"role": "assistant", "tool_calls": [first]}, None)]
    chunks += [completion("delta", {"tool_calls": [delta]}, None) for delta in deltas]
    chunks.append(completion("delta", {}, "tool_calls"))
    for chunk in chunks[:-1]:
        del chunk["usage"]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def trace(cases: list[str]) -> dict[str, Calls]:
    """Runs the gateway in this thread, where the profiler is, and the client in another."""
    from toolwire.config.file import load
    from toolwire.server import run

    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    port = free_port()
    found: dict[str, Calls] = {}

    def announce() -> None:
        client = Client(port, asyncio.get_running_loop())
        threading.Thread(target=client.run, args=(cases, found), daemon=True).start()

    with tempfile.TemporaryDirectory(prefix="toolwire-trace-") as folder:
        os.environ.update({"HOME": folder, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder})
        path = Path(folder, "toolwire.toml")
        path.write_text(
            f'[server]\nport = {port}\nlog = "warning"\n[store]\nkind = "memory"\n[backends.up]\nkind = "openai-chat"\n'
            f'base_url = "http://127.0.0.1:{upstream.server_port}/v1"\nkey = "k"\nmodels = ["tools", "plain"]\n'
        )
        path.chmod(0o600)
        signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it again after it has stopped
        run(load(path, {}), announce=announce)
    upstream.shutdown()
    return found


class Client:
    """Sends requests from a thread of its own and switches the profiler of the gateway's thread."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._loop = loop

    def run(self, cases: list[str], found: dict[str, Calls]) -> None:
        try:
            for case in cases:
                for _ in range(WARM_REQUESTS):
                    self._send(*CASES[case])
                found[case] = self._traced(case)
        finally:
            self._in_gateway(signal.raise_signal, signal.SIGTERM)

    def _traced(self, case: str) -> Calls:
        calls: Calls = Counter()

        def profile(frame: FrameType, event: str, argument: object) -> None:
            module = frame.f_globals.get("__name__", "")
            if event == "call" and module.startswith("toolwire."):
                calls[module, frame.f_code.co_qualname] += 1

        time.sleep(QUIET_SECONDS)
        self._in_gateway(sys.setprofile, profile)
        self._send(*CASES[case])
        time.sleep(QUIET_SECONDS)
        self._in_gateway(sys.setprofile, None)
        return calls

    def _in_gateway(self, function: Callable[..., object], *arguments: object) -> None:
        is_done = threading.Event()
        self._loop.call_soon_threadsafe(function, *arguments)
        self._loop.call_soon_threadsafe(is_done.set)
        is_done.wait(10.0)

    def _send(self, path: str, body: dict[str, Any]) -> None:
        headers = {"content-type": "application/json", "authorization": "Bearer x", "anthropic-version": "2023-06-01"}
        url = f"http://127.0.0.1:{self._port}{path}"
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            response.read()


def report(case: str, calls: Calls, *, has_functions: bool = False) -> Iterator[str]:
    modules = sorted({module for module, _ in calls})
    yield f"{case}: {len(modules)} modules, {len(calls)} functions, {calls.total()} calls"
    for stage in ORDER:
        inside = [module for module in modules if stage_of(module) == stage]
        if not inside:
            continue
        total = sum(count for (module, _), count in calls.items() if module in inside)
        yield f"  {stage}: {len(inside)} modules, {total} calls"
        for module in inside:
            functions = {name: count for (owner, name), count in calls.items() if owner == module}
            yield f"    {module.removeprefix('toolwire.')}: {len(functions)} functions, {sum(functions.values())} calls"
            if has_functions:
                yield from (f"      {name} {count}" for name, count in functions.items())


def stage_of(module: str) -> str:
    name = module.removeprefix("toolwire.")
    return next(stage for stage, pattern in STAGES if re.match(pattern, name))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def main(arguments: list[str]) -> int:
    cases = [argument for argument in arguments if argument != "--functions"]
    if unknown := [case for case in cases if case not in CASES]:
        print(f"found {', '.join(unknown)}; expected some of {', '.join(CASES)}.")
        return 2
    for case, calls in trace(cases or list(CASES)).items():
        print("\n".join(report(case, calls, has_functions="--functions" in arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
