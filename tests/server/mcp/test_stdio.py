"""MCP in lines: calls side by side, cancelled calls, and the end of the input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

from toolwire.server.mcp.stdio import StdioServer


class Gateway:
    """Echoes the prompt; "wait" lasts until the caller disconnects."""

    def __init__(self) -> None:
        self.is_waiting = asyncio.Event()
        self.cancelled = 0

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        prompt = json.loads((await receive())["body"])["messages"][-1]["content"]
        if prompt == "fail":
            raise RuntimeError("broken")
        if prompt == "wait":
            self.is_waiting.set()
            await receive()
            self.cancelled += 1
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = {"choices": [{"message": {"content": f"you said {prompt}"}}]}
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def request(number: int, prompt: str) -> dict[str, Any]:
    call = {"name": "ask_model", "arguments": {"prompt": prompt}}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def serve(*steps: Any) -> tuple[dict[Any, Any], Gateway]:
    """The answers by id. A step is a message, bytes, or "waiting": until a call waits."""

    async def run() -> tuple[dict[Any, Any], Gateway]:
        gateway, written = Gateway(), dict[Any, Any]()

        async def write(data: bytes) -> None:
            answer = json.loads(data)
            written[answer["id"]] = answer

        async def chunks() -> AsyncIterator[bytes]:
            for step in steps:
                if step == "waiting":
                    await gateway.is_waiting.wait()
                else:
                    yield step if isinstance(step, bytes) else line(step)

        await StdioServer(gateway, {}, write).serve(chunks(), last_seconds=0.05)
        return written, gateway

    return asyncio.run(run())


def text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_a_running_call_does_not_hold_up_others() -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    answers, gateway = serve(request(1, "wait"), "waiting", request(2, "hi"), cancel)
    assert text(answers[2]) == "you said hi"
    assert 1 not in answers
    assert gateway.cancelled == 1


def test_the_end_of_the_input_ends_running_calls() -> None:
    answers, gateway = serve(request(1, "wait"), "waiting")
    assert answers == {}
    assert gateway.cancelled == 1


def test_messages_may_come_in_pieces() -> None:
    whole = line(request(1, "a")) + line(request(2, "b"))
    answers, _ = serve(*(whole[place : place + 7] for place in range(0, len(whole), 7)))
    assert [text(answers[number]) for number in (1, 2)] == ["you said a", "you said b"]


def test_a_fault_ends_one_call() -> None:
    answers, _ = serve(
        request(1, "fail"), request(2, "hi"), b"junk\n", {"jsonrpc": "2.0", "id": 3, "method": "nothing"}
    )
    assert answers[1]["error"]["code"] == -32603
    assert "broken" not in json.dumps(answers[1])
    assert text(answers[2]) == "you said hi"
    assert answers[None]["error"]["code"] == -32700
    assert answers[3]["error"]["code"] == -32601
