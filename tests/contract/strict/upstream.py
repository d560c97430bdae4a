"""Four providers on one local port: each rejects what the real one rejects, and otherwise answers with a short text."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.contract.strict import chat, gemini, messages, responses
from tests.contract.strict.refusals import Refused, anthropic_body, gemini_body, openai_body

CHECKS: dict[str, Callable[..., None]] = {
    "chat": chat.check,
    "responses": responses.check,
    "messages": messages.check,
    "gemini": gemini.check,
}
# Accepted from clients of the provider's own dialect: their requests are forwarded unchanged.
OWN: dict[str, dict[str, bool]] = {
    "chat": {"has_pictures": True},
    "responses": {},
    "messages": {"has_system": True, "needs_tools": False},
    "gemini": {"is_own": True},
}
_PATHS = {"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages"}
_BODIES = {"chat": openai_body, "responses": openai_body, "messages": anthropic_body, "gemini": gemini_body}
_USAGE = {"input_tokens": 9, "output_tokens": 2}
ANSWERS: dict[str, dict[str, Any]] = {
    "chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    },
    "responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Fine.", "annotations": []}],
            }
        ],
        "usage": {**_USAGE, "total_tokens": 11},
    },
    "messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Fine."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": _USAGE,
    },
    "gemini": {
        "candidates": [
            {"index": 0, "content": {"role": "model", "parts": [{"text": "Fine."}]}, "finishReason": "STOP"}
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11},
        "modelVersion": "m",
        "responseId": "r1",
    },
}


def judge(dialect: str, body: dict[str, Any], client: str) -> None:
    """Raises Refused if the provider of this dialect would reject the request of a client of that dialect."""
    CHECKS[dialect](body, **(OWN[dialect] if client == dialect else {}))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # send head and body together, so that the body does not wait for an acknowledgement
    client: ClassVar[list[str]]  # the dialect of the current client
    seen: ClassVar[list[tuple[str, bytes]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        path = self.path.replace("/v1/v1/", "/v1/")
        dialect = "gemini" if "enerateContent" in path else _PATHS[path]
        self.seen.append((dialect, body))
        try:
            judge(dialect, json.loads(body), self.client[-1])
        except Refused as refusal:
            self._answer(400, _BODIES[dialect](refusal))
        else:
            self._answer(200, json.dumps(ANSWERS[dialect]).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Strict:
    """seen: (dialect, body) of every request; client: the dialect of the client whose requests come next."""

    def __init__(self, server: ThreadingHTTPServer, handler: type[_Handler]) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.seen = handler.seen
        self._client = handler.client

    def expect(self, client: str) -> None:
        self._client[:] = [client]


@contextmanager
def strict_upstream() -> Iterator[Strict]:
    handler = type("_Counted", (_Handler,), {"client": [""], "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield Strict(server, handler)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
