"""OpenAI Responses: whole answers and streams."""

from __future__ import annotations

from typing import Any

from ..deviations import DeviationLog
from .frames import DONE, PieceLog, SeenAnswer, SeenCall, SeenEvent, events, is_count, json_object, usage_of

_USAGE = ("input_tokens", "output_tokens")
_ENDS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}
_ITEM_EVENTS = (
    "response.output_text.",
    "response.function_call_arguments.",
    "response.content_part.",
    "response.refusal.",
)


def is_error(value: object) -> bool:
    error = value.get("error") if isinstance(value, dict) else None
    return isinstance(error, dict) and isinstance(error.get("message"), str)


def read_body(raw: bytes, log: DeviationLog) -> SeenAnswer:
    answer = SeenAnswer()
    body = json_object(raw, log)
    if body is None:
        return answer
    if body.get("error"):
        log.add("body.error", "body", body["error"])
        answer.error = str(body["error"])
        return answer
    _read_response(body, answer, log, "body")
    return answer


def read_stream(raw: bytes, log: DeviationLog) -> SeenAnswer:
    answer = SeenAnswer()
    found = events(raw, log)
    if not found:
        return answer
    reader = _StreamReader(answer, log)
    for event in found:
        if event.data.strip() != DONE and event.value is not None:
            reader.read(event, event.value)
    if not answer.error:
        reader.close()
    return answer


class _Item:
    """An output item while it streams."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.kind = str(item.get("type"))
        self.id = item.get("id")
        self.item = item
        self.text = ""
        self.arguments = ""
        self.is_done = False
        self.has_part = False
        self.pieces = PieceLog()


class _StreamReader:
    def __init__(self, answer: SeenAnswer, log: DeviationLog) -> None:
        self._answer = answer
        self._log = log
        self._items: dict[int, _Item] = {}
        self._sequence: int | None = None
        self._has_started = False
        self._end = ""
        self._id: object = None

    def read(self, event: SeenEvent, value: dict[str, Any]) -> None:
        log, where, kind = self._log, event.where, value.get("type")
        if not isinstance(kind, str):
            log.add("body.structure", f"{where}.type", "missing")
            return
        if event.name != kind:
            log.add("stream.event_name", where, f"event {event.name!r}, type {kind!r}")
        self._check_sequence(value.get("sequence_number"), where)
        if self._end:
            log.add("stream.after_end", where, kind)
        if not self._has_started and kind not in ("response.created", "error"):
            log.add("stream.start_missing", where, f"{kind} before response.created")
        self._has_started = True
        self._read_kind(kind, value, where)

    def close(self) -> None:
        log = self._log
        if not self._end:
            log.add("stream.end_missing", "end", "no response.completed")
            for item in self._items.values():
                self._add(item)
        for index, item in self._items.items():
            log.expect(item.is_done, "stream.part_end_missing", f"item {index}", "no response.output_item.done")
            is_whole = bool(_text_of(item.item)) and not item.text
            log.expect(not is_whole, "stream.deltas_missing", f"item {index}", "no response.output_text.delta")
            item.pieces.check(log, f"item {index}")
            if item.text and not item.has_part:
                log.add("stream.part_missing", f"item {index}", "no response.content_part.added")
        if sorted(self._items) != list(range(len(self._items))):
            log.add("stream.index", "output_index", sorted(self._items))

    def _read_kind(self, kind: str, value: dict[str, Any], where: str) -> None:
        log = self._log
        match kind:
            case "error":
                log.add("stream.error", where, value)
                self._answer.error = str(value.get("message") or value.get("error"))
            case "response.created" | "response.in_progress" | "response.queued":
                response = value.get("response")
                self._check_id(response, where)
                is_dated = not isinstance(response, dict) or response.get("created_at") is not None
                log.expect(is_dated, "stream.date_missing", where)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._read_end(kind, value.get("response"), where)
            case "response.output_item.added":
                self._add_item(value, where)
            case "response.output_item.done":
                self._end_item(value, where)
            case _ if kind.startswith(_ITEM_EVENTS):
                self._read_delta(kind, value, where)
            case _ if not kind.startswith("response."):
                log.add("stream.event_unknown", where, kind)

    def _add_item(self, value: dict[str, Any], where: str) -> None:
        index, item = value.get("output_index"), value.get("item")
        if not is_count(index) or not isinstance(item, dict):
            self._log.add("stream.index" if isinstance(item, dict) else "body.structure", where, value)
            return
        if index in self._items:
            self._log.add("stream.index", where, f"output_index {index} twice")
        self._items[int(str(index))] = _Item(item)

    def _end_item(self, value: dict[str, Any], where: str) -> None:
        log, index, final = self._log, value.get("output_index"), value.get("item")
        item = self._items.get(index) if isinstance(index, int) else None
        if item is None:
            log.add("stream.order", where, "the end of an item that has not begun")
            return
        item.is_done = True
        if not isinstance(final, dict):
            log.add("body.structure", f"{where}.item", "missing")
            return
        if final.get("id") is not None and item.id is not None and final["id"] != item.id:
            log.add("stream.id_changes", where, f"{item.id} and {final['id']}")
        if item.kind == "function_call" and item.arguments and final.get("arguments") != item.arguments:
            log.add("stream.mismatch", where, f"{item.arguments[:60]} and {str(final.get('arguments'))[:60]}")
        if item.kind == "message" and item.text and _text_of(final) != item.text:
            log.add("stream.mismatch", where, f"{item.text[:60]} and {_text_of(final)[:60]}")
        item.item = final

    def _read_delta(self, kind: str, value: dict[str, Any], where: str) -> None:
        log, index = self._log, value.get("output_index")
        item = self._items.get(index) if isinstance(index, int) else None
        if item is None:
            log.add("stream.order" if is_count(index) else "stream.index", where, f"{kind} without an item")
            return
        if value.get("item_id") is None:
            log.add("stream.item_id_missing", where, kind)
        elif item.id is not None and value["item_id"] != item.id:
            log.add("stream.id_changes", where, f"{item.id} and {value['item_id']}")
        if item.is_done:
            log.add("stream.order", where, f"{kind} after the end of its item")
        item.has_part = item.has_part or kind == "response.content_part.added"
        if kind.endswith(".delta"):
            delta = value.get("delta")
            if not log.expect(isinstance(delta, str), "body.member_type", f"{where}.delta", delta):
                return
            self._answer.pieces += 1
            item.pieces.add(str(delta))
            if "arguments" in kind:
                item.arguments += str(delta)
            elif "output_text" in kind:
                item.text += str(delta)
        elif kind == "response.function_call_arguments.done" and item.arguments:
            final = str(value.get("arguments"))
            log.expect(final == item.arguments, "stream.mismatch", where, f"{item.arguments[:60]} and {final[:60]}")

    def _read_end(self, kind: str, response: object, where: str) -> None:
        self._end = _ENDS[kind]
        self._check_id(response, where)
        if not isinstance(response, dict):
            self._log.add("body.structure", f"{where}.response", "missing")
            return
        if kind == "response.failed":
            self._log.add("stream.error", where, response.get("error"))
            self._answer.error = str(response.get("error"))
            return
        _read_response(response, self._answer, self._log, where)
        output = response.get("output")
        if isinstance(output, list) and len(output) != len(self._items):
            self._log.add(
                "stream.mismatch", where, f"{len(self._items)} items streamed, {len(output)} in the last event"
            )
            if not output:
                for item in self._items.values():
                    self._add(item)
                self._answer.finish = "calls" if self._answer.calls else self._answer.finish

    def _add(self, item: _Item) -> None:
        given = item.item
        if item.kind == "function_call":
            arguments = str(given.get("arguments") or item.arguments)
            call = SeenCall(id=str(given.get("call_id") or ""), name=str(given.get("name") or ""), arguments=arguments)
            self._answer.calls.append(call)
        elif item.kind == "message":
            self._answer.text += _text_of(given) or item.text

    def _check_sequence(self, number: object, where: str) -> None:
        if not is_count(number):
            self._log.add("body.member_missing", f"{where}.sequence_number")
            return
        if self._sequence is not None and number != self._sequence + 1:
            self._log.add("stream.sequence", where, f"{self._sequence}, then {number}")
        self._sequence = int(str(number))

    def _check_id(self, response: object, where: str) -> None:
        given = response.get("id") if isinstance(response, dict) else None
        if self._id is not None and given is not None and given != self._id:
            self._log.add("stream.id_changes", where, f"{self._id} and {given}")
        self._id = self._id or given


def _read_response(body: dict[str, Any], answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    if body.get("object") != "response":
        code = "body.member_missing" if body.get("object") is None else "body.member_type"
        log.add(code, f"{where}.object", body.get("object"))
    log.expect(isinstance(body.get("id"), str) and body["id"], "body.structure", f"{where}.id", "missing")
    output, status = body.get("output"), body.get("status")
    if not isinstance(output, list):
        log.add("body.structure", f"{where}.output", "expected a list")
        return
    for index, item in enumerate(output):
        _read_item(item, answer, log, f"{where}.output[{index}]")
    answer.usage = usage_of(body.get("usage"), log, _USAGE, "total_tokens")
    log.expect(body.get("usage") is not None, "usage.missing", where)
    if status is None:
        log.add("finish.missing", f"{where}.status")
    elif status not in ("completed", "incomplete", "failed", "in_progress", "queued", "cancelled"):
        log.add("finish.unknown", f"{where}.status", status)
    elif status in ("in_progress", "queued"):
        log.add("finish.missing", f"{where}.status", status)
    if status == "completed":
        answer.finish = "calls" if answer.calls else "stop"
    elif status == "incomplete":
        answer.finish = "length"
    ids = [call.id for call in answer.calls]
    log.expect(all(ids), "call.id_missing", where, "call_id")
    log.expect(len(set(filter(None, ids))) == len(list(filter(None, ids))), "call.id_repeated", where, ids)
    log.expect(all(call.name for call in answer.calls), "call.name_missing", where)


def _read_item(item: object, answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        log.add("body.structure", where, item)
        return
    log.expect(item.get("id") is not None, "body.member_missing", f"{where}.id")
    if item["type"] == "function_call":
        arguments = item.get("arguments")
        if not isinstance(arguments, str):
            log.add("call.arguments_missing" if arguments is None else "call.arguments_type", where, arguments)
            arguments = ""
        call = SeenCall(id=str(item.get("call_id") or ""), name=str(item.get("name") or ""), arguments=arguments)
        answer.calls.append(call)
    elif item["type"] == "reasoning":
        answer.has_reasoning = True
    elif item["type"] == "message":
        if log.expect(isinstance(item.get("content"), list), "body.structure", f"{where}.content", "expected a list"):
            answer.text += _text_of(item)
        log.expect(item.get("role") == "assistant", "body.member_type", f"{where}.role", item.get("role"))


def _text_of(item: dict[str, Any]) -> str:
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return "".join(
        str(part.get("text") or "") for part in parts if isinstance(part, dict) and part.get("type") == "output_text"
    )
