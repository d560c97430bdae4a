"""A proxy between the gateway and the model: it counts requests and tokens, and answers a repeated request from memory.

The same request at temperature 0 has the same answer, so settings that ask the model the same question share one answer. The path of
a request begins with the name of the setting that sent it.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from msgspec import Struct

Json = Any
_TIMEOUT = 600.0


class Cost(Struct):
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Recorder:
    """urls: servers with the same model, each of which gets one request at a time. members: added to every request.

    store: a file of answers, which another run reads.
    """

    def __init__(self, urls: Sequence[str], key: str, members: dict[str, Json], store: Path | None = None) -> None:
        self.costs: defaultdict[str, Cost] = defaultdict(Cost)
        self.sent = 0  # requests that the model answered
        self._key = key
        self._members = members
        self._free: Queue[str] = Queue()
        for url in urls:
            self._free.put(url)
        self._store = store
        self._known = _read_store(store) if store is not None and store.exists() else {}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, setting: str, body: Json) -> tuple[int, bytes]:
        key = json.dumps(body, sort_keys=True).encode()
        status, answer = self._known.get(key) or self._ask(key, body)
        usage = _usage(answer)
        with self._lock:
            cost = self.costs[setting]
            cost.requests += 1
            cost.prompt_tokens += usage.get("prompt_tokens", 0)
            cost.completion_tokens += usage.get("completion_tokens", 0)
        return status, answer

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _ask(self, key: bytes, body: Json) -> tuple[int, bytes]:
        url = self._free.get()
        try:
            found = self._post(f"{url}/chat/completions", body | self._members)
        finally:
            self._free.put(url)
        with self._lock:
            self.sent += 1
            if found[0] < 500:
                self._known[key] = found
                if self._store is not None:
                    with self._store.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([key.decode(), found[0], found[1].decode()]) + "\n")
        return found

    def _post(self, url: str, body: Json) -> tuple[int, bytes]:
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        try:
            with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=_TIMEOUT) as reply:
                return reply.status, reply.read()
        except HTTPError as error:
            return error.code, error.read()
        except URLError as error:
            return 502, json.dumps({"error": {"message": f"{url}: {error.reason}"}}).encode()


def _read_store(path: Path) -> dict[bytes, tuple[int, bytes]]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {key.encode(): (status, answer.encode()) for key, status, answer in lines}


def _usage(answer: bytes) -> Json:
    try:
        return json.loads(answer).get("usage") or {}
    except (ValueError, AttributeError):
        return {}


def _handler(recorder: Recorder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, answer = recorder.answer(self.path.split("/")[1], body)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing: the gateway has a log."""

    return Handler
