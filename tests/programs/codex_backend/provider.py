"""The model behind Codex: a Responses server on loopback that plays scenes and records its requests.

Run as a program with a port. GET /seen/TAG returns every request with that tag: its body, and whether its answer is open, done or gone,
which means that the client disconnected before the end.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from typing import Any

from tests.programs.codex_backend.scenes import (
    USAGE,
    Call,
    End,
    Meet,
    Refuse,
    Say,
    SceneRequest,
    Step,
    Think,
    Wait,
    play,
    read_request,
)

_MODEL = "a-model-that-plays"
_PIECE = 7  # characters of arguments per event


class Provider:
    def __init__(self) -> None:
        self._seen: list[dict[str, Any]] = []
        self._meeting = _Meeting()

    async def serve(self, port: int) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", port, backlog=512)
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            method, path, body = await _request(reader)
            if method == "GET" and path.startswith("/seen/"):
                tag = path.removeprefix("/seen/")
                await _answer(writer, 200, [record for record in self._seen if record["tag"] == tag])
            elif method == "POST" and path.endswith("/responses"):
                await self._respond(reader, writer, body)
            else:
                await _answer(writer, 404, {"error": {"message": f"no such route {path}"}})
        except (ConnectionError, asyncio.IncompleteReadError, ValueError) as error:
            print(f"a connection ended: {error!r}", flush=True)
        finally:
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: dict[str, Any]) -> None:
        known = read_request(body)
        record = {"scene": known.scene, "tag": known.tag, "state": "open", "body": body}
        self._seen.append(record)
        playing = asyncio.ensure_future(_Answer(writer, known, self._meeting).play(play(known)))
        leaving = asyncio.ensure_future(reader.read())
        await asyncio.wait({playing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        is_done = playing.done() and not playing.exception()
        record["state"] = "done" if is_done else "gone"
        for task in (playing, leaving):
            task.cancel()
        await asyncio.gather(playing, leaving, return_exceptions=True)


class _Meeting:
    """Requests that wait for each other; disconnected ones are not counted."""

    def __init__(self) -> None:
        self._waiting = 0
        self._is_full = asyncio.Event()

    async def join(self, number: int) -> None:
        is_full = self._is_full
        self._waiting += 1
        try:
            if self._waiting == number:
                is_full.set()
                self._is_full = asyncio.Event()
            await is_full.wait()
        finally:
            self._waiting -= 1


class _Answer:
    """One answer: its events, their numbers, and the resulting items."""

    _ids = itertools.count(1)

    def __init__(self, writer: asyncio.StreamWriter, known: SceneRequest, meeting: _Meeting) -> None:
        self._writer = writer
        self._known = known
        self._meeting = meeting
        self._id = f"resp_{next(self._ids):05d}"
        self._events = itertools.count()
        self._output: list[dict[str, Any]] = []

    async def play(self, steps: list[Step]) -> None:
        if isinstance(steps[0], Refuse):
            await _answer(self._writer, steps[0].status, {"error": steps[0].error})
            return
        self._writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        await self._send("response.created", response=self._response("in_progress"))
        for step in steps:
            if isinstance(step, End):
                if step.kind:
                    await self._send(f"response.{step.kind}", response=self._response(step.kind) | step.members)
                return
            await self._step(step)
        await self._send("response.completed", response=self._response("completed") | {"usage": USAGE})

    async def _step(self, step: Step) -> None:
        match step:
            case Say():
                await self._say(step)
            case Call():
                await asyncio.sleep(step.pause)
                await self._call(step)
            case Think():
                await self._think(step)
            case Meet():
                await self._meeting.join(step.number)
            case Wait():
                await asyncio.sleep(3600)

    async def _say(self, say: Say) -> None:
        item = {"type": "message", "id": self._item_id("msg"), "role": "assistant"}
        at = {"item_id": item["id"], "output_index": len(self._output), "content_index": 0}
        text = "".join(say.pieces)
        await self._added(item | {"status": "in_progress", "content": []})
        await self._send("response.content_part.added", **at, part=_part(""))
        for piece in say.pieces:
            await self._send("response.output_text.delta", **at, delta=piece, logprobs=[])
            await asyncio.sleep(say.pause)
        await self._send("response.output_text.done", **at, text=text, logprobs=[])
        await self._send("response.content_part.done", **at, part=_part(text))
        await self._done(item | {"status": "completed", "content": [_part(text)]})

    async def _call(self, call: Call) -> None:
        namespace, name = self._known.tools.get(call.name, ("", call.name))
        item = {"type": "function_call", "id": self._item_id("fc"), "call_id": self._item_id("call"), "name": name}
        if namespace:
            item["namespace"] = namespace
        raw = call.raw or json.dumps(call.arguments, ensure_ascii=False)
        at = {"item_id": item["id"], "output_index": len(self._output)}
        await self._added(item | {"arguments": "", "status": "in_progress"})
        for start in range(0, len(raw), _PIECE):
            piece = raw[start : start + _PIECE]
            await self._send("response.function_call_arguments.delta", **at, delta=piece)
        await self._send("response.function_call_arguments.done", **at, name=name, arguments=raw)
        await self._done(item | {"arguments": raw, "status": "completed"})

    async def _think(self, think: Think) -> None:
        item = {"type": "reasoning", "id": self._item_id("rs"), "summary": []}
        at = {"item_id": item["id"], "output_index": len(self._output), "summary_index": 0}
        await self._added(item)
        part = {"type": "summary_text", "text": ""}
        await self._send("response.reasoning_summary_part.added", **at, part=part)
        for piece in think.summary.split(" "):
            await self._send("response.reasoning_summary_text.delta", **at, delta=f"{piece} ")
        whole = [part | {"text": f"{think.summary} "}]
        await self._done(item | {"summary": whole, "encrypted_content": "QUJD"})

    async def _added(self, item: dict[str, Any]) -> None:
        await self._send("response.output_item.added", output_index=len(self._output), item=item)

    async def _done(self, item: dict[str, Any]) -> None:
        await self._send("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)

    async def _send(self, kind: str, **members: Any) -> None:
        data = json.dumps({"type": kind, "sequence_number": next(self._events), **members})
        self._writer.write(f"event: {kind}\ndata: {data}\n\n".encode())
        await self._writer.drain()

    def _response(self, status: str) -> dict[str, Any]:
        told = {"id": self._id, "object": "response", "created_at": 1, "model": _MODEL}
        return told | {"status": status, "output": self._output, "usage": None}

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self._id}_{len(self._output)}"


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    if fields.get("transfer-encoding"):
        raise ValueError("found a chunked request; expected content-length")
    body = await reader.readexactly(int(fields.get("content-length", 0)))
    return method, path, json.loads(body or b"{}")


async def _answer(writer: asyncio.StreamWriter, status: int, value: Any) -> None:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} As Told\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    writer.write(f"{head}connection: close\r\n\r\n".encode() + body)
    await writer.drain()


if __name__ == "__main__":
    asyncio.run(Provider().serve(int(sys.argv[1])))
