"""Gemini: whole answers and streams of generateContent."""

from __future__ import annotations

import json
from typing import Any

from ..deviations import DeviationLog
from .frames import SeenAnswer, SeenCall, add_wrong_usage, events, has_wrong_usage, is_count, json_object

_USAGE = ("promptTokenCount", "candidatesTokenCount")
_STOPS = {"STOP": "stop", "MAX_TOKENS": "length"}
_OTHER = frozenset(
    [
        *("SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"),
        *(
            "MALFORMED_FUNCTION_CALL",
            "UNEXPECTED_TOOL_CALL",
            "TOO_MANY_TOOL_CALLS",
            "NO_IMAGE",
            "FINISH_REASON_UNSPECIFIED",
        ),
    ]
)


def is_error(value: object) -> bool:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    return isinstance(error, dict) and isinstance(error.get("message"), str) and isinstance(error.get("code"), int)


def read_body(raw: bytes, log: DeviationLog) -> SeenAnswer:
    answer = SeenAnswer()
    body = json_object(raw, log)
    if body is not None:
        _read(body, answer, log, "body")
        _check_end(answer, log)
    return answer


def read_stream(raw: bytes, log: DeviationLog) -> SeenAnswer:
    answer = SeenAnswer()
    found = events(raw, log)
    if not found:
        return answer
    for event in found:
        if event.value is not None:
            before = answer.text, len(answer.calls)
            is_finished = bool(answer.finish)
            _read(event.value, answer, log, event.where)
            if is_finished and (answer.text, len(answer.calls)) != before:
                log.add("stream.after_end", event.where, "content after the finish reason")
    _check_end(answer, log)
    return answer


def _read(body: dict[str, Any], answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    if "error" in body:
        log.add("body.error" if where == "body" else "stream.error", where, body["error"])
        answer.error = str(body["error"])
        return
    usage = body.get("usageMetadata")
    if isinstance(usage, dict):
        counted = usage.get(_USAGE[0], 0), usage.get(_USAGE[1], 0)
        if not all(is_count(count) for count in counted):
            add_wrong_usage(usage, log, where, _USAGE)
        else:
            answer.usage = counted
    candidates = body.get("candidates")
    if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
        if not body.get("promptFeedback") and not isinstance(usage, dict):
            log.add("body.structure", f"{where}.candidates", "found none")
        return
    _read_candidate(candidates[0], answer, log, where)


def _read_candidate(candidate: dict[str, Any], answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    reason = candidate.get("finishReason")
    if reason is not None:
        if str(reason) not in _STOPS and str(reason) not in _OTHER:
            log.add("finish.unknown", where, reason)
        answer.finish = _STOPS.get(str(reason), str(reason))
    content = candidate.get("content")
    if content is None:
        return
    if not isinstance(content, dict) or not isinstance(content.get("parts", []), list):
        log.add("body.structure", f"{where}.content", content)
        return
    log.expect(content.get("role", "model") == "model", "body.member_type", f"{where}.role", content.get("role"))
    for part in content.get("parts", []):
        _read_part(part, answer, log, where)


def _read_part(part: object, answer: SeenAnswer, log: DeviationLog, where: str) -> None:
    if not isinstance(part, dict):
        log.add("body.structure", f"{where}.parts", part)
    elif "functionCall" in part:
        call = part["functionCall"]
        if not isinstance(call, dict):
            log.add("body.structure", f"{where}.functionCall", call)
            return
        arguments = call.get("args", {})
        log.expect(isinstance(arguments, dict), "call.arguments_type", f"{where}.args", type(arguments).__name__)
        text = json.dumps(arguments) if isinstance(arguments, dict) else str(arguments)
        answer.calls.append(SeenCall(id=str(call.get("id") or ""), name=str(call.get("name") or ""), arguments=text))
        answer.pieces += 1
    elif isinstance(part.get("text"), str):
        answer.has_reasoning |= part.get("thought") is True
        if not part.get("thought"):
            answer.text += part["text"]
            answer.pieces += 1
    elif "text" in part:
        log.add("body.member_type", f"{where}.text", part["text"])


def _check_end(answer: SeenAnswer, log: DeviationLog) -> None:
    if answer.error:
        return
    log.expect(answer.finish, "finish.missing", "end")
    log.expect(answer.usage is not None or has_wrong_usage(log), "usage.missing", "end")
    log.expect(all(call.name for call in answer.calls), "call.name_missing", "parts")
    ids = [call.id for call in answer.calls if call.id]
    log.expect(len(set(ids)) == len(ids), "call.id_repeated", "parts", ids)
    if answer.calls and answer.finish == "stop":
        answer.finish = "calls"
