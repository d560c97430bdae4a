"""A server with one defect: it forwards each request to a good one and damages the answer."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

Event = tuple[str, Any]  # name and JSON value, or a string such as [DONE]
_SECONDS = 20


class GoodAnswer(Struct, kw_only=True):
    """What the good server sent, to be damaged in place. close_silently: without `connection: close`."""

    request: dict[str, Any]
    status: int
    kind: str
    body: bytes
    length: int = -1
    close_silently: bool = False
    is_endless: bool = False  # comments follow the body until the client disconnects
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def is_stream(self) -> bool:
        return self.kind == "text/event-stream"

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @value.setter
    def value(self, value: Any) -> None:
        self.body = json.dumps(value, ensure_ascii=False).encode()

    @property
    def events(self) -> list[Event]:
        return [_event(block) for block in self.body.decode().split("\n\n") if block and not block.startswith(":")]

    @events.setter
    def events(self, events: list[Event]) -> None:
        self.body = "".join(_block(name, value) for name, value in events).encode()


Damage = Callable[[GoodAnswer], None]


@contextmanager
def broken_server(good: str, damage: Damage) -> Iterator[str]:
    """The address of a server that damages the answers of the good one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one write

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["content-length"])))

        def do_GET(self) -> None:
            self._answer(b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

        def _answer(self, body: bytes) -> None:
            answer = _forward(good, self.command, self.path, body)
            damage(answer)
            self.send_response(answer.status)
            self.send_header("content-type", answer.kind)
            if not answer.is_endless:
                self.send_header("content-length", str(len(answer.body) if answer.length < 0 else answer.length))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)
            self.wfile.flush()
            if answer.is_endless:
                self._go_on()
            if answer.close_silently or answer.is_endless or answer.length > len(answer.body):
                self.close_connection = True

        def _go_on(self) -> None:
            try:
                while True:
                    self.wfile.write(b": wait\n\n")
                    self.wfile.flush()
                    is_ended.wait(0.02)
            except OSError:
                pass

    is_ended = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        is_ended.set()
        server.shutdown()
        server.server_close()


def _forward(good: str, method: str, path: str, body: bytes) -> GoodAnswer:
    target = urlsplit(good)
    connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=_SECONDS)
    headers = {"content-type": "application/json", "authorization": "Bearer x"}
    connection.request(method, path, body or None, headers)
    response = connection.getresponse()
    kind = (response.getheader("content-type") or "").partition(";")[0]
    try:
        request = json.loads(body)
    except ValueError:
        request = {}
    answer = GoodAnswer(request=request, status=response.status, kind=kind, body=response.read())
    connection.close()
    return answer


def _event(block: str) -> Event:
    name, data = "", ""
    for line in block.split("\n"):
        member, _, text = line.partition(": ")
        name = text if member == "event" else name
        data = text if member == "data" else data
    return name, data if data == "[DONE]" else json.loads(data)


def _block(name: str, value: Any) -> str:
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (f"event: {name}\n" if name else "") + f"data: {data}\n\n"
