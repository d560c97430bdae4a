"""A model provider for the real programs: it speaks Responses on loopback and answers by a word in the prompt, as in "DO=plain"."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 120,
}
_REFUSALS = {
    "e500": (500, "boom", "server_error"),
    "e429": (429, "Rate limit reached for requests", "rate_limit_exceeded"),
    "e401": (401, "Incorrect API key provided", "invalid_api_key"),
    "e400": (400, "Unsupported parameter", "unsupported_parameter"),
}
_FAILURES = {
    "context": ("context_length_exceeded", "Your input exceeds the context window"),
    "failed": ("server_error", "the model failed inside the stream"),
}


class Provider(ThreadingHTTPServer):
    """requests are the bodies that came; most is how many answers were under way at once; cut counts those nobody read on."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[dict[str, Any]] = []
        self.running = self.most = self.cut = 0
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves is no news."""


@contextmanager
def providing() -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.shutdown()
        provider.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: Provider
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._refuse(404, "no such route", "not_found")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        with self.server.lock:
            self.server.requests.append(body)
        word = _word(body)
        if word in _REFUSALS:
            self._refuse(*_REFUSALS[word])
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with self.server.lock:
            self.server.running += 1
            self.server.most = max(self.server.most, self.server.running)
        try:
            self._answer(word, body)
        except OSError:
            self.server.cut += 1
        finally:
            with self.server.lock:
                self.server.running -= 1

    def _refuse(self, status: int, message: str, code: str) -> None:
        data = json.dumps({"error": {"message": message, "type": code, "code": code}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _event(self, kind: str, **members: Any) -> None:
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode())
        self.wfile.flush()

    def _answer(self, word: str, body: dict[str, Any]) -> None:
        has_results = _has_results(body)
        self._event("response.created", response=_response("in_progress"))
        if word in _FAILURES:
            code, message = _FAILURES[word]
            self._event("response.failed", response=_response("failed", error={"code": code, "message": message}))
            return
        if word == "calls" and not has_results:
            self._say(0, ["Let me", " look."])
            name = _offered(body, "get_weather")
            self._call(1, name, '{"city": "Paris"}', "call_p1")
            self._call(2, name, '{"city":"Rome"}', "call_p2")
        elif word == "searches":
            self._search(0)
            self._say(1, ["Found it."])
        elif word == "asks" and not has_results:
            options = [{"label": "yes", "description": "do it"}, {"label": "no", "description": "do not"}]
            question = {"id": "q", "header": "Go", "question": "Shall I?", "options": options}
            self._call(0, "request_user_input", json.dumps({"questions": [question]}), "call_q")
        elif word in ("calls_on", "chatters") and _is_described(body, "get_weather"):
            call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
            if word == "chatters":
                self._say(0, ["Let me look again.\n", call])
            else:
                self._say(0, [call] if len(self.server.requests) <= 2 else ["That is all I know."])
        elif word == "calls_on" and not _has(body, "get_weather"):
            self._say(0, ["That is all I know."])
        elif word in ("calls_on", "insists", "chatters"):
            if word == "chatters":
                self._say(0, ["Let me look again."])
            self._call(1, _offered(body, "get_weather"), '{"city": "Oslo"}', f"call_{len(self.server.requests)}")
        elif word == "stuck":
            self._call(0, "no_such_tool", "{}", f"call_{len(self.server.requests)}")
        elif word == "slow":
            self._say(0, [f"w{index} " for index in range(400)], pause=0.05)
        elif word == "wait":
            self._say(0, ["one ", "two ", "three"], pause=0.3)
        elif word == "cut":
            self._event("response.output_item.added", output_index=0, item=_message("in_progress"))
            self._event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta="half")
            return
        else:
            self._say(0, ["It is ", "sunny."] if has_results else ["Hel", "lo", " wor", "ld", "."])
        self._event("response.completed", response=_response("completed", usage=_USAGE))

    def _say(self, index: int, pieces: list[str], pause: float = 0.005) -> None:
        place = {"item_id": "msg_1", "output_index": index, "content_index": 0}
        self._event("response.output_item.added", output_index=index, item=_message("in_progress"))
        for piece in pieces:
            self._event("response.output_text.delta", **place, delta=piece)
            time.sleep(pause)
        self._event("response.output_item.done", output_index=index, item=_message("completed", "".join(pieces)))

    def _search(self, index: int) -> None:
        item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
        item["action"] = {"type": "search", "query": "weather"}
        self._event("response.output_item.added", output_index=index, item=item)
        self._event("response.output_item.done", output_index=index, item=item)

    def _call(self, index: int, name: str, arguments: str, call_id: str) -> None:
        item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name}
        self._event("response.output_item.added", output_index=index, item={**item, "arguments": ""})
        self._event("response.output_item.done", output_index=index, item={**item, "arguments": arguments})


def _message(status: str, text: str = "") -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}


def _response(status: str, **members: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": status, "model": "fake", "output": [], **members}


def _word(body: dict[str, Any]) -> str:
    """The last that a user said decides, wherever in the text it stands."""
    said = json.dumps([item for item in body.get("input", []) if item.get("role") in ("user", "developer")])
    found = re.findall(r"DO=(\w+)", said)
    return str(found[-1]) if found else "plain"


def _offered(body: dict[str, Any], name: str) -> str:
    """The name that a tool goes by here: Codex may have been given another one than the client's."""
    names = [str(tool.get("name")) for tool in body.get("tools", [])]
    return next((offered for offered in names if offered.endswith(name)), name)


def _has(body: dict[str, Any], name: str) -> bool:
    return any(str(tool.get("name")).endswith(name) for tool in body.get("tools", []))


def _is_described(body: dict[str, Any], name: str) -> bool:
    """The request has no such tool, but its text describes one."""
    return not _has(body, name) and name in json.dumps([body.get("instructions"), body.get("input")])


def _has_results(body: dict[str, Any]) -> bool:
    return any(str(item.get("type")).endswith("_output") for item in body.get("input", []))
