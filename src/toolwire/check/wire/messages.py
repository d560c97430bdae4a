"""Anthropic Messages: whole answers and streams."""

from __future__ import annotations

import json
from typing import Any

from ..deviations import DeviationLog
from .frames import (
    PieceLog,
    SeenAnswer,
    SeenCall,
    SeenEvent,
    add_wrong_usage,
    events,
    has_wrong_usage,
    is_count,
    json_object,
    usage_of,
)

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "length",
    "compaction": "compaction",
}
_USAGE = ("input_tokens", "output_tokens")
_EVENTS = frozenset(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
)
_DELTAS = {"text": "text_delta", "tool_use": "input_json_delta", "server_tool_use": "input_json_delta"}


def is_error(value: object) -> bool:
    if not isinstance(value, dict) or value.get("type") != "error":
        return False
    error = value.get("error")
    return isinstance(error, dict) and isinstance(error.get("type"), str) and isinstance(error.get("message"), str)


def read_body(raw: bytes, log: DeviationLog) -> SeenAnswer:
    answer = SeenAnswer()
    body = json_object(raw, log)
    if body is None:
        return answer
    if body.get("type") == "error" or "error" in body:
        log.add("body.error", "body", body.get("error"))
        answer.error = str(body.get("error"))
        return answer
    _check_message(body, log, "body")
    answer.usage = usage_of(body.get("usage"), log, _USAGE)
    log.expect(answer.usage is not None or has_wrong_usage(log), "usage.missing", "body")
    content = body.get("content")
    if not isinstance(content, list):
        log.add("body.structure", "content", type(content).__name__)
        return answer
    for index, block in enumerate(content):
        _read_block(block, answer, log, f"content[{index}]")
    _read_finish(body.get("stop_reason"), answer, log, "stop_reason")
    _check_calls(answer, log)
    return answer


def read_stream(raw: bytes, log: DeviationLog) -> SeenAnswer:
    answer = SeenAnswer()
    found = events(raw, log)
    if not found:
        return answer
    reader = _StreamReader(answer, log)
    for event in found:
        if event.value is not None:
            reader.read(event, event.value)
    if not answer.error:
        reader.close()
    return answer


class _StreamReader:
    def __init__(self, answer: SeenAnswer, log: DeviationLog) -> None:
        self._answer = answer
        self._log = log
        self._has_started = self._has_ended = self._has_delta = False
        self._open: tuple[int, str] | None = None  # index and type of the open block
        self._next = 0
        self._call: SeenCall | None = None
        self._input_tokens: int | None = None
        self._pieces = PieceLog()

    def read(self, event: SeenEvent, value: dict[str, Any]) -> None:
        log, kind = self._log, value.get("type")
        if not isinstance(kind, str):
            log.add("body.structure", f"{event.where}.type", "missing")
            return
        if event.name != kind:
            log.add("stream.event_name", event.where, f"event {event.name!r}, type {kind!r}")
        if kind == "ping":
            return
        if kind == "error":
            log.add("stream.error", event.where, value.get("error"))
            self._answer.error = str(value.get("error"))
            return
        if kind not in _EVENTS:
            log.add("stream.event_unknown", event.where, kind)
            return
        if self._has_ended:
            log.add("stream.after_end", event.where, kind)
        if not self._has_started and kind != "message_start":
            log.add("stream.start_missing", event.where, f"{kind} before message_start")
            self._has_started = True
        getattr(self, f"_{kind}")(value, event.where)

    def close(self) -> None:
        log = self._log
        if self._open is not None:
            log.add("stream.part_end_missing", "end", f"block {self._open[0]} has no content_block_stop")
        log.expect(self._has_ended, "stream.end_missing", "end", "no message_stop")
        if not self._has_delta:
            log.add("finish.missing", "end", "no message_delta with a stop_reason")
        elif self._answer.usage is None and not has_wrong_usage(log):
            log.add("usage.missing", "stream")
        _check_calls(self._answer, log)

    def _message_start(self, value: dict[str, Any], where: str) -> None:
        log = self._log
        log.expect(not self._has_started, "stream.order", where, "a second message_start")
        self._has_started = True
        message = value.get("message")
        if not isinstance(message, dict):
            log.add("body.structure", f"{where}.message", "missing")
            return
        _check_message(message, log, f"{where}.message")
        usage = message.get("usage")
        log.expect(isinstance(usage, dict), "usage.missing", f"{where}.message")
        if isinstance(usage, dict) and is_count(usage.get("input_tokens")):
            self._input_tokens = usage["input_tokens"]

    def _content_block_start(self, value: dict[str, Any], where: str) -> None:
        log, index, block = self._log, value.get("index"), value.get("content_block")
        if self._open is not None:
            log.add("stream.part_end_missing", where, f"block {self._open[0]} is still open")
        if index != self._next:
            log.add("stream.index", where, f"found {index}, expected {self._next}")
        self._next += 1
        if not isinstance(block, dict):
            log.add("body.structure", f"{where}.content_block", "missing")
            block = {}
        kind = str(block.get("type"))
        self._open = (index if isinstance(index, int) else self._next - 1), kind
        self._call = None
        self._pieces = PieceLog()
        self._answer.has_reasoning |= kind in ("thinking", "redacted_thinking")
        if kind == "tool_use":
            self._call = SeenCall(id=str(block.get("id") or ""), name=str(block.get("name") or ""))
            self._answer.calls.append(self._call)
            if block.get("input"):  # whole inputs at the start are read by some clients only
                log.add("call.arguments_in_start", where)
                self._call.arguments = json.dumps(block["input"])
            else:
                code = "body.member_missing" if block.get("input") is None else "call.arguments_type"
                log.expect(isinstance(block.get("input"), dict), code, f"{where}.input", block.get("input"))
        elif kind == "text" and isinstance(block.get("text"), str):
            self._answer.text += block["text"]

    def _content_block_delta(self, value: dict[str, Any], where: str) -> None:
        log, delta = self._log, value.get("delta")
        if not isinstance(delta, dict):
            log.add("body.structure", f"{where}.delta", "missing")
            return
        if self._open is None:
            log.add("stream.order", where, "a delta outside of blocks")
        elif value.get("index") != self._open[0]:
            log.add("stream.index", where, f"found {value.get('index')}, expected {self._open[0]}")
        kind = delta.get("type")
        expected = _DELTAS.get(self._open[1]) if self._open else None
        if expected is not None and kind not in (expected, "citations_delta"):
            log.add("stream.order", where, f"{kind} in a block of type {self._open[1] if self._open else ''}")
        if kind == "text_delta" and log.expect(isinstance(delta.get("text"), str), "body.member_type", where, delta):
            self._answer.text += delta["text"]
            self._answer.pieces += 1
            self._pieces.add(delta["text"])
        elif kind == "input_json_delta":
            text = delta.get("partial_json")
            if log.expect(isinstance(text, str), "call.arguments_type", where, text) and self._call is not None:
                self._call.arguments += str(text)
                self._pieces.add(str(text))
                self._answer.pieces += bool(text)

    def _content_block_stop(self, value: dict[str, Any], where: str) -> None:
        if self._open is None:
            self._log.add("stream.order", where, "no block is open")
        elif value.get("index") != self._open[0]:
            self._log.add("stream.index", where, f"found {value.get('index')}, expected {self._open[0]}")
        if self._call is not None and not self._call.arguments:
            self._call.arguments = "{}"  # a call without arguments has no delta
        self._pieces.check(self._log, where)
        self._open = self._call = None

    def _message_delta(self, value: dict[str, Any], where: str) -> None:
        log, delta = self._log, value.get("delta")
        if self._open is not None:
            log.add("stream.part_end_missing", where, f"block {self._open[0]} is still open")
        self._has_delta = True
        _read_finish(delta.get("stop_reason") if isinstance(delta, dict) else None, self._answer, log, where)
        usage = value.get("usage")
        if not isinstance(usage, dict):
            log.add("usage.missing", where)
            return
        if not is_count(usage.get("output_tokens")):
            add_wrong_usage(usage, log, where, ("output_tokens",))
            return
        tokens = usage.get("input_tokens") if is_count(usage.get("input_tokens")) else self._input_tokens
        if tokens is not None:
            self._answer.usage = tokens, usage["output_tokens"]

    def _message_stop(self, value: dict[str, Any], where: str) -> None:
        self._has_ended = True


def _check_message(message: dict[str, Any], log: DeviationLog, where: str) -> None:
    if message.get("type") != "message":
        log.add("body.structure", f"{where}.type", f"found {message.get('type')}, expected message")
    log.expect(
        message.get("role", "assistant") == "assistant", "body.member_type", f"{where}.role", message.get("role")
    )
    for member in ("id", "model"):
        if message.get(member) is None:
            log.add("body.member_missing", f"{where}.{member}")
        else:
            log.expect(isinstance(message[member], str), "body.member_type", f"{where}.{member}", message[member])
    if not isinstance(message.get("content"), list):
        log.add("body.structure", f"{where}.content", "expected a list")


def _read_block(block: object, answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        log.add("body.structure", where, block)
        return
    if block["type"] == "text":
        if log.expect(isinstance(block.get("text"), str), "body.member_type", f"{where}.text", block.get("text")):
            answer.text += block["text"]
    elif block["type"] in ("thinking", "redacted_thinking"):
        answer.has_reasoning = True
    elif block["type"] == "tool_use":
        given = block.get("input")
        if "input" not in block:
            log.add("call.arguments_missing", where)
        elif not isinstance(given, dict):
            log.add("call.arguments_type", f"{where}.input", type(given).__name__)
        arguments = json.dumps(given) if isinstance(given, dict) else str(given or "")
        answer.calls.append(
            SeenCall(id=str(block.get("id") or ""), name=str(block.get("name") or ""), arguments=arguments)
        )


def _read_finish(reason: object, answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    if reason is None:
        log.add("finish.missing", where)
        return
    if str(reason) not in _FINISH:
        log.add("finish.unknown", where, reason)
    answer.finish = _FINISH.get(str(reason), str(reason))


def _check_calls(answer: SeenAnswer, log: DeviationLog) -> None:
    ids = [call.id for call in answer.calls]
    log.expect(all(ids), "call.id_missing", "content")
    log.expect(len(set(filter(None, ids))) == len(list(filter(None, ids))), "call.id_repeated", "content", ids)
    log.expect(all(call.name for call in answer.calls), "call.name_missing", "content")
    if answer.finish == "calls" and not answer.calls:
        log.add("finish.calls_absent", "stop_reason")
