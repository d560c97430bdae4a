"""What a client has after an answer: the same few facts in every dialect, streaming or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from .judge.framing import parse_sse
from .judge.official import Report

Body = dict[str, Any]

_FINISH = {
    "end_turn": "stop",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "tool_use": "tool_calls",
    "content_filter": "refused",
    "refusal": "refused",
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        ["SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR"],
        "refused",
    ),
}


class Call(NamedTuple):
    """raw is None if the dialect has an object instead of text."""

    id: str
    name: str
    raw: str | None
    arguments: Any


class Used(NamedTuple):
    input: int
    output: int
    cached: int
    reasoning: int


class Seen(NamedTuple):
    text: str = ""
    refusal: str = ""
    reasoning: str = ""
    signature: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = ""
    usage: Used | None = None
    error: str = ""


class Number(NamedTuple):
    """A number with a fraction or an exponent; the sign of zero counts."""

    is_negative: bool
    value: Decimal


def exact(text: str) -> Any:
    """JSON with exact numbers; None if it is no JSON."""
    try:
        return json.loads(text, parse_float=lambda digits: Number(digits.startswith("-"), Decimal(digits)))
    except ValueError:
        return None


def see(dialect: str, body: bytes, *, stream: bool) -> Seen:
    if not stream:
        value = exact(body.decode())
        if isinstance(value.get("error"), dict):
            return Seen(error=value["error"]["message"])
        return {"chat": _chat_body, "responses": _response, "messages": _message, "gemini": _candidate}[dialect](value)
    events = [exact(data) for _, data in parse_sse(body, Report()) if data != "[DONE]"]
    folds = {"chat": _chat_stream, "responses": _responses_stream, "messages": _messages_stream, "gemini": _chunks}
    return folds[dialect](events)


def _call(call_id: str, name: str, raw: str) -> Call:
    return Call(call_id, name, raw, exact(raw))


def _chat_body(value: Body) -> Seen:
    choice = value["choices"][0]
    message = choice["message"]
    return Seen(
        text=message["content"] or "",
        refusal=message.get("refusal") or "",
        reasoning=message.get("reasoning_content") or "",
        calls=tuple(
            _call(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ),
        finish=_FINISH.get(choice["finish_reason"], choice["finish_reason"]),
        usage=_chat_usage(value.get("usage")),
    )


def _chat_usage(value: Body | None) -> Used | None:
    if value is None:
        return None
    cached = (value.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (value.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return Used(value["prompt_tokens"], value["completion_tokens"], cached, reasoning)


def _chat_stream(events: list[Body]) -> Seen:
    text, refusal, reasoning, finish, error = "", "", "", "", ""
    usage: Body | None = None
    calls: dict[int, list[str]] = {}
    for event in events:
        if "error" in event:
            error = event["error"]["message"]
        usage = event.get("usage") or usage
        for choice in event.get("choices", ()):
            delta = choice["delta"]
            text += delta.get("content") or ""
            refusal += delta.get("refusal") or ""
            reasoning += delta.get("reasoning_content") or ""
            finish = choice.get("finish_reason") or finish
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], ["", "", ""])
                function = piece.get("function") or {}
                call[0] += piece.get("id") or ""
                call[1] += function.get("name") or ""
                call[2] += function.get("arguments") or ""
    return Seen(
        text=text,
        refusal=refusal,
        reasoning=reasoning,
        calls=tuple(_call(*calls[index]) for index in sorted(calls)),
        finish=_FINISH.get(finish, finish),
        usage=_chat_usage(usage),
        error=error,
    )


def _response(value: Body) -> Seen:
    items = value["output"]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    calls = tuple(
        _call(item["call_id"], item["name"], item["arguments"]) for item in items if item["type"] == "function_call"
    )
    finish = "tool_calls" if calls else "stop"
    if value["status"] == "incomplete":
        finish = _FINISH[value["incomplete_details"]["reason"]]
    usage = value.get("usage")
    return Seen(
        text="".join(part["text"] for part in parts if part["type"] == "output_text"),
        refusal="".join(part["refusal"] for part in parts if part["type"] == "refusal"),
        reasoning="".join(_thoughts(items)),
        calls=calls,
        finish=finish if value["status"] != "failed" else "",
        usage=usage
        and Used(
            usage["input_tokens"],
            usage["output_tokens"],
            usage["input_tokens_details"]["cached_tokens"],
            usage["output_tokens_details"]["reasoning_tokens"],
        ),
        error=(value.get("error") or {}).get("message", ""),
    )


def _thoughts(items: list[Body]) -> Iterator[str]:
    for item in items:
        if item["type"] == "reasoning":
            yield from (part["text"] for part in [*item["summary"], *(item.get("content") or ())])


def _responses_stream(events: list[Body]) -> Seen:
    """A client shows the deltas; the final object of a failed answer may lack truncated content."""
    last = events[-1]
    text = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    if "response" not in last:
        return Seen(text=text, error=last.get("message") or last["error"]["message"])
    seen = _response(last["response"])
    return seen if last["type"] != "response.failed" else seen._replace(text=text)


def _message(value: Body) -> Seen:
    blocks = value["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    finish = _FINISH.get(value["stop_reason"], value["stop_reason"])
    return Seen(
        text=text,
        refusal=text if finish == "refused" else "",
        reasoning="".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        signature="".join(block["signature"] for block in blocks if block["type"] == "thinking"),
        calls=tuple(
            Call(block["id"], block["name"], block.get("raw"), block["input"])
            for block in blocks
            if block["type"] == "tool_use"
        ),
        finish=finish,
        usage=_messages_usage(value["usage"]),
    )


def _messages_usage(value: Body) -> Used:
    cached = value.get("cache_read_input_tokens") or 0
    whole = value["input_tokens"] + cached + (value.get("cache_creation_input_tokens") or 0)
    reasoning = (value.get("output_tokens_details") or {}).get("thinking_tokens") or 0
    return Used(whole, value["output_tokens"], cached, reasoning)


def _messages_stream(events: list[Body]) -> Seen:
    """Folded as the vendor's own clients do: the fragments of a call are joined and decoded, and no fragments are the empty object."""
    message: Body = {"content": [], "stop_reason": "", "usage": {}}
    error = ""
    for event in events:
        match event["type"]:
            case "message_start":
                message["usage"] |= event["message"]["usage"]
            case "content_block_start":
                message["content"].append({"raw": "", **event["content_block"]})
            case "content_block_delta":
                _grow(message["content"][event["index"]], event["delta"])
            case "message_delta":
                message["stop_reason"] = event["delta"]["stop_reason"]
                message["usage"] |= event["usage"]
            case "error":
                error = event["error"]["message"]
    for block in message["content"]:
        if block["type"] == "tool_use":
            block["raw"] = block["raw"] or "{}"
            block["input"] = exact(block["raw"])
    return _message(message)._replace(error=error)


def _grow(block: Body, delta: Body) -> None:
    for member, target in (
        ("text", "text"),
        ("thinking", "thinking"),
        ("signature", "signature"),
        ("partial_json", "raw"),
    ):
        if member in delta:
            block[target] += delta[member]


def _candidate(value: Body) -> Seen:
    return _chunks([value])


def _chunks(events: list[Body]) -> Seen:
    """Gemini: the first candidate of all chunks; arguments are objects."""
    parts, finish, usage, error = [], "", None, ""
    for event in events:
        if event.get("error"):
            error = event["error"]["message"]
        usage = event.get("usageMetadata") or usage
        for candidate in (event.get("candidates") or ())[:1]:
            parts += (candidate.get("content") or {}).get("parts") or ()
            finish = candidate.get("finishReason") or finish
        if (event.get("promptFeedback") or {}).get("blockReason"):
            finish = "SAFETY"
    called = [part["functionCall"] for part in parts if "functionCall" in part]
    calls = tuple(Call(call["id"], call["name"], None, call.get("args") or {}) for call in called)
    text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    reason = "tool_calls" if finish == "STOP" and calls else _FINISH.get(finish, finish)
    return Seen(
        text=text,
        refusal=text if reason == "refused" else "",
        reasoning="".join(part.get("text", "") for part in parts if part.get("thought")),
        signature="".join(part.get("thoughtSignature", "") for part in parts if "functionCall" not in part),
        calls=calls,
        finish=reason,
        usage=usage and _gemini_usage(usage),
        error=error,
    )


def _gemini_usage(value: Body) -> Used:
    thoughts = value.get("thoughtsTokenCount") or 0
    given = value["promptTokenCount"] + (value.get("toolUsePromptTokenCount") or 0)
    return Used(given, value["candidatesTokenCount"] + thoughts, value.get("cachedContentTokenCount") or 0, thoughts)
