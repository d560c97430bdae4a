"""A model server on loopback for the soak: the model's name decides what it answers.

A model is named `what` or `what-anything`: text, tools, slow (it begins and never ends), cut, garbage, or a status such as 400. It
speaks Chat Completions and Messages, by the path of the request.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

_numbers = itertools.count(1)  # each call has an id of its own, as in real answers
WORDS = [f"word {number} " for number in range(12)]
ARGUMENTS = ['{"city": ', '"Zürich", ', '"days": ', "3}"]


class Upstream:
    """One event loop serves it beside the clients."""

    def __init__(self) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, limit=1 << 20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            while await _answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._handlers.discard(task)
            writer.transport.abort()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection may serve another request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    request = json.loads(await reader.readexactly(length))
    is_chat = b"/chat/completions" in head.split(b"\r\n")[0]
    what = request["model"].partition("-")[0]
    if what.isdigit():
        writer.write(_whole(int(what), {"error": {"message": "refused by the soak", "type": "invalid_request_error"}}))
        return True
    if what == "garbage":
        writer.write(b"SSH-2.0-soak\r\n\r\n")
        return False
    if not request.get("stream"):
        writer.write(_whole(200, _chat_body(what) if is_chat else _messages_body(what)))
        return True
    frames = _chat_frames(what) if is_chat else _messages_frames(what)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    for frame in frames if what in ("text", "tools") else frames[:4]:
        writer.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        await writer.drain()
        await asyncio.sleep(0)
    if what == "slow":
        await reader.read(1)  # until the gateway closes
    if what in ("slow", "cut"):
        return False
    writer.write(b"0\r\n\r\n")
    return True


def _whole(status: int, body: Any) -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Soak\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


def _chat_body(what: str) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(WORDS)}
    if what == "tools":
        function = {"name": "weather", "arguments": "".join(ARGUMENTS)}
        message |= {
            "content": None,
            "tool_calls": [{"id": f"call_{next(_numbers):016x}", "type": "function", "function": function}],
        }
    reason = "tool_calls" if what == "tools" else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": what, "choices": [choice], "usage": usage}


def _chat_frames(what: str) -> list[bytes]:
    deltas: list[Any] = [{"role": "assistant", "content": ""}, *({"content": word} for word in WORDS)]
    if what == "tools":
        function = {"name": "weather", "arguments": ""}
        call = {"index": 0, "id": f"call_{next(_numbers):016x}", "type": "function", "function": function}
        rest = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in ARGUMENTS]
        deltas = [{"role": "assistant", "content": None, "tool_calls": [call]}, *rest]
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": what}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if what == "tools" else "stop"})
    return [*(_frame(head | {"choices": [choice]}) for choice in choices), b"data: [DONE]\n\n"]


def _messages_body(what: str) -> Any:
    content: Any = {"type": "text", "text": "".join(WORDS)}
    if what == "tools":
        call_id, arguments = f"toolu_{next(_numbers):016x}", json.loads("".join(ARGUMENTS))
        content = {"type": "tool_use", "id": call_id, "name": "weather", "input": arguments}
    head = {"id": "m1", "type": "message", "role": "assistant", "model": what, "content": [content]}
    reason = "tool_use" if what == "tools" else "end_turn"
    return head | {"stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 9}}


def _messages_frames(what: str) -> list[bytes]:
    body = _messages_body(what)
    block, kind, member, pieces = {"type": "text", "text": ""}, "text_delta", "text", WORDS
    if what == "tools":
        block, kind, member, pieces = body["content"][0] | {"input": {}}, "input_json_delta", "partial_json", ARGUMENTS
    ending = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    events = [
        {"type": "message_start", "message": body | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": kind, member: piece}} for piece in pieces),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return [b"event: " + event["type"].encode() + b"\n" + _frame(event) for event in events]


def _frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
