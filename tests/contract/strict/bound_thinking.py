"""A Messages server whose model binds each thinking block to everything before it, as Anthropic's models do since Fable 5.1.

A block is signed over `system`, `tools`, the earlier messages and the earlier blocks of its own message. A request that sends the block
back after a change of any of these is refused with the provider's message, or, if the request says so, answered without that block and
all thinking after it. Forced calls and switches for thinking are refused, as by Opus 5.5. Marks for the cache are not compared.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.contract.strict.refusals import Refused, anthropic_body

Body = dict[str, Any]
CONTROLS = "thinking-binding-controls-2026-08-01"
THOUGHTS = ("thinking", "redacted_thinking")
_ORDERED = ("input", "input_schema")  # objects whose members keep their order


def thinking(text: str = "") -> Body:
    return {"type": "thinking", "thinking": text}


def text(content: str) -> Body:
    return {"type": "text", "text": content}


def tool_use(call_id: str, name: str, **arguments: Any) -> Body:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


class BoundModel:
    """Plays answers in order, and remembers requests and refusals."""

    def __init__(self) -> None:
        self.plays: list[list[Body]] = []
        self.seen: list[Body] = []
        self.betas: list[str] = []
        self.refused: list[str] = []
        self.dropped: list[str] = []

    def answer(self, body: Body, betas: str) -> Body:
        """Raises Refused."""
        self.seen.append(body)
        self.betas.append(betas)
        _check_members(body, betas)
        sent, dropped = _without_unbound(body)
        if dropped and _behavior(body) != "drop_block":
            raise Refused(
                "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, "
                'or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
                dropped[0],
            )
        self.dropped += dropped
        blocks = _signed(self.plays.pop(0), sent)
        has_calls = any(block["type"] == "tool_use" for block in blocks)
        answer: Body = {
            "id": f"msg_{len(self.seen)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": blocks,
            "stop_reason": "tool_use" if has_calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 9, "output_tokens": 2},
        }
        if CONTROLS in betas:
            answer["input_transformations"] = [
                {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"} for path in dropped
            ]
        return answer


def thoughts_in(body: Body) -> int:
    """How many thinking blocks a request sends back."""
    return sum(block["type"] in THOUGHTS for message in body["messages"] for block in _blocks(message["content"]))


def _check_members(body: Body, betas: str) -> None:
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise Refused("`tool_choice` of type `any` or `tool` is not supported for this model.", "tool_choice")
    mode = (body.get("thinking") or {"type": "adaptive"}).get("type")
    if mode != "adaptive":
        raise Refused(f'"thinking.type.{mode}" is not supported for this model.', "thinking")
    if _behavior(body) and CONTROLS not in betas:
        raise Refused("block_binding: Extra inputs are not permitted", "thinking.adaptive")


def _behavior(body: Body) -> str:
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    return str(binding.get("prefix_mismatch_behavior") or "")


def _without_unbound(body: Body) -> tuple[Body, list[str]]:
    """The request as the model sees it, and the paths of the blocks that it must not see."""
    kept: list[Body] = []
    dropped: list[str] = []
    for index, message in enumerate(body["messages"]):
        blocks: list[Body] = []
        for number, block in enumerate(_blocks(message["content"])):
            if block["type"] in THOUGHTS:
                if "signature" not in block and block["type"] == "thinking":
                    raise Refused("Field required", f"messages.{index}.content.{number}.thinking.signature")
                before = {**body, "messages": [*kept, {"role": message["role"], "content": blocks}]}
                if block["signature"] != _signature(block["thinking"], before):
                    dropped.append(f"messages.{index}.content.{number}")
                    continue
            blocks.append(block)
        kept.append({"role": message["role"], "content": blocks})
    return {**body, "messages": kept}, dropped


def _signed(blocks: list[Body], body: Body) -> list[Body]:
    done: list[Body] = []
    for block in blocks:
        if block["type"] == "thinking":
            before = {**body, "messages": [*body["messages"], {"role": "assistant", "content": done}]}
            block = {**block, "signature": _signature(block["thinking"], before)}
        done = [*done, block]
    return done


def _signature(thought: str, before: Body) -> str:
    messages = [[message["role"], _plain(_blocks(message["content"]))] for message in before["messages"]]
    prefix = [_plain(_blocks(before.get("system") or [])), _plain(before.get("tools") or []), messages]
    data = json.dumps([prefix, thought]).encode()
    return "Eq" + blake2b(data, digest_size=24).hexdigest()


def _blocks(content: Any) -> list[Body]:
    return [text(content)] if isinstance(content, str) else content


def _plain(value: Any) -> Any:
    """In one spelling: without marks for the cache, members in one order except where the order is the model's or the client's."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {}
    for name in sorted(value.keys() - {"cache_control"}):
        inner = value[name]
        if name == "content" and value.get("type") == "tool_result":
            inner = _blocks(inner)
        plain[name] = json.dumps(inner) if name in _ORDERED else _plain(inner)
    return plain


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    model: ClassVar[BoundModel]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, kind = 200, "text/event-stream" if body.get("stream") else "application/json"
        try:
            answer = self.model.answer(body, self.headers.get("anthropic-beta", ""))
            content = b"".join(_frames(answer)) if body.get("stream") else json.dumps(answer).encode()
        except Refused as refusal:
            self.model.refused.append(f"{refusal.where}: {refusal.words}")
            status, kind, content = 400, "application/json", anthropic_body(refusal)
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _frames(answer: Body) -> Iterator[bytes]:
    def frame(kind: str, **members: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()

    yield frame("message_start", message={**answer, "content": [], "stop_reason": None})
    for index, block in enumerate(answer["content"]):
        match block["type"]:
            case "thinking":
                empty, deltas = (
                    {**block, "thinking": "", "signature": ""},
                    [
                        {"type": "thinking_delta", "thinking": block["thinking"]},
                        {"type": "signature_delta", "signature": block["signature"]},
                    ],
                )
            case "tool_use":
                written = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
                empty, deltas = {**block, "input": {}}, [written]
            case _:
                empty, deltas = {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        yield frame("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield frame("content_block_delta", index=index, delta=delta)
        yield frame("content_block_stop", index=index)
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield frame("message_delta", delta=ended, usage={"output_tokens": 2})
    yield frame("message_stop")


@contextmanager
def bound_model() -> Iterator[tuple[BoundModel, str]]:
    """The model, and the address of its server."""
    model = BoundModel()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": model}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield model, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
