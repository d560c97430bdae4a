"""Recorded sessions with the real program, played through the decoder as a back end would: one decoder an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.backends.event_contract import check_events
from toolwire.backends.codex.wire.answer_in import CodexTurnDecoder
from toolwire.backends.codex.wire.approvals import TOOL_CALL, decline
from toolwire.backends.codex.wire.names import CodexToolNames
from toolwire.events import Event, Failed, Finished, Noted, PartEnded
from toolwire.types import JsonObject, Loss, Reasoning, Text, ToolCall
from toolwire.wire.json_rpc import LineReader, RpcNotification, RpcRequest, RpcResponse

FOLDER = Path(__file__).parent / "recordings"
VERSIONS = ("0.89.0", "0.166.0")


def cases(version: str) -> list[str]:
    return sorted(path.stem for path in (FOLDER / version).glob("*.jsonl"))


def records(version: str, case: str) -> Iterator[dict[str, Any]]:
    with (FOLDER / version / f"{case}.jsonl").open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def sent(version: str, case: str, method: str) -> list[dict[str, Any]]:
    """The params of every request of this method that the recording's client sent."""
    messages = (record["msg"] for record in records(version, case) if record["dir"] == "client")
    return [message["params"] for message in messages if message.get("method") == method]


class Session:
    """answers: what each decoder gave, in the order in which they began. replies: to the server's own requests."""

    def __init__(self, version: str, case: str) -> None:
        self.answers: list[list[Event]] = []
        self.replies: list[tuple[RpcRequest, JsonObject | None]] = []
        self.decoders: list[CodexTurnDecoder] = []
        self._asked: dict[int, dict[str, Any]] = {}  # requests of the client, by id
        self._names: dict[str, CodexToolNames] = {}  # by thread
        self._lines = LineReader()
        for record in records(version, case):
            if record["dir"] == "client":
                self._from_client(record["msg"])
            elif record["dir"] == "server":
                for message in self._lines.feed(json.dumps(record["msg"]).encode() + b"\n"):
                    self._from_server(message)
        for number, decoder in enumerate(self.decoders):
            self.answers[number] += decoder.cut()

    def _from_client(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._go_on()
            return
        if "id" in message:
            self._asked[message["id"]] = message
        if message["method"] == "turn/start":
            thread = message["params"]["threadId"]
            if self._names and not any(d.thread_id == thread and not d.is_over for d in self.decoders):
                self._open(CodexTurnDecoder(thread, model="m", names=self._names.get(thread)))
        elif message["method"] == "turn/interrupt":
            self._settle()
            for decoder in self.decoders:
                decoder.calls.clear()  # nobody goes on from an interrupted turn

    def _from_server(self, message: object) -> None:
        match message:
            case RpcResponse(id=int(id), result=dict(result)) if "thread" in result and id in self._asked:
                self._names[result["thread"]["id"]] = _names(self._asked[id]["params"])
            case RpcNotification():
                for number, decoder in enumerate(self.decoders):
                    self.answers[number] += decoder.notify(message.method, message.params)
            case RpcRequest():
                number = self._latest(message.params.get("threadId"))
                if message.method != TOOL_CALL:
                    self.replies.append((message, decline(message)))
                    return
                self.answers[number] += self.decoders[number].call(message.id, message.params) or []
                self.replies.append((message, None))

    def _open(self, decoder: CodexTurnDecoder, events: list[Event] | None = None) -> None:
        self.decoders.append(decoder)
        self.answers.append(events or [])

    def _latest(self, thread: object) -> int:
        return max(number for number, decoder in enumerate(self.decoders) if decoder.thread_id == thread)

    def _settle(self) -> None:
        for number, decoder in enumerate(self.decoders):
            self.answers[number] += decoder.end_calls()

    def _go_on(self) -> None:
        """The client brings a result: the answer with the call is over, and the next one begins in the same turn."""
        latest = self.decoders[-1] if self.decoders else None
        if latest is None or not latest.calls:
            return
        self._settle()
        if latest.is_over:
            self._open(*latest.follow())


def _names(params: dict[str, Any]) -> CodexToolNames:
    tools = params.get("dynamicTools", [])
    flat = [inner for tool in tools for inner in tool.get("tools", [tool])]
    return CodexToolNames(tool["name"] for tool in flat)


def shown(events: list[Event]) -> list[str]:
    """An answer in a few words a part, after a check that its events keep the rules."""
    if events:
        check_events(events)
    words = []
    for event in events:
        match event:
            case PartEnded(part=Text(text=text)):
                words.append(f"text {text}")
            case PartEnded(part=Reasoning(text=text)):
                words.append(f"thought {text}")
            case PartEnded(part=ToolCall() as call):
                words.append(f"call {call.id} {call.name} {call.raw}")
            case Noted(note=Loss(feature=feature)):
                words.append(f"loss {feature}")
            case Finished(choices=(choice,), usage=usage):
                words.append(f"{choice.reason} {usage.input}+{usage.output}" if usage else choice.reason)
            case Failed(error=error):
                words.append(f"failed {error.status} {error.code}")
    return words
