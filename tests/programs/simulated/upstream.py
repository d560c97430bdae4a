"""A server with only text, and the model of the tests. Run as a program: PORT JOURNAL.

The first name in a path selects how the model writes its calls, the second the dialect of the server, as in
/sloppy/openai-chat/v1/chat/completions. Everything related to tools is rejected with 400. Only for models with their own format
of calls, the server accepts tools and does not parse the answer. JOURNAL gets one JSON line per request.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.programs.simulated.manners import MANNERS, OWN
from tests.programs.simulated.model import Answer, Prompt, answer, script_in
from tests.programs.simulated.reading import offered_prompt, written_prompt
from tests.programs.simulated.wires import WIRES, Refused, Wire, no_tools


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, journal: Path) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._journal = journal
        self._lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A disconnecting gateway is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def note(self, line: dict[str, Any]) -> None:
        with self._lock, self._journal.open("a", encoding="utf-8") as journal:
            journal.write(json.dumps(line, ensure_ascii=False) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # send every chunk separately
    server: Server

    def do_GET(self) -> None:
        self._send(404, {"error": {"message": f"there is no {self.path} here."}})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        _, manner, dialect, *rest = self.path.partition("?")[0].split("/")
        wire = WIRES.get(dialect)
        if wire is None or manner not in MANNERS or "/" + "/".join(rest) != wire.path:
            self._send(404, {"error": {"message": f"there is no {self.path} here."}})
            return
        request = json.loads(body)
        try:
            prompt = _prompt(request, manner, wire)
        except Refused as why:
            self._journal(request, status=400, refused=str(why))
            self._send(400, {"error": {"message": f"found {why}.", "type": "invalid_request_error"}})
            return
        said = answer(prompt, MANNERS[manner])
        self._journal(request, status=200, prompt=prompt, said=said)
        if request.get("stream"):
            self._stream(wire, said.text)
        else:
            self._send(200, wire.whole(said.text))

    def _stream(self, wire: Wire, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in wire.stream(text):
            data = event.encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _journal(
        self,
        request: dict[str, Any],
        *,
        status: int,
        refused: str = "",
        prompt: Prompt | None = None,
        said: Answer | None = None,
    ) -> None:
        script = script_in(json.dumps(request))
        line: dict[str, Any] = {"path": self.path, "status": status, "refused": refused, "script": script}
        if prompt is not None and said is not None:
            line |= {"tools": list(prompt.tools), "step": said.step, "attempt": said.attempt, "said": said.text}
        self.server.note({**line, "body": request})

    def log_message(self, format: str, *arguments: Any) -> None:
        """The journal has the requests."""


def _prompt(request: dict[str, Any], manner: str, wire: Wire) -> Prompt:
    if manner in OWN:
        return offered_prompt(request)
    no_tools(request)
    return written_prompt(wire.read(request))


if __name__ == "__main__":
    Server(int(sys.argv[1]), Path(sys.argv[2])).serve_forever()
