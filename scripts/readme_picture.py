"""Draw docs/images/before-after.svg: one broken call, sent to a client directly and through the gateway.

The answer of the model is a recorded one: Llama 3.2 on vLLM wrote the call as text and left out the last brace (vllm-project/vllm issue 11786). A small server
repeats it, `toolwire serve` runs as a process of its own, and both requests are real. The picture is an animated SVG without scripts and without anything
that is loaded from elsewhere. Run from anywhere: `python scripts/readme_picture.py [FILE]`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "before-after.svg"
WRITTEN = '{"type": "function", "function": {"name": "get_current_traffic", "parameters": {"location": "Sydney"}}'
ANSWER = {
    "id": "chatcmpl-20ebce2e7ef24403a464a59f3c57328a",
    "object": "chat.completion",
    "created": 1736354591,
    "model": "llama-3.2-11b-vision-instruct",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": WRITTEN, "tool_calls": []},
        }
    ],
    "usage": {"prompt_tokens": 378, "completion_tokens": 28, "total_tokens": 406},
}
SCHEMA = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
REQUEST = {
    "model": "local/llama-3.2",
    "messages": [{"role": "user", "content": "How is the traffic in Sydney?"}],
    "tools": [{"type": "function", "function": {"name": "get_current_traffic", "parameters": SCHEMA}}],
}
_START_SECONDS = 120.0

# Each line of the picture: a CSS class and its text.
Line = tuple[str, str]


class Recorded(BaseHTTPRequestHandler):
    """The model's server."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        data = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def lines() -> list[Line]:
    """What a client receives, without and with the gateway."""
    with model_server() as model, gateway(model) as port:
        before, _ = ask(model)
        after, headers = ask(port)
    return [
        ("comment", "# the model's server alone"),
        ("prompt", "$ curl http://127.0.0.1:8000/v1/chat/completions -d @traffic.json"),
        *shown(before, "bad"),
        ("bad", "  The agent finds no call, and stops."),
        ("", ""),
        ("comment", "# the same request, through toolwire"),
        ("prompt", "$ toolwire serve &"),
        ("prompt", "$ curl http://127.0.0.1:18741/v1/chat/completions -d @traffic.json"),
        *shown(after, "good"),
        ("", f"  x-toolwire-loss: {headers['x-toolwire-loss']}"),
        ("good", "  The agent runs the tool. What was repaired is reported."),
    ]


def shown(choice: Any, kind: str) -> Iterator[Line]:
    """The members that decide what the agent does. Ids are random, so they are left out."""
    message = choice["message"]
    yield "", f"  content:       {message['content'] or 'none'}"
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in message["tool_calls"]]
    yield kind, f"  tool_calls:    {', '.join(calls) or 'none'}"
    yield kind, f"  finish_reason: {choice['finish_reason']}"


def ask(port: int) -> tuple[Any, dict[str, str]]:
    """The first choice of the answer, and the headers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=_START_SECONDS)
    try:
        connection.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(REQUEST),
            {"Content-Type": "application/json", "Host": "localhost"},
        )
        answer = connection.getresponse()
        return json.loads(answer.read())["choices"][0], {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


@contextmanager
def model_server() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Recorded) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@contextmanager
def gateway(model_port: int) -> Iterator[int]:
    """`toolwire serve` with a home folder of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as home:
        config = Path(home) / "toolwire.toml"
        config.write_text(f'[backends.local]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:{model_port}/v1"\n')
        command = [sys.executable, "-m", "toolwire", "serve", "--config", str(config), "--port", str(port)]
        environment = {"PATH": os.defpath, "HOME": home, "PYTHONPATH": str(ROOT / "src")}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"the gateway did not start within {_START_SECONDS:.0f} seconds.")


STYLE = """
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d6deeb; white-space: pre }
.comment { fill: #8a96a8 } .prompt { fill: #82aaff } .bad { fill: #ff869a } .good { fill: #a5e075 }
@media (prefers-reduced-motion: no-preference) {
  text { opacity: 0; animation: show 0.3s ease-out forwards }
}
@keyframes show { to { opacity: 1 } }
"""


def draw(content: list[Line]) -> str:
    """The lines as an SVG; each appears after the one before it."""
    width = max(len(text) for _, text in content) * 8.45 + 40
    height = len(content) * 22 + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" role="img">',
        "<title>A tool call that a model wrote as text, without and with toolwire</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#1b2330"/>',
        *(f'<circle cx="{22 + 20 * number}" cy="20" r="6" fill="#44505f"/>' for number in range(3)),
    ]
    moment = 0.3
    for number, (kind, text) in enumerate(content):
        if text:
            place = f'x="20" y="{56 + number * 22}"'
            parts.append(f'<text class="{kind}" {place} style="animation-delay:{moment:.1f}s">{escape(text)}</text>')
        moment += 0.9 if kind == "prompt" else 0.3
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: list[str]) -> int:
    path = Path(arguments[0]) if arguments else PICTURE
    path.write_text(draw(lines()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
