"""`toolwire serve` with recording, an upstream that plays what a test tells it, and prepared runs that fail in typical ways."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.server.harness import (
    CLOSE,
    LAST_CHUNK,
    Answer,
    Step,
    Upstream,
    ask,
    chunk,
    connected,
    process,
    reply,
    stream_head,
)

CHAT = "/v1/chat/completions"
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather in a city.", "parameters": WEATHER},
}
SYSTEM = "You are a travel agent. Look up the weather before you recommend a city. " * 12


class Stage:
    """A running gateway and what is behind it."""

    def __init__(self, port: int, upstream: Upstream) -> None:
        self.port = port
        self.upstream = upstream
        self.url = f"http://127.0.0.1:{port}"
        self.page = f"{self.url}/ui/"

    def ask(self, path: str, body: Any, **headers: str) -> Answer:
        return ask(self.port, "POST", path, body, headers)

    def flows(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ask(self.port, "GET", "/ui/api/flows?limit=1000").json["flows"]
        return found

    def newest(self, model: str) -> dict[str, Any]:
        return next(flow for flow in self.flows() if flow["model"] == f"local/{model}")

    def clear(self) -> None:
        assert ask(self.port, "DELETE", "/ui/api/flows", headers={"x-toolwire-ui": "1"}).status == 204

    @contextmanager
    def open_request(self, path: str, body: Any) -> Iterator[socket.socket]:
        """A streamed request whose answer is read in the background."""
        connection = connected(self.port)
        data = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        connection.sendall(head.encode() + data)
        threading.Thread(target=_drain, args=(connection,), daemon=True).start()
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def staged(folder: Path, server: str = "", flows: str = "", store: str = 'kind = "memory"') -> Iterator[Stage]:
    upstream = Upstream()
    backend = (
        f'kind = "openai-chat"\nbase_url = "{upstream.url}/v1"\nkey = "sk-of-the-back-end"\nretries = 0\nmodels = ["m"]'
    )
    toml = f"[server]\n{server}\n[store]\n{store}\n[flows]\n{flows}\n[backends.local]\n{backend}\n"
    toml += f'[backends.strict]\n{backend}\nguard = "retry"\n'
    try:
        with process(folder, toml) as running:
            yield Stage(running.port, upstream)
    finally:
        upstream.close()


def question(model: str, text: str = "What is the weather in Geneva?", **more: Any) -> dict[str, Any]:
    """A request of Chat Completions with a tool."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    return {"model": f"local/{model}", "stream": True, "messages": messages, "tools": [TOOL], **more}


def text_frames(*pieces: str) -> list[bytes]:
    return [
        _frame({"role": "assistant", "content": piece} if not place else {"content": piece})
        for place, piece in enumerate(pieces)
    ]


def call_frames(raw: str, name: str = "get_weather", call_id: str = "call_1", size: int = 9) -> list[bytes]:
    first = {"index": 0, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    pieces = [raw[place : place + size] for place in range(0, len(raw), size)]
    return [
        _frame({"tool_calls": [first]}),
        *(_frame({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces),
    ]


def end_frames(reason: str = "stop", cached: int = 0, prompt: int = 1200, completion: int = 40) -> list[bytes]:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    last = _frame({}, finish_reason=reason)
    return [
        last,
        _data(
            {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
        ),
        b"data: [DONE]\n\n",
    ]


def play(*frames: bytes | float) -> list[Step]:
    """A stream; numbers are pauses."""
    steps: list[Step] = [stream_head()]
    steps += [frame if isinstance(frame, float) else chunk(frame) for frame in frames]
    return [*steps, LAST_CHUNK]


def prepare_correction(stage: Stage) -> str:
    """The guard of this back end asks the model again, which then makes a valid call."""
    calls = ('{"town": 5}', '{"city": "Bern"}')
    stage.upstream.on("corrected-call", *(play(*call_frames(raw), *end_frames("tool_calls")) for raw in calls))
    stage.ask(CHAT, {**question("corrected-call"), "model": "strict/corrected-call"})
    return str(stage.flows()[0]["id"])


def prepare_cut_stream(stage: Stage, model: str = "cut-stream", pace: float = 0.0) -> str:
    """The back end closes the connection inside the arguments of a call. pace: seconds between two frames."""
    frames = [*text_frames("I will look ", "it up."), *call_frames('{"city": "Geneva", "da')]
    stage.upstream.on(model, [*paced(frames, pace)[:-1], 0.05, CLOSE])
    stage.ask(CHAT, question(model, "Plan a weekend in Geneva, depending on the weather."))
    return str(stage.newest(model)["id"])


def prepare_repaired_argument(stage: Stage, model: str = "repaired-argument", pace: float = 0.0) -> str:
    """The model writes invalid JSON with a number as text, the gateway repairs it, and the client gets something else."""
    frames = [
        *text_frames("Let me ", "see."),
        *call_frames('{"city": "Geneva", "days": "3",}'),
        *end_frames("tool_calls"),
    ]
    stage.upstream.on(model, paced(frames, pace))
    stage.ask(CHAT, question(model, top_k=40))
    return str(stage.newest(model)["id"])


def prepare_cache_miss(stage: Stage, model: str = "cache-miss", pace: float = 0.0) -> str:
    """Each request of the agent has the time in its system prompt, so the provider's cache never matches."""
    arguments = '{"city": "Geneva", "days": 1}'
    first = question(model, "Which city is warmer: Geneva or Oslo?")
    answer = paced([*text_frames("Geneva", " is warmer."), *end_frames("stop")], pace)
    stage.upstream.on(model, paced([*call_frames(arguments), *end_frames("tool_calls")], pace), answer)
    user = first["messages"][1]
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": '{"temperature": 21, "sky": "sunny"}'}
    stage.ask(CHAT, {**first, "messages": [_at("12:03:44"), user]})
    stage.ask(CHAT, {**first, "messages": [_at("12:03:51"), user, turn, result]})
    return str(stage.newest(model)["id"])


def paced(frames: list[bytes], pace: float) -> list[Step]:
    return play(*(step for frame in frames for step in ((pace, frame) if pace else (frame,))))


def _at(clock: str) -> dict[str, str]:
    return {"role": "system", "content": f"{SYSTEM}The time is {clock}. Answer in one sentence."}


def whole(text: str) -> list[Step]:
    """An answer that is not streamed."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    return [reply(200, json.dumps(body).encode())]


def _frame(delta: dict[str, Any], **choice: Any) -> bytes:
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return _data({**value, "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}]})


def _data(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _drain(connection: socket.socket) -> None:
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass
