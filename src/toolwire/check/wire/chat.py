"""Chat Completions: whole answers and streams."""

from __future__ import annotations

from typing import Any

from ..deviations import DeviationLog
from .frames import DONE, PieceLog, SeenAnswer, SeenCall, SeenEvent, events, json_object, usage_of

_FINISH = {
    "stop": "stop",
    "tool_calls": "calls",
    "length": "length",
    "content_filter": "content_filter",
    "function_call": "calls",
}
_MEMBERS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("id", str),
    ("object", str),
    ("created", (int, float)),
    ("model", str),
)
_USAGE = ("prompt_tokens", "completion_tokens")


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
    _check_members(body, "chat.completion", log)
    answer.usage = usage_of(body.get("usage"), log, _USAGE, "total_tokens")
    log.expect(body.get("usage") is not None, "usage.missing", "body")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        log.add("body.structure", "choices", "found none")
        return answer
    choice = choices[0]
    _read_finish(choice.get("finish_reason"), answer, log, "choices[0].finish_reason")
    message = choice.get("message")
    if not isinstance(message, dict):
        log.add("body.structure", "choices[0].message", "missing")
        return answer
    _read_message(message, answer, log)
    _check_end(answer, log)
    return answer


def read_stream(raw: bytes, log: DeviationLog) -> SeenAnswer:
    answer = SeenAnswer()
    found = events(raw, log)
    if not found:
        return answer
    reader = _StreamReader(answer, log)
    is_done = False
    for event in found:
        if is_done:
            log.add("stream.after_end", event.where, event.data[:80])
        elif event.data.strip() == DONE:
            is_done = True
        elif event.value is not None:
            reader.read(event, event.value)
    if not answer.error:
        if is_done or answer.finish:
            log.expect(is_done, "stream.done_missing", "end")
        else:
            log.add("stream.end_missing", "end", "neither a finish reason nor [DONE]")
        reader.close(is_cut=not is_done)
    return answer


class _StreamReader:
    def __init__(self, answer: SeenAnswer, log: DeviationLog) -> None:
        self._answer = answer
        self._log = log
        self._id: object = None
        self._calls: dict[int, SeenCall] = {}
        self._text_pieces = PieceLog()
        self._argument_pieces: dict[int, PieceLog] = {}
        self._has_finished = False

    def read(self, event: SeenEvent, chunk: dict[str, Any]) -> None:
        log, where = self._log, event.where
        if chunk.get("error"):
            log.add("stream.error", where, chunk["error"])
            self._answer.error = str(chunk["error"])
            return
        _check_members(chunk, "chat.completion.chunk", log)
        if self._id is not None and chunk.get("id", self._id) != self._id and chunk.get("choices"):
            log.add("stream.id_changes", where, f"{self._id} and {chunk.get('id')}")
        self._id = self._id or chunk.get("id")
        if chunk.get("usage") is not None:
            self._answer.usage = usage_of(chunk["usage"], log, _USAGE, "total_tokens", where)
        choices = chunk.get("choices")
        if choices is None and chunk.get("usage") is not None:
            log.add("usage.alone", where)
            return
        if not isinstance(choices, list):
            log.add("body.structure", f"{where}.choices", "missing")
            return
        for choice in choices:
            if isinstance(choice, dict):
                self._read_choice(choice, where)

    def close(self, *, is_cut: bool) -> None:
        self._answer.calls = [self._calls[index] for index in sorted(self._calls)]
        if self._calls and sorted(self._calls) != list(range(len(self._calls))):
            self._log.add("call.index_gap", "tool_calls", sorted(self._calls))
        if not self._answer.finish and not is_cut:
            self._log.add("finish.missing", "end")
        for pieces in (self._text_pieces, *self._argument_pieces.values()):
            pieces.check(self._log, "fragments")
        _check_calls(self._answer, self._log)
        _check_end(self._answer, self._log)

    def _read_choice(self, choice: dict[str, Any], where: str) -> None:
        log = self._log
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            log.expect(delta is None and choice.get("finish_reason"), "body.structure", f"{where}.delta", "missing")
            delta = {}
        content = delta.get("content")
        log.expect(content is None or isinstance(content, str), "body.member_type", f"{where}.delta.content", content)
        calls = delta.get("tool_calls")
        has_content = bool(content) or bool(calls)
        if self._has_finished and has_content:
            log.add("stream.order", where, "content after the finish reason")
        if isinstance(content, str) and content:
            self._answer.text += content
            self._answer.pieces += 1
            self._text_pieces.add(content)
        self._answer.has_reasoning |= bool(delta.get("reasoning_content") or delta.get("reasoning"))
        if delta.get("function_call"):
            log.add("call.legacy", where)
        if isinstance(calls, list):
            for fragment in calls:
                self._read_fragment(fragment, where)
        elif calls is not None:
            log.add("body.member_type", f"{where}.delta.tool_calls", calls)
        if choice.get("finish_reason"):  # older servers send "" before the end
            if self._has_finished and _FINISH.get(str(choice["finish_reason"])) != self._answer.finish:
                log.add("finish.changes", where, choice["finish_reason"])
            self._has_finished = True
            _read_finish(choice["finish_reason"], self._answer, log, where)

    def _read_fragment(self, fragment: object, where: str) -> None:
        log = self._log
        if not isinstance(fragment, dict):
            log.add("body.member_type", f"{where}.tool_calls", fragment)
            return
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        call_id, name = (
            _string(fragment.get("id"), log, f"{where}.id"),
            _string(function.get("name"), log, f"{where}.name"),
        )
        arguments = function.get("arguments")
        index = fragment.get("index")
        if not isinstance(index, int) or isinstance(index, bool):
            log.add("call.index_missing", where, fragment)
            # A new id begins a new call, as lenient clients read it.
            is_new = not self._calls or (call_id and call_id != self._calls[max(self._calls)].id)
            index = len(self._calls) if is_new else max(self._calls)
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = SeenCall(id=call_id, name=name)
            log.expect(fragment.get("type") == "function", "call.type_missing", where, fragment.get("type"))
        else:
            self._check_later(call, call_id, name, where)
            call.id, call.name = call.id or call_id, call.name or name
        if isinstance(arguments, str):
            call.arguments += arguments
            self._answer.pieces += bool(arguments)
            self._argument_pieces.setdefault(index, PieceLog()).add(arguments)
        else:
            log.expect(arguments is None, "call.arguments_type", where, arguments)

    def _check_later(self, call: SeenCall, call_id: str, name: str, where: str) -> None:
        log = self._log
        if call_id and call.id and call_id != call.id:
            is_other = bool(name)
            log.add("call.index_shared" if is_other else "call.id_changes", where, f"{call.id} and {call_id}")
        elif call_id and call.id:
            log.add("call.id_resent", where)
        if name and call.name and call_id in ("", call.id):
            log.add("call.name_resent", where, name)


def _read_message(message: dict[str, Any], answer: SeenAnswer, log: DeviationLog) -> None:
    content = message.get("content")
    answer.has_reasoning = bool(message.get("reasoning_content") or message.get("reasoning"))
    role = message.get("role")
    if role is None:
        log.add("body.member_missing", "message.role")
    else:
        log.expect(role == "assistant", "body.member_type", "message.role", role)
    if isinstance(content, str):
        answer.text = content
    else:
        log.expect(content is None, "body.member_type", "message.content", type(content).__name__)
    if message.get("function_call"):
        log.add("call.legacy", "message")
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        log.add("body.member_type", "message.tool_calls", type(calls).__name__)
        return
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            log.add("body.structure", "message.tool_calls", call)
            continue
        log.expect(call.get("type") == "function", "call.type_missing", "message.tool_calls", call.get("type"))
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            code = "call.arguments_missing" if arguments is None else "call.arguments_type"
            log.add(code, "message.tool_calls", type(arguments).__name__)
            arguments = ""
        call_id = _string(call.get("id"), log, "message.tool_calls.id")
        name = _string(function.get("name"), log, "message.tool_calls.name")
        answer.calls.append(SeenCall(id=call_id, name=name, arguments=arguments))
    _check_calls(answer, log)


def _string(value: object, log: DeviationLog, where: str) -> str:
    """ "" for a missing value."""
    log.expect(value is None or isinstance(value, str), "body.member_type", where, value)
    return str(value or "")


def _check_calls(answer: SeenAnswer, log: DeviationLog) -> None:
    ids = [call.id for call in answer.calls]
    log.expect(all(ids), "call.id_missing", "tool_calls")
    log.expect(len(set(filter(None, ids))) == len(list(filter(None, ids))), "call.id_repeated", "tool_calls", ids)
    log.expect(all(call.name for call in answer.calls), "call.name_missing", "tool_calls")


def _check_members(value: dict[str, Any], kind: str, log: DeviationLog) -> None:
    for member, expected in _MEMBERS:
        if value.get(member) is None:
            log.add("body.member_missing", member)
        elif not isinstance(value[member], expected):
            log.add("body.member_type", member, value[member])
    if isinstance(value.get("object"), str) and value["object"] and value["object"] != kind:
        log.add("body.member_type", "object", f"found {value['object']}, expected {kind}")


def _read_finish(reason: object, answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    if reason is None or reason == "":
        log.add("finish.missing", where)
        return
    if str(reason) not in _FINISH:
        log.add("finish.unknown", where, reason)
    answer.finish = _FINISH.get(str(reason), str(reason))


def _check_end(answer: SeenAnswer, log: DeviationLog) -> None:
    if answer.finish == "calls" and not answer.calls:
        log.add("finish.calls_absent", "finish_reason")
